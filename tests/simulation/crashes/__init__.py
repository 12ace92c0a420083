"""A simulated AWS in which faults strike histories of one image, and the exploration of all of them."""
