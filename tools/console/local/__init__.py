"""`darkroom local …`: the stack on this machine."""
