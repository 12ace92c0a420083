"""`darkroom differences`."""
