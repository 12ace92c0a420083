"""The operations of events."""
