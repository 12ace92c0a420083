"""The operations of the edge."""
