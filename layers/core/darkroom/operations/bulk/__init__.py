"""The operations of bulk work."""
