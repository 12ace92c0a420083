"""The operations of uploads."""
