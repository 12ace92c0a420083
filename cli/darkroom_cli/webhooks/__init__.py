"""`darkroom webhooks`."""
