"""`darkroom backfill`."""
