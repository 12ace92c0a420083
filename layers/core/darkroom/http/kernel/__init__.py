"""The API of every part."""
