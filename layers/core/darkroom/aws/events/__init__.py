"""The adapters of events."""
