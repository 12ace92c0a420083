"""The wiring of uploads."""
