"""The adapters of usage."""
