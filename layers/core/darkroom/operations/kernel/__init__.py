"""The operations of every part."""
