"""Darkroom: an image pipeline that never loses an upload."""
