"""`darkroom restore`: rows of a table that was restored to a point in time, copied back into the live one."""
