"""The operations of images that are fetched."""
