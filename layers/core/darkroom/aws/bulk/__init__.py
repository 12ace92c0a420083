"""The adapters of bulk work."""
