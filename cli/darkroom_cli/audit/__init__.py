"""`darkroom audit`: what operators did."""
