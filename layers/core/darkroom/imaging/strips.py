"""Reads a picture's pixels strip by strip."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyvips

_STRIP_ROWS = 128


def strips(image: pyvips.Image) -> Iterator[tuple[int, int, Any]]:
    """The picture from the top: the first row of each strip, how many it has, and its bytes.

    libvips returns copies, and a copy of the whole would be the largest block of memory of all.
    """
    region = pyvips.Region.new(image)
    for top in range(0, image.height, _STRIP_ROWS):
        rows = min(_STRIP_ROWS, image.height - top)
        yield top, rows, region.fetch(0, top, image.width, rows)
