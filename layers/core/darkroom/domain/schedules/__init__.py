"""When images are to be developed, and how they are held until then."""
