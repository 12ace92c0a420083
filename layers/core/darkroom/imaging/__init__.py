"""Developing: an original's bytes and a recipe in, the variants' bytes out; the sole importer of Pillow."""

from darkroom.imaging.develop import Developed, Rendered, develop

__all__ = ["Developed", "Rendered", "develop"]
