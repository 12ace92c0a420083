"""`darkroom top`: what a stack does now, live in the terminal."""
