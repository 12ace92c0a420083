"""The wiring of every part."""
