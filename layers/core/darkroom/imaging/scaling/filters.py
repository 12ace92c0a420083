"""Sharpens and blurs a variant's picture, and finds the colour of its edge."""

from __future__ import annotations

from itertools import pairwise
from math import exp, floor, log, sqrt

import pyvips

from darkroom.domain.recipes.recipes import VariantSpec
from darkroom.imaging.alpha import premultiplied, unpremultiplied
from darkroom.imaging.scaling.geometry import Placement

_LEAST_WEIGHT = 0.02
"""A Gaussian's mask ends where its weight, next to that of the middle, is less: at 2.8 standard deviations."""

_MOST_WEIGHT = 64
"""With SIMD libvips convolves by whole weights of which the largest is at most this, and more than half of it (convi.c,
vips_convi_intize). It rounds other masks to such weights, and their sum, which is the brightness of the picture, moves.
"""


def filtered(image: pyvips.Image, spec: VariantSpec) -> pyvips.Image:
    """The picture, with straight alpha, blurred and then sharpened as `spec` asks.

    Sharpening is an unsharp mask: colour + (colour - blurred colour), clipped; it leaves alpha alone. Where the picture
    ends, its outermost pixels go on; what is transparent has no share in the colours around it.
    """
    if spec.blur is not None:
        image = _soft(image, spec.blur)
    if spec.sharpen is not None:
        soft, bands = _soft(image, spec.sharpen), image.bands - image.hasalpha()
        colours = image.extract_band(0, n=bands)
        sharp = (colours * 2 - soft.extract_band(0, n=bands)).cast(image.format)
        image = sharp.bandjoin(image[bands]) if image.hasalpha() else sharp
    return image


def _soft(image: pyvips.Image, sigma: float) -> pyvips.Image:
    weights, total = gaussian_mask(sigma)
    mask = pyvips.Image.new_from_array([weights], scale=total)
    return unpremultiplied(premultiplied(image).convsep(mask, precision="integer"))


def gaussian_mask(sigma: float) -> tuple[list[int], int]:
    """The weights of a Gaussian along one axis, whole numbers, and their sum, which is a power of two.

    libvips's `gaussblur` rounds each weight by itself, so that white becomes 247 at some standard deviations. Here
    the sums of the weights from either end are rounded: the error is passed on inwards, and a flat picture stays as it
    is, to the level.
    """
    shares = [exp(-(x**2) / (2 * sigma**2)) for x in range(floor(sigma * sqrt(-2 * log(_LEAST_WEIGHT))) + 1)]
    shares = [share / (2 * sum(shares) - shares[0]) for share in shares]
    total = 1
    # guard: filters-mask-weight-minimum
    while 2 * total * shares[0] < _MOST_WEIGHT - 1:  # rounding may add one to the middle
        total *= 2
    ends = [round(total * sum(shares[x:])) for x in range(1, len(shares) + 1)]
    side = [end - beyond for end, beyond in pairwise(ends)]
    return [*reversed(side), total - 2 * sum(side), *side], total  # guard: filters-flat-stays-flat


def edge_colour(image: pyvips.Image, placement: Placement) -> tuple[int, int, int, int]:
    """The colour, with alpha, that continues the picture beyond those of its sides that meet the fill.

    Of each channel it is the lower median of the outermost pixels of these sides, the colours weighted by alpha: what
    touches less than half of the edge, as a shoe does on a white floor, does not tint it. A pixel in two of the sides
    counts twice.
    """
    (width, height), (across, down) = placement.scaled, placement.size
    picture = premultiplied(image)
    sides = [picture.crop(x, 0, 1, height).rot90() for x in (0, width - 1) if across > width]
    sides += [picture.crop(0, y, width, 1) for y in (0, height - 1) if down > height]
    pixels = b"".join(side.write_to_memory() for side in sides)
    *colours, last = (_lower_median(pixels[band :: image.bands]) for band in range(image.bands))
    if not image.hasalpha():
        colours, last = [*colours, last], 255
    straight = [min(255, round(255 * colour / last)) if last else 255 for colour in colours]
    red, green, blue = straight if len(straight) == 3 else straight * 3
    return red, green, blue, last


def _lower_median(levels: bytes) -> int:
    return sorted(levels)[(len(levels) - 1) // 2]
