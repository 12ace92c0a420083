"""The adapters of the edge."""
