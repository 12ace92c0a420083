"""`darkroom delay …`: scheduled images."""
