"""What only operators do, in the same layers as the core."""
