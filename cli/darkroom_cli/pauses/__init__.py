"""`darkroom pause` and `darkroom resume`: what operators stop for a while, and what waits meanwhile."""
