"""Raises the encoder's quality to make up for the fine detail that a photo loses by shrinking on load.

A JPEG that is decoded at half its size lacks the frequencies next to the limit of that size. A variant nearly as large
shows it: cut at 0.7 to 1.0 of the decoded width and encoded at the same quality it has 1 to 9 per cent fewer bytes than
one of a full decode, and 0.3 to 3 points less by SSIMULACRA 2, the more the finer the photo's detail. One step of
quality (half a step for WebP, whose steps are larger), or two if there is much detail, restores the bytes and most of
the points (`make bench-engine` prints both). Smaller variants are the same either way.
"""

from __future__ import annotations

import pyvips

from darkroom.domain.recipes import OutputFormat

_MUCH_DETAIL = 14.0
"""Mean absolute Laplacian in levels: close foliage has about 22, landscapes 5 to 9, portraits less."""

_TILE_SIDE = 256

_LAPLACIAN = pyvips.Image.new_from_array([[0, -1, 0], [-1, 4, -1], [0, -1, 0]])


def quality_steps(file_format: OutputFormat, share: float, detail: float) -> float:
    """By how much to raise the quality of a variant whose picture is `share` times as wide as the decoder's."""
    if share < 0.7 or file_format not in ("jpeg", "webp"):
        return 0
    # At exactly the decoder's size nothing was resampled, and less is lost.
    if 0.8 <= share < 1 and detail >= _MUCH_DETAIL:
        return 2
    return 1 if file_format == "jpeg" else 0.5


def detail_of(image: pyvips.Image) -> float:
    """The mean absolute Laplacian, in levels, of one band of the picture's middle, where most photos have their
    subject."""
    width, height = min(_TILE_SIDE, image.width), min(_TILE_SIDE, image.height)
    left, top = (image.width - width) // 2, (image.height - height) // 2
    tile = image.extract_band(image.bands // 2).crop(left, top, width, height)
    return float(tile.cast("short").conv(_LAPLACIAN, precision="integer").abs().avg())
