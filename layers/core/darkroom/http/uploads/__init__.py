"""The API of uploads."""
