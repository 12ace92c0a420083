"""Planted animations: the same steps as a GIF, an APNG or a WebP, and what a browser shows of them, by formula."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tests.engine.golden import gif_files, png_files, webp_files
from tests.engine.golden.colours import Array

RED, GREEN, BLUE, GOLD, CLEAR = (
    (200, 30, 40, 255),
    (20, 160, 60, 255),
    (40, 60, 220, 255),
    (240, 190, 20, 255),
    (0, 0, 0, 0),
)

_DISPOSALS = {"none": 0, "background": 1, "previous": 2}


@dataclass(frozen=True, kw_only=True)
class Step:
    """RGBA of eight bits at (left, top), shown for some milliseconds; `over` blends it, otherwise it replaces."""

    samples: Array
    left: int = 0
    top: int = 0
    milliseconds: int = 100
    disposal: str = "none"
    over: bool = True


def block(width: int, height: int, *colours: tuple[int, int, int, int]) -> Array:
    """Vertical stripes of these colours."""
    samples = np.zeros((height, width, 4), np.uint8)
    for number, colour in enumerate(colours):
        samples[:, number * width // len(colours) : (number + 1) * width // len(colours)] = colour
    return samples


STEPS = (
    Step(samples=block(24, 16, RED, CLEAR, GREEN), left=4, top=2, milliseconds=70),
    Step(samples=block(12, 10, BLUE, CLEAR), left=10, top=8, milliseconds=120, disposal="background"),
    Step(samples=block(10, 20, GOLD), left=2, top=4, milliseconds=90, disposal="previous"),
    Step(samples=block(8, 8, CLEAR, GREEN), left=20, top=12, milliseconds=500),
    Step(samples=block(40, 30, RED, BLUE, GOLD, CLEAR), milliseconds=40, disposal="background"),
    Step(samples=block(6, 6, GREEN), left=34, top=24, milliseconds=110),
)
"""Every disposal after every kind of frame; the canvas is 40 by 30 pixels."""

SIZE = (40, 30)


def shown(size: tuple[int, int], steps: Sequence[Step]) -> list[Array]:
    """What the canvas shows at each step: RGBA of eight bits, zero where it is transparent."""
    canvas = np.zeros((size[1], size[0], 4))
    pictures = []
    for step in steps:
        rows = slice(step.top, min(size[1], step.top + step.samples.shape[0]))
        columns = slice(step.left, min(size[0], step.left + step.samples.shape[1]))
        before = canvas.copy()
        drawn = step.samples[: rows.stop - rows.start, : columns.stop - columns.start] / 255
        canvas[rows, columns] = _over(drawn, canvas[rows, columns]) if step.over else drawn
        seen = canvas.copy()
        seen[seen[..., 3] == 0] = 0
        pictures.append(np.round(seen * 255).astype(np.uint8))
        if step.disposal == "previous":
            canvas = before
        elif step.disposal == "background":
            canvas[rows, columns] = 0
    return pictures


def _over(above: Array, below: Array) -> Array:
    alpha = above[..., 3:] + below[..., 3:] * (1 - above[..., 3:])
    colours = above[..., :3] * above[..., 3:] + below[..., :3] * below[..., 3:] * (1 - above[..., 3:])
    return np.concatenate([np.divide(colours, alpha, out=np.zeros_like(colours), where=alpha > 0), alpha], axis=2)


def gif(size: tuple[int, int], steps: Sequence[Step], *, plays: int = 0, local: bool = False) -> bytes:
    """A GIF, whose pixels are opaque or transparent."""
    colours = np.zeros((256, 3), np.uint8)
    palette = sorted({tuple(map(int, pixel)) for step in steps for pixel in step.samples.reshape(-1, 4)} - {CLEAR})
    colours[: len(palette)] = [colour[:3] for colour in palette]
    number = {colour: index for index, colour in enumerate(palette)}
    frames = []
    for step in steps:
        indices = np.array([[number.get(tuple(map(int, pixel)), 255) for pixel in row] for row in step.samples])
        frames.append(
            gif_files.Frame(
                indices=indices,
                left=step.left,
                top=step.top,
                transparent=255 if (indices == 255).any() else None,
                disposal=_DISPOSALS[step.disposal] + 1,
                delay=step.milliseconds // 10,
                colours=colours if local else None,
                interlaced=local,
            )
        )
    repeated = None if plays == 1 else max(0, plays - 1)
    return gif_files.gif(size, frames, colours=None if local else colours, background=3, repeated=repeated)


def apng(
    size: tuple[int, int], steps: Sequence[Step], *, plays: int = 0, hidden: Array | None = None, colour_type: int = 6
) -> bytes:
    """An APNG; `hidden` is a default picture that is no part of the animation. Its first frame is the whole canvas."""
    shown = [
        png_files.Shown(
            samples=step.samples if colour_type == png_files.RGBA else step.samples[..., :1],
            left=step.left,
            top=step.top,
            timing=(step.milliseconds, 1000, _DISPOSALS[step.disposal], step.over),
        )
        for step in steps
    ]
    return png_files.timed_apng(size, shown, colour_type, plays=plays, apart=hidden, cut=10)


def webp(
    size: tuple[int, int], steps: Sequence[Step], *, plays: int = 0, after: Sequence[webp_files.Chunk] = ()
) -> bytes:
    """A lossless WebP on a loud background colour; positions are even, and it cannot restore what was before."""
    frames = [
        (step.samples, step.left, step.top, step.milliseconds, (step.disposal == "background") | (not step.over) << 1)
        for step in steps
    ]
    return webp_files.timed_animation(size, frames, plays=plays, after=after)


def full_canvas(size: tuple[int, int], step: Step) -> Step:
    """The step as one that fills the canvas, which an APNG's first frame must."""
    samples = np.zeros((size[1], size[0], 4), np.uint8)
    height, width = step.samples.shape[:2]
    samples[step.top : step.top + height, step.left : step.left + width] = step.samples
    return replace(step, samples=samples, left=0, top=0)


def forgetful(steps: Sequence[Step]) -> tuple[Step, ...]:
    """The steps without the disposal that WebP does not have."""
    return tuple(replace(step, disposal="none") if step.disposal == "previous" else step for step in steps)
