"""`darkroom logs`: what the functions and the gateway log."""
