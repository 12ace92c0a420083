"""The API of images."""
