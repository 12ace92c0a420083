"""Scales one decoded picture to all variants in a cascade: each from the smallest picture that is large enough."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

import pyvips

from darkroom.domain.recipes.recipes import EDGE, VariantSpec
from darkroom.imaging.alpha import premultiplied, unpremultiplied
from darkroom.imaging.scaling.filters import edge_colour, filtered
from darkroom.imaging.scaling.geometry import Placement

_KERNEL = "lanczos3"

_MOST_AT_ONCE = 11
"""Up to how many times smaller Lanczos alone is faster than averaging blocks first, as libvips does from four on."""


def scaled(image: pyvips.Image, width: int, height: int) -> pyvips.Image:
    """The picture at exactly `width` by `height` pixels, by Lanczos; alpha must be premultiplied."""
    across, down = width / image.width, height / image.height
    if across <= 1 and down <= 1:
        return image if across == down == 1 else _smaller(image, across, down)
    # libvips enlarges by an affine transform that lands half a pixel off and shifts the other side with it: so
    # shrinking is done first, and the transform is told where the pixels' centres are.
    image = _smaller(image, min(across, 1), min(down, 1))
    return image.affine(
        [max(across, 1), 0, 0, max(down, 1)],
        interpolate=pyvips.Interpolate.new("bicubic"),
        oarea=[0, 0, width, height],
        idx=0.5,
        idy=0.5,
        odx=-0.5,
        ody=-0.5,
        extend="copy",
        premultiplied=True,
    )


def _smaller(image: pyvips.Image, across: float, down: float) -> pyvips.Image:
    gap = 0.0 if min(across, down) * _MOST_AT_ONCE > 1 else 2.0  # libvips's own, in resize.c
    return image.resize(across, vscale=down, kernel=_KERNEL, gap=gap)


def scaled_in_place(image: pyvips.Image, extent: tuple[float, float], width: int, height: int) -> pyvips.Image:
    """A shrunk picture, which has no alpha, at `width` by `height` pixels. What it shows would cover `extent` of its
    own pixels, but the last part of a pixel was dropped; `padding` exists for both sides.

    A plain resize would stretch what is left. libvips's reductions take any step, but centre what does not fit: so the
    picture gets as many more rows and columns, copies of its edges, as make everything fall into place.
    """
    across, down = padding(image.width, extent[0], width), padding(image.height, extent[1], height)
    if across is None or down is None:
        raise ValueError(f"{extent} cannot be put onto {width} by {height} pixels")
    padded = image.embed(
        across.before,
        down.before,
        image.width + across.before + across.after,
        image.height + down.before + down.after,
        extend="copy",
    )
    reduced = padded.reducev(extent[1] / height, kernel=_KERNEL).reduceh(extent[0] / width, kernel=_KERNEL)
    return reduced.crop(across.first, down.first, width, height)


class Padding(NamedTuple):
    """How many pixels to add before and after, and which of the reduced ones is then the first."""

    before: int
    after: int
    first: int


@lru_cache(maxsize=64)
def padding(pixels: int, extent: float, wanted: int) -> Padding | None:
    """The padding that puts `extent` of a row of `pixels` onto `wanted` within a twentieth of a pixel, if there is one.

    reduceh.cpp and reducev.cpp of libvips: a reduction has round(pixels ÷ step) pixels, and number n of them is centred
    on (n + ½) × step - ½ - extra ÷ 2, where extra is what they take more than there is. The wanted ones are in place if
    `more` further ones would end at a whole pixel. That is never so if the step is nearly a whole number or a half.
    """
    step = extent / wanted
    paddings = []
    for more in range(-_MOST_MORE, _MOST_MORE + 1):
        end = round(extent + more * step)
        if abs(extent + more * step - end) / 2 > _MOST_ERROR:
            continue
        for first in range(max(0, -more), max(0, -more) + _MOST_FIRST):
            reduced = wanted + more + 2 * first
            for total in range(math.ceil((reduced - 0.5) * step), math.ceil((reduced + 0.5) * step)):
                before, odd = divmod(total - end, 2)
                after = total - pixels - before
                if before >= 0 and after >= 0 and not odd:
                    paddings.append((before + after, Padding(before, after, first)))
    return min(paddings)[1] if paddings else None


_MOST_ERROR = 0.05
_MOST_MORE, _MOST_FIRST = 24, 4
"""Among so many choices there is one for 96 of 100 sizes, mostly of a few pixels."""


def upright(image: pyvips.Image, orientation: int) -> pyvips.Image:
    """The picture in memory turned as its EXIF orientation says (CIPA DC-008, Orientation: 1 to 8)."""
    match orientation:
        case 2:
            return image.fliphor()
        case 3:
            return image.rot180()
        case 4:
            return image.flipver()
        case 5:
            return image.rot90().fliphor()
        case 6:
            return image.rot90()
        case 7:
            return image.rot270().fliphor()
        case 8:
            return image.rot270()
        case _:
            return image


def base_size(placements: Sequence[Placement], width: int, height: int) -> tuple[int, int]:
    """The smallest size of the whole picture, at most its own, from which every placement can be scaled down."""
    largest = max((placement.scaled for placement in placements), key=lambda size: size[0] * size[1])
    if all(p.scaled[0] <= largest[0] and p.scaled[1] <= largest[1] for p in placements):
        needed = largest
    else:  # stretched variants: one is the widest, another the tallest
        scale = max(max(p.scaled[0] / width, p.scaled[1] / height) for p in placements)
        needed = (round(width * scale), round(height * scale))
    return min(needed[0], width), min(needed[1], height)


def cascade(
    picture: pyvips.Image, jobs: Sequence[tuple[VariantSpec, Placement]], *, leaders: int
) -> Iterator[tuple[int, pyvips.Image, pyvips.Image]]:
    """Every variant's picture, largest first: its index in `jobs`, the picture, and the whole picture that it comes
    from.

    `picture` is the original in memory, in sRGB. The whole picture is at the variant's scale or larger, with alpha
    premultiplied. The variant's own picture is finished: alpha as files store it, cropped or filled. Scaling in steps
    costs a third of scaling each variant from the original, and no quality metric shows a difference. No variant comes
    of those behind the first `leaders` jobs, so whatever these are, all others stay as they are.
    """
    base = premultiplied(picture).copy_memory()
    stages = [base]
    order = sorted(range(len(jobs)), key=lambda index: -jobs[index][1].scaled[0] * jobs[index][1].scaled[1])
    for index in order:
        spec, placement = jobs[index]
        width, height = placement.scaled
        stage = min(
            (stage for stage in stages if stage.width >= width and stage.height >= height),
            key=lambda stage: stage.width * stage.height,
            default=base,
        )
        image = scaled(stage, width, height)
        # A stretched picture is no source for the others.
        # guard: engine-followers-change-no-other
        if index < leaders and placement.is_whole and spec.fit != "exact" and image is not stage:
            stage = image = image.copy_memory()
            stages.append(stage)
        straight = picture if image is base else unpremultiplied(image)
        yield index, _placed(straight, spec, placement), stage


def _placed(image: pyvips.Image, spec: VariantSpec, placement: Placement) -> pyvips.Image:
    width, height = placement.size
    if not placement.is_whole and placement.left >= 0 and placement.top >= 0 and spec.fit == "cover":
        return filtered(image.crop(placement.left, placement.top, width, height), spec)
    image = filtered(image, spec)
    if placement.is_whole:
        return image
    red, green, blue, alpha = edge_colour(image, placement) if spec.background == EDGE else colour_of(spec.background)
    if image.bands < 3 and not red == green == blue:
        image = image.colourspace("srgb")
    if alpha < 255 and not image.hasalpha():
        image = image.bandjoin(255)
    background = [red, green, blue] if image.bands >= 3 else [red]
    if image.hasalpha():
        background.append(alpha)
    return image.embed(-placement.left, -placement.top, width, height, extend="background", background=background)


def colour_of(background: str) -> tuple[int, int, int, int]:
    """Red, green, blue and alpha of `#rrggbb` or `#rrggbbaa`."""
    red, green, blue, *alpha = bytes.fromhex(background.removeprefix("#"))
    return red, green, blue, alpha[0] if alpha else 255
