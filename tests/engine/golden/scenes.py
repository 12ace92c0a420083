"""The true pictures behind the golden files: sRGB colours given by formula, all of them asymmetric on purpose."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from tests.engine.golden.colours import Array

WIDTH, HEIGHT = 96, 64

CORNERS = np.array([[[200, 60, 50], [60, 170, 70]], [[50, 80, 190], [220, 200, 60]]]) / 255
"""Red, green; blue, yellow: no mirroring and no rotation maps the picture onto itself."""


def drawn_once(draw: Callable[..., Array]) -> Callable[..., Array]:
    """Always the same picture for the same size, read-only."""

    @cache
    def once(width: int, height: int) -> Array:
        picture = draw(width, height)
        picture.flags.writeable = False
        return picture

    def sized(width: int = WIDTH, height: int = HEIGHT) -> Array:
        return once(width, height)

    sized.__doc__ = draw.__doc__
    return sized


@drawn_once
def scene(width: int, height: int) -> Array:
    """Four corner colours that blend into each other, an off-centre glow, and bars at the upper left, in 0..1.

    Glow and bars change all channels alike: chroma stays smooth, so that a file with halved chroma still contains the
    picture. All colours are well inside sRGB.
    """
    y, x = _grid(width, height)
    picture = _blend(CORNERS, x, y)
    glow = 0.12 * np.exp(-(((x - 0.68) / 0.14) ** 2) - ((y - 0.36) / 0.18) ** 2)
    bars = np.where((x > 0.15) & (x < 0.45) & (y > 0.2) & (y < 0.5), 0.06 * np.sign(np.sin(x * 60 + 0.3)), 0)
    return np.clip(picture + (glow + bars)[..., None], 0.02, 0.98)


@drawn_once
def smooth(width: int, height: int) -> Array:
    """The scene without its bars, and with slow waves instead: every good resampler gives the same result."""
    y, x = _grid(width, height)
    waves = 0.05 * np.sin(2 * np.pi * (3 * x + 1.3 * y)) * np.sin(2 * np.pi * (x - 2 * y) + 0.4)
    made: Array = np.clip(_blend(CORNERS, x, y) + waves[..., None], 0.02, 0.98)
    return made


@drawn_once
def grey_scene(width: int, height: int) -> Array:
    """An asymmetric picture of one channel, in 0..1, from black to white."""
    y, x = _grid(width, height)
    picture = _blend(np.array([[[0.05], [0.45]], [[0.7], [1.0]]]), x, y)[..., 0]
    made: Array = np.clip(picture + 0.05 * np.sin(2 * np.pi * (2 * x - 3 * y)) * x, 0, 1)
    return made


@drawn_once
def alpha_scene(width: int, height: int) -> Array:
    """Opacity in 0..1: clear at the lower left, opaque at the right, every step between, a hole at the top."""
    y, x = _grid(width, height)
    alpha = np.clip(1.6 * x - 0.5 * y + 0.1, 0, 1)
    hole = (np.abs(x - 0.6) < 0.08) & (np.abs(y - 0.25) < 0.1)
    return np.where(hole, 0.0, alpha)


@drawn_once
def vivid(width: int, height: int) -> Array:
    """Every corner of the colour cube and everything between, for spaces wider than sRGB: most must be clipped."""
    y, x = _grid(width, height)
    hue = np.stack([np.clip(np.abs((x * 6 + offset) % 6 - 3) - 1, 0, 1) for offset in (0, 4, 2)], axis=-1)
    made: Array = np.clip(hue * np.minimum(1, 2 * y)[..., None] + np.maximum(0, 2 * y - 1)[..., None] * (1 - hue), 0, 1)
    return made


@drawn_once
def inks(width: int, height: int) -> Array:
    """Cover of cyan, magenta, yellow and black in 0..1, each growing in a direction of its own."""
    y, x = _grid(width, height)
    return np.stack([0.5 * x, 0.5 * y, 0.6 * (1 - x), 0.4 * (1 - y) * x], axis=-1)


def dark(width: int = 256, height: int = 16) -> Array:
    """A grey wedge over the darkest eighth, where banding shows first."""
    return np.broadcast_to(np.linspace(0, 1 / 8, width), (height, width))


def map_of_places(width: int, height: int) -> Array:
    """Red grows to the right and green downwards; blue is constant. Every filter preserves ramps, so red and green of
    an output show which place of the source each of its pixels is from."""
    y, x = _grid(width, height)
    return np.stack([0.1 + 0.8 * x, 0.1 + 0.8 * y, np.full_like(x, 0.25)], axis=-1)


def _grid(width: int, height: int) -> tuple[Array, Array]:
    """The middle of every pixel, y then x, in shares of the picture."""
    y, x = np.mgrid[0:height, 0:width]
    return (y + 0.5) / height, (x + 0.5) / width


def _blend(corners: Array, x: Array, y: Array) -> Array:
    x, y = x[..., None], y[..., None]
    top: Array = corners[0, 0] * (1 - x) + corners[0, 1] * x
    bottom = corners[1, 0] * (1 - x) + corners[1, 1] * x
    made: Array = top * (1 - y) + bottom * y
    return made


def levels(picture: Array, maximum: int = 255) -> Array:
    """0..1 → whole levels of 8 (255) or 16 (65535) bits."""
    return np.rint(np.clip(picture, 0, 1) * maximum).astype(np.uint8 if maximum < 256 else np.uint16)
