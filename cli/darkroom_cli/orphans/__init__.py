"""`darkroom orphans …`: originals without a row."""
