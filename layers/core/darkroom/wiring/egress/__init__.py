"""The wiring of what leaves the stack."""
