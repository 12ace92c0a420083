"""`darkroom orphans …`: originals that no row knows."""
