"""Develops images: takes an original's bytes and a recipe, returns the variants' bytes; the only importer of image
libraries."""

from darkroom.imaging.develop import Developed, Developing, Rendered, develop, developing
from darkroom.imaging.memory import keep_memory
from darkroom.imaging.placeholder import Placeholder

keep_memory()  # before any picture is opened and any thread is started

__all__ = ["Developed", "Developing", "Placeholder", "Rendered", "develop", "developing"]
