"""The adapters of uploads."""
