"""The wiring of bulk work."""
