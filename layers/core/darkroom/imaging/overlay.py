"""Lays pictures over a variant, after it is scaled, cropped, filtered and filled, and before it is encoded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import pyvips

from darkroom.domain.recipes.recipes import Overlay
from darkroom.imaging.alpha import premultiplied
from darkroom.imaging.scaling.geometry import ANCHORS
from darkroom.imaging.scaling.resize import scaled

type Size = tuple[int, int]


class OverlayPicture(NamedTuple):
    """A picture to lay over others: in memory, upright, in sRGB, at most as large as its file or as the largest
    variant shows it. `size` is the upright size of the file."""

    image: pyvips.Image
    size: Size


def shown_size(overlay: Overlay, size: Size, variant: Size) -> Size:
    """The size at which a variant of the size `variant` shows the overlay, whose file has the upright size `size`.

    It has the overlay's own shape and its share of the variant's width, unless it would then be higher than the
    variant. A side is at least one pixel.
    """
    scale = min(overlay.scale * variant[0] / size[0], variant[1] / size[1])
    width, height = max(1, round(size[0] * scale)), max(1, round(size[1] * scale))
    return min(width, variant[0]), min(height, variant[1])


def overlaid(image: pyvips.Image, overlays: Sequence[Overlay], pictures: Mapping[str, OverlayPicture]) -> pyvips.Image:
    """The variant's picture, with straight alpha, under the overlays, each over those before it.

    The pictures are by their images' ids. Each is laid "over" in the sense of Porter and Duff, in sRGB as it is
    encoded, as browsers do. Where the variant is opaque it stays so.
    """
    for overlay in overlays:
        # A chain would calculate what is under an overlay twice for each that follows.
        image = _under(image.copy_memory(), overlay, pictures[overlay.image]).copy_memory()
    return image


def _under(image: pyvips.Image, overlay: Overlay, picture: OverlayPicture) -> pyvips.Image:
    image_size = image.width, image.height
    size = shown_size(overlay, picture.size, image_size)
    layer = picture.image
    if image.bands > 2 or layer.bands > 2:
        image, layer = image.colourspace("srgb"), layer.colourspace("srgb")
    layer = scaled(premultiplied(layer if layer.hasalpha() else layer.bandjoin(255)), *size)
    margin = round(overlay.margin * min(image_size))
    across, down = ANCHORS[overlay.gravity]
    left, top = _start(across, size[0], image_size[0], margin), _start(down, size[1], image_size[1], margin)
    if overlay.tile:
        step = size[0] + margin, size[1] + margin
        before = -left % step[0], -top % step[1]
        times = (-(-(image_size[0] + before[0]) // step[0]), -(-(image_size[1] + before[1]) // step[1]))
        layer = layer.copy_memory().embed(0, 0, *step, extend="black").replicate(*times).crop(*before, *image_size)
        left = top = 0
    part = image.crop(left, top, layer.width, layer.height)
    return image.insert(_over(layer, part, overlay.opacity), left, top)


def _start(anchor: float, length: int, side: int, margin: int) -> int:
    """Where the overlay begins along one side: at the margin from the edge that it is anchored to, and never outside
    the variant."""
    free = side - length
    return min(max(0, int(margin + anchor * (free - 2 * margin))), free)


def _over(layer: pyvips.Image, below: pyvips.Image, opacity: float) -> pyvips.Image:
    """`layer`, whose alpha is premultiplied, over `below`, whose alpha is not, as `below` stores its pixels."""
    layer = layer.unpremultiply() * [*[1] * (layer.bands - 1), opacity]
    # Given bytes, libvips drops fractions, which darkens the picture.
    space = "srgb" if below.bands > 2 else "b-w"
    mixed = below.cast("float").composite2(layer, "over", compositing_space=space)  # guard: overlays-colour-rounding
    return mixed.extract_band(0, n=below.bands).rint().cast(below.format)
