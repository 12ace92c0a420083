"""The API of images that are fetched."""
