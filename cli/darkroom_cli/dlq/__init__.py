"""`darkroom dlq …`: dead letters."""
