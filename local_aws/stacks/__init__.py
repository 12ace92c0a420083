"""A running stack: the local one's record, the one handle on it, and clients that reach nothing else."""
