"""The simulated AWS in which histories of one image are struck by faults, and the exploration of all of them."""
