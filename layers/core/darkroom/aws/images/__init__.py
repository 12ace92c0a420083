"""The adapters of images."""
