"""The HTTP API as Python calls."""
