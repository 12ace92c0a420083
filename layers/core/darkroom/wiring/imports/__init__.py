"""The wiring of images that are fetched."""
