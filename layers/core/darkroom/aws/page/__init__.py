"""The adapters of the page."""
