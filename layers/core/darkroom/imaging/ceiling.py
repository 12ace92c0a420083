"""Keeps a file under a ceiling of bytes: first by lower quality, then by a smaller picture."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import pyvips

from darkroom.domain.kernel.lanes import Effort
from darkroom.domain.kernel.sizes import limit_in_words
from darkroom.domain.recipes.recipes import OutputFormat
from darkroom.imaging.alpha import premultiplied, unpremultiplied
from darkroom.imaging.encode import encode
from darkroom.imaging.scaling.resize import scaled

if TYPE_CHECKING:
    from darkroom.imaging.rights import Carriers

LOWEST_QUALITY = 30
"""Below this a smaller picture looks better than a coarser one."""


@dataclass(frozen=True, kw_only=True)
class Encoded:
    """A file, the size of its picture, and what was given up for its ceiling."""

    body: bytes
    format: OutputFormat
    width: int
    height: int
    notice: str | None = None


def encode_under(
    image: pyvips.Image,
    file_format: OutputFormat,
    *,
    quality: float,
    effort: Effort,
    ceiling_bytes: int | None,
    carriers: Carriers | None = None,
) -> Encoded:
    """The picture as a file of at most `ceiling_bytes` (None: of any size), as good as that allows. `carriers`, which
    fit under the ceiling, are part of the file.

    A binary search lowers the quality down to 30, but not for PNG, which has none; below that the picture is scaled
    down until its file fits. That takes one encoding, six of the search from quality 80, and about two smaller ones.
    """
    encoded = partial(encode, file_format=file_format, effort=effort, carriers=carriers)
    body = encoded(image, quality=quality)
    width, height = image.width, image.height
    if ceiling_bytes is None or len(body) <= ceiling_bytes:
        return Encoded(body=body, format=file_format, width=width, height=height)
    if file_format != "png":
        lowest = min(LOWEST_QUALITY, int(quality))
        quality_and_body = _highest_quality_under(ceiling_bytes, partial(encoded, image), range(lowest, int(quality)))
        if quality_and_body is not None:
            lowered, body = quality_and_body
            notice = f"quality {lowered} instead of {quality:g}, to stay under {limit_in_words(ceiling_bytes)}."
            return Encoded(body=body, format=file_format, width=width, height=height, notice=notice)
        quality = lowest
    while len(body) > ceiling_bytes:
        # The file's size grows roughly with the area; a tenth is left for the part that does not.
        factor = min(0.9, math.sqrt(0.9 * ceiling_bytes / len(body)))
        width, height = max(1, int(width * factor)), max(1, int(height * factor))
        smaller = unpremultiplied(scaled(premultiplied(image), width, height)).copy_memory()
        body = encoded(smaller, quality=quality)
    notice = (
        f"{width}×{height} instead of {image.width}×{image.height}"
        + (f" and quality {quality:g}" if file_format != "png" else "")
        + f", to stay under {limit_in_words(ceiling_bytes)}."
    )
    return Encoded(body=body, format=file_format, width=width, height=height, notice=notice)


def _highest_quality_under(
    ceiling_bytes: int, encoded: Callable[..., bytes], qualities: range
) -> tuple[int, bytes] | None:
    """The highest of `qualities` whose file is under the ceiling, by binary search, and the file; None if there is
    none."""
    best = None
    while qualities:
        middle = len(qualities) // 2
        body = encoded(quality=qualities[middle])
        if len(body) <= ceiling_bytes:
            best = (qualities[middle], body)
            qualities = qualities[middle + 1 :]
        else:
            qualities = qualities[:middle]
    return best
