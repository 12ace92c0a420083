"""The operations of images."""
