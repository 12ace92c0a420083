"""`darkroom delay …`: images that wait for their time."""
