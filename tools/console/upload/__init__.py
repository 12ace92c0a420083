"""`darkroom upload`: sends photos."""
