"""The operations of the page."""
