"""The operations of dead letters."""
