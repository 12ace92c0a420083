"""`darkroom parts …`: what optional parts a stack has, and what is left of those that it has not."""
