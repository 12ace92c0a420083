"""Two rehearsals of one seed, with poison and without: what it has cost those who have nothing to do with it."""
