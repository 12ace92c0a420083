"""Decides by how much a decoder may shrink a picture, which saves most of its time, and makes up for what that blurs.

Decoders shrink by averaging blocks of pixels. That folds detail that is too fine for the smaller picture into false
patterns, and it blurs. By SSIMULACRA 2, a variant of the size of a half loses up to 4 points (city lights) next to one
of a full decode, of 0.7 of it up to 1, of half of it nothing; small print becomes illegible at a quarter and an eighth
first (`make bench-engine` prints each variant's score next to its full decode's).
"""

from __future__ import annotations

from darkroom.domain.recipes.recipes import OutputFormat
from darkroom.imaging.headers import ImageHeader
from darkroom.imaging.scaling.resize import padding

_ROOM = {8: 1.86, 4: 1.86, 2: 1.43}
"""How much larger than wanted the shrunk picture is, at least, by factor, largest first.

With the first number an eighth of 3,840 pixels serves for 256, and so does that of the other side, rounded down; with
the last one a half serves for up to 0.7 of its size.
"""

_MOST_STRETCHED = 0.05
"""By how much, in pixels of the wanted size, a shrunk JPEG may be stretched.

libvips drops the rows and columns that do not fill a block at the end, and a plain resize stretches what remains to the
wanted size. An eighth of a pixel loses up to 2 points by SSIMULACRA 2, a sixteenth up to 0.7. What would be stretched
more takes a way of its own (`scaled_in_place`).
"""

_SOFT_SHARE = 0.5
_SHARPER: dict[OutputFormat, float] = {"jpeg": 1, "webp": 0.5}
"""A variant of more than this share of a halved picture has 1 to 3 per cent fewer bytes than one of a full decode, and
less detail. A step of quality (half a step for WebP, whose steps are larger) gives both back."""


def shrink_of(header: ImageHeader, size: tuple[int, int]) -> int:
    """The largest factor of 8, 4, 2 and 1 by which the picture may be shrunk that is wanted at `size`, as stored."""
    sides = ((header.width, size[0]), (header.height, size[1]))
    for factor, room in _ROOM.items() if header.shrinks else ():
        if header.format == "jpeg":
            fits = all(wanted * room <= side // factor for side, wanted in sides) and (  # guard: engine-shrink-room
                not is_stretched((header.width, header.height), factor, size)
                # guard: engine-shrink-padding
                or all(padding(side // factor, side / factor, wanted) for side, wanted in sides)
            )
        else:  # libwebp fits the whole picture into the smaller one, and a large one has no room in memory
            needed = 1 if factor == 2 and header.shrinks_to_fit else room  # guard: engine-large-webp-halved
            fits = all(wanted * needed <= side // factor for side, wanted in sides)
        if fits:
            return factor
    return 1


def is_stretched(stored: tuple[int, int], factor: int, size: tuple[int, int]) -> bool:
    """Whether a JPEG of the `stored` size that was shrunk by `factor` needs care to be put in place at `size`."""
    return any(wanted * (side % factor) > side * _MOST_STRETCHED for side, wanted in zip(stored, size, strict=True))


def quality_steps(file_format: OutputFormat, share: float) -> float:
    """By how much to raise the quality of a variant that is `share` times as wide as the halved picture."""
    return _SHARPER.get(file_format, 0) if share > _SOFT_SHARE else 0
