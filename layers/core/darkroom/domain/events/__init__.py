"""The events of images."""
