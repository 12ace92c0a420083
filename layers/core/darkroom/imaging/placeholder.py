"""What a client can paint before the image arrives: a ThumbHash and the dominant colour."""

from __future__ import annotations

import base64
import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

PLACEHOLDER_SIDE = 24
"""The longer side, in pixels, of the picture that a placeholder is made from. ThumbHash keeps at most seven waves."""


@dataclass(frozen=True, kw_only=True)
class Placeholder:
    """`thumbhash` in base64 (https://evanw.github.io/thumbhash/), `color` as `#rrggbb`."""

    thumbhash: str
    color: str


def placeholder_of(width: int, height: int, rgba: bytes) -> Placeholder:
    """The placeholder of a small picture: rows of RGBA, four bytes per pixel, alpha not premultiplied."""
    return Placeholder(thumbhash=base64.b64encode(thumbhash(width, height, rgba)).decode(), color=dominant_colour(rgba))


def dominant_colour(rgba: bytes) -> str:
    """The mean of the fullest cell, with four levels per channel, weighted by alpha; white if nothing is visible."""
    cells: dict[tuple[int, int, int], list[int]] = defaultdict(lambda: [0, 0, 0, 0])
    for red, green, blue, alpha in zip(rgba[0::4], rgba[1::4], rgba[2::4], rgba[3::4], strict=True):
        cell = cells[red >> 6, green >> 6, blue >> 6]
        cell[0] += alpha
        cell[1] += red * alpha
        cell[2] += green * alpha
        cell[3] += blue * alpha
    weight, *sums = max(cells.values(), key=lambda cell: cell[0])
    if weight == 0:
        return "#ffffff"
    return "#" + "".join(f"{round(total / weight):02x}" for total in sums)


def thumbhash(width: int, height: int, rgba: bytes) -> bytes:
    """The ThumbHash of a picture of at most 100 pixels per side: 5 to 25 bytes.

    Follows the reference implementation (https://github.com/evanw/thumbhash, rgbaToThumbHash), with the cosine
    transform separated into rows and columns, which makes it fast enough here.
    """
    pixels = width * height
    alpha = [value / 255 for value in rgba[3::4]]
    total_alpha = sum(alpha)
    has_alpha = total_alpha < pixels
    red, green, blue = ([value / 255 for value in rgba[band::4]] for band in range(3))
    if has_alpha:  # transparent pixels take the picture's mean colour
        red, green, blue = (_on_its_mean(channel, alpha, total_alpha) for channel in (red, green, blue))
    limit = 5 if has_alpha else 7
    waves_x = max(1, _rounded(limit * width / max(width, height)))
    waves_y = max(1, _rounded(limit * height / max(width, height)))
    luminance = [(r + g + b) / 3 for r, g, b in zip(red, green, blue, strict=True)]
    yellow_blue = [(r + g) / 2 - b for r, g, b in zip(red, green, blue, strict=True)]
    red_green = [r - g for r, g in zip(red, green, strict=True)]

    l_dc, l_ac, l_scale = _waves(luminance, width, height, max(3, waves_x), max(3, waves_y))
    p_dc, p_ac, p_scale = _waves(yellow_blue, width, height, 3, 3)
    q_dc, q_ac, q_scale = _waves(red_green, width, height, 3, 3)
    landscape = width > height
    header = (
        _rounded(63 * l_dc)
        | _rounded(31.5 + 31.5 * p_dc) << 6
        | _rounded(31.5 + 31.5 * q_dc) << 12
        | _rounded(31 * l_scale) << 18
        | has_alpha << 23
    )
    shape = (
        (waves_y if landscape else waves_x)
        | _rounded(63 * p_scale) << 3
        | _rounded(63 * q_scale) << 9
        | landscape << 15
    )
    packed = bytearray(header.to_bytes(3, "little") + shape.to_bytes(2, "little"))
    waves = [*l_ac, *p_ac, *q_ac]
    if has_alpha:
        a_dc, a_ac, a_scale = _waves(alpha, width, height, 5, 5)
        packed.append(_rounded(15 * a_dc) | _rounded(15 * a_scale) << 4)
        waves += a_ac
    nibbles = [_rounded(15 * wave) for wave in waves]
    nibbles += [0] * (len(nibbles) % 2)
    packed += bytes(low | high << 4 for low, high in zip(nibbles[0::2], nibbles[1::2], strict=True))
    return bytes(packed)


def _on_its_mean(channel: Sequence[float], alpha: Sequence[float], total_alpha: float) -> list[float]:
    mean = math.sumprod(channel, alpha) / total_alpha if total_alpha else 0.0
    return [mean * (1 - a) + a * value for value, a in zip(channel, alpha, strict=True)]


@lru_cache(maxsize=64)
def _cosines(length: int, waves: int) -> list[list[float]]:
    return [[math.cos(math.pi / length * wave * (at + 0.5)) for at in range(length)] for wave in range(waves)]


def _waves(
    channel: Sequence[float], width: int, height: int, waves_x: int, waves_y: int
) -> tuple[float, list[float], float]:
    """The constant part of a channel, its lower triangle of cosine waves scaled to 0…1, and that scale."""
    rows = [channel[y * width : (y + 1) * width] for y in range(height)]
    columns = [[math.sumprod(row, cosine) for row in rows] for cosine in _cosines(width, waves_x)]
    cosines_y = _cosines(height, waves_y)
    waves = [
        math.sumprod(columns[cx], cosines_y[cy]) / (width * height)
        for cy in range(waves_y)
        for cx in range(waves_x)
        if cx * waves_y < waves_x * (waves_y - cy)
    ]
    constant, rest = waves[0], waves[1:]
    scale = max(map(abs, rest), default=0.0)
    if scale < 1e-9:  # the rounding errors of a flat channel are not waves
        scale = 0.0
    return constant, [0.5 + 0.5 / scale * wave if scale else 0.0 for wave in rest], scale


def _rounded(value: float) -> int:
    """To the nearest whole number, halves up, as JavaScript's Math.round does."""
    return math.floor(value + 0.5)
