"""Finds the point of a picture that draws attention: where libvips sees edges, saturated colours and skin.

libvips's smartcrop makes a map of these, of 32 by 32 cells, blurs it and takes its highest point
(https://www.libvips.org/API/current/method.Image.smartcrop.html). It detects no faces and knows no subjects, and one
such point is often beside the subject. So the picture is looked at twice, once within a frame that makes the cells, and
with them the blur, twice as large. Where both looks agree something stands out; the more they differ, the nearer the
point is to the middle, where most people put what they photograph. `make bench-attention` compares crops around it with
those of the middle.
"""

from __future__ import annotations

import pyvips

from darkroom.domain.recipes.recipes import POINT_STEPS, FocalPoint
from darkroom.imaging.alpha import premultiplied, unpremultiplied
from darkroom.imaging.scaling.geometry import Placement
from darkroom.imaging.scaling.resize import scaled

_SIDE = 96
"""The longer side, in pixels, of the picture that is looked at: three to a cell."""

_FRAME = 0.5
"""How wide the frame is on each side, as a share of that side."""

_MOST_APART = 0.2
"""How far apart the looks are, as a share of a side, if they find nothing: the point is then in the middle. From 0.16
to 0.2 crops keep most of the subjects in `benchmarks/attention/photos.csv`."""

_CELLS = 32
_MIDDLE_GREY = 128.0


def small_size(width: int, height: int) -> Placement:
    """The size of a picture of `width` by `height` pixels that `attention_of` looks at."""
    scale = min(1.0, _SIDE / max(width, height))
    size = max(1, round(width * scale)), max(1, round(height * scale))
    return Placement(scaled=size, size=size)


def attention_of(picture: pyvips.Image) -> FocalPoint:
    """The point of an upright picture in memory, in sRGB or grey, whose alpha is not premultiplied: in fractions of its
    sides, of at most four digits. In the middle if the picture has one colour only."""
    small = unpremultiplied(scaled(premultiplied(picture), *small_size(picture.width, picture.height).size))
    if small.hasalpha():
        # Neither black nor white things get lost on it, and it is not saturated.
        small = small.flatten(background=_MIDDLE_GREY)  # guard: attention-transparent-ignored
    small = small.colourspace("srgb").copy_memory()
    bands = small.stats().tolist()[1:]  # of each: its lowest, highest, sum, sum of squares, mean, …
    if all(lowest == highest for lowest, highest, *_ in bands):  # guard: attention-uniform-keeps-middle
        return FocalPoint(x=0.5, y=0.5)
    across, down = round(small.width * _FRAME), round(small.height * _FRAME)
    framed = small.embed(
        across,
        down,
        small.width + 2 * across,
        small.height + 2 * down,
        extend="background",
        background=[band[4] for band in bands],
    )
    near, far = _look(small), _look(framed)
    return FocalPoint(
        x=_agreed(near[0] / small.width, (far[0] - across) / small.width),
        y=_agreed(near[1] / small.height, (far[1] - down) / small.height),
    )


def _look(picture: pyvips.Image) -> tuple[float, float]:
    """The highest point of the map, in pixels. A crop of the whole picture blurs most, and is never larger than it."""
    _, corner = picture.smartcrop(
        picture.width, picture.height, interesting="attention", attention_x=True, attention_y=True
    )
    # libvips names the corner of a cell.
    half_a_cell = picture.width / _CELLS / 2, picture.height / _CELLS / 2
    return corner["attention_x"] + half_a_cell[0], corner["attention_y"] + half_a_cell[1]


def _agreed(near: float, far: float) -> float:
    """What two looks agree on along one side, of which they are shares."""
    near, far = _inside(near), _inside(far)
    trust = max(0.0, 1 - abs(near - far) / _MOST_APART)  # guard: attention-disagreeing-looks
    point = 0.5 + trust * ((near + far) / 2 - 0.5)
    return round(point * POINT_STEPS) / POINT_STEPS


def _inside(share: float) -> float:
    return min(max(share, 0.0), 1.0)
