"""`darkroom usage`."""
