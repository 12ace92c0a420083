"""Which stack a command talks to, and what it finds there."""
