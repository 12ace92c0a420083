"""`darkroom events`."""
