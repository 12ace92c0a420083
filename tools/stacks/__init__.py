"""A stack that runs: where the local one says it is, the one handle on it, and clients that reach no other."""
