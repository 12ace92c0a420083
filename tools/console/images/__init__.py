"""`darkroom status`, `download` and `redo`: images that were accepted."""
