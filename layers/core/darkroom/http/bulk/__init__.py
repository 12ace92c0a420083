"""The API of bulk work."""
