"""The wiring of usage."""
