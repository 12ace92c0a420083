"""`darkroom operate`: what operators see and do, as a page on this machine alone."""
