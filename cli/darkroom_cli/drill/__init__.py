"""`darkroom drill`: game days, with real switches that are always put back."""
