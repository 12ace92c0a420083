"""What crops by attention keep of the subjects of free photographs, beside crops of the middle."""
