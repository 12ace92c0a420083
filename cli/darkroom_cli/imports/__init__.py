"""`darkroom import`."""
