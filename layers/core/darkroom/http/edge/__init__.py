"""The answers to the edge."""
