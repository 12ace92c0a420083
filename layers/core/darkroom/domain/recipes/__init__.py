"""What to make of an image."""
