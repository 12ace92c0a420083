"""The wiring of images."""
