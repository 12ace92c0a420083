"""The wiring of dead letters."""
