"""What Darkroom does: one module for each function or operator's verb, taking ports and values as arguments."""
