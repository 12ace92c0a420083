"""Scaling: the geometry, the filters, resizing, and shrinking while a file is decoded."""
