"""The domain of bulk work."""
