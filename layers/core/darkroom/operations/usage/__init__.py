"""The operations of usage."""
