"""Composes an animation's frames: what a browser shows at each time, one whole picture after the other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pyvips
from PIL import Image

from darkroom.domain.images.limits import Limits
from darkroom.imaging.animation.frames import Frame, Timeline
from darkroom.imaging.decode import open_original

type _Box = tuple[int, int, int, int]


def composed(timeline: Timeline, limits: Limits) -> Iterator[Image.Image]:
    """The canvas during each frame, in LA or RGBA with eight bits per channel; it is only valid until the next one.

    Each frame is opened as if its picture were a file of its own: the limits, and the refusals, are those of stills.
    The memory is the canvas, a frame, and what that frame covers.
    """
    canvas = Image.new("LA" if timeline.grey else "RGBA", (timeline.width, timeline.height))
    # A frame may be a thin line of the canvas.
    limits = replace(limits, max_aspect=max(limits.max_aspect, limits.max_side))
    for frame in timeline.frames:
        box = _visible(frame, timeline)
        before = canvas.crop(box) if box and frame.disposal == "previous" else None
        if box:
            _draw(frame, canvas, box, limits)
        yield canvas
        if before is not None:
            canvas.paste(before, box)  # guard: animation-covered-area-restored
        elif box and frame.disposal == "background":
            canvas.paste((0,) * len(canvas.getbands()), box)


def is_uniform(canvas: Image.Image) -> bool:
    """Whether the canvas has one colour, or is transparent everywhere."""
    *colours, alpha = canvas.getextrema()
    return alpha == (0, 0) or all(low == high for low, high in (*colours, alpha))


def _visible(frame: Frame, timeline: Timeline) -> _Box | None:
    """The frame's rectangle on the canvas; None if nothing of it is there."""
    right, bottom = min(frame.left + frame.width, timeline.width), min(frame.top + frame.height, timeline.height)
    return (frame.left, frame.top, right, bottom) if right > frame.left and bottom > frame.top else None


def _draw(frame: Frame, canvas: Image.Image, box: _Box, limits: Limits) -> None:
    original = open_original(frame.file(), limits)
    with original.decoding():
        image = original.opened(1)
        if image.format == "ushort":
            image = (image >> 8).cast("uchar")
        covers = frame.replaces or not image.hasalpha()  # guard: animation-replace-not-blended
        picture = _for_canvas(image, canvas.mode)
    # A damaged file's picture may be another size than its structure says.
    picture = picture.crop((0, 0, box[2] - box[0], box[3] - box[1]))
    if covers:
        canvas.paste(picture, box)
    else:
        canvas.alpha_composite(picture, box[:2])


def _for_canvas(image: pyvips.Image, mode: str) -> Image.Image:
    if not image.hasalpha():
        image = image.bandjoin(255)
    if mode == "RGBA" and image.bands == 2:
        grey = image[0]
        image = grey.bandjoin([grey, grey, image[1]])
    return Image.frombytes(mode, (image.width, image.height), image.write_to_memory())
