"""Two rehearsals of one seed, with and without poison, and what the poison costs images that it was not meant for."""
