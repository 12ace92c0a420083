"""`darkroom variants`: more variants of images that are done."""
