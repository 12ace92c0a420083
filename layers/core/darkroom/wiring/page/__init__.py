"""The wiring of the page."""
