"""`darkroom status`, `download` and `redo`: commands on accepted images."""
