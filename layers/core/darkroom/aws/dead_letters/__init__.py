"""The adapters of dead letters."""
