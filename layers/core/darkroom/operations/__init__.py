"""What Darkroom does: one module per function or operator command, taking ports and values as arguments."""
