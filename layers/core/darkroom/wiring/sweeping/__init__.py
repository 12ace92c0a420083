"""The wiring of the sweeper."""
