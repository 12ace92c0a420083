"""The wiring of the edge."""
