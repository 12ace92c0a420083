"""The transcoder at several memory sizes: milliseconds and dollars for each image, and the memory that it takes."""
