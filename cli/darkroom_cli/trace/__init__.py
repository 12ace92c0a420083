"""`darkroom trace`: the life of one image, drawn in time."""
