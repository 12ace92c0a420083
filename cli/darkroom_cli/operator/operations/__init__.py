"""What only operators do: one module per command, taking ports and values as arguments."""
