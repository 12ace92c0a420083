"""What the edge decides: the caches in front of the outputs, in a stack of its own."""
