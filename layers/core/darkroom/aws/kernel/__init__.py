"""The adapters of every part."""
