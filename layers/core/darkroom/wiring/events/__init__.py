"""The wiring of events."""
