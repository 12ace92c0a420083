"""The frames of an APNG (W3C Portable Network Graphics, third edition, 11.3.6), with their times."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial

from darkroom.imaging.animation.frames import MAX_PLAYS, Disposal, Frame, Timeline, shown
from darkroom.imaging.headers.apng import FrameChunks, FrameControl, shared_chunks, still_png
from darkroom.imaging.headers.chunks import chunks
from darkroom.imaging.headers.refusals import truncated

_GREY = (0, 4)
_DISPOSALS: tuple[Disposal, ...] = ("none", "background", "previous")
_OF_FRAMES = (b"fcTL", b"IDAT", b"fdAT")


def png_timeline(body: bytes, most: int) -> Timeline:
    """The timeline of an APNG, up to `most` frames. One that only lacks what comes after its last frame is whole."""
    width, height = struct.unpack_from(">II", body, 16)
    view = memoryview(body)
    frame_chunks, ended = FrameChunks(), False
    for name, at, length in chunks(body, 8, ">I4s", trailer=4):
        if name in _OF_FRAMES and at + length > len(body):
            raise truncated()
        frame_chunks.take(name, view[at : at + length], length)
        if name == b"IEND" or frame_chunks.is_read or frame_chunks.count > most:
            ended = True
            break
    if not ended and frame_chunks.count < frame_chunks.claimed:  # guard: animation-apng-frames-missing
        raise truncated()
    shared = shared_chunks(body)
    pictures = [frame_chunks.frame(index, (width, height)) for index in range(min(frame_chunks.count, most))]
    ends = _ends([control for control, _ in pictures])
    frames = []
    for number, (control, picture) in enumerate(pictures, start=1):
        frames.append(
            Frame(
                left=control.left,
                top=control.top,
                width=control.width,
                height=control.height,
                milliseconds=ends(number) - ends(number - 1),
                file=partial(still_png, body, control, shared, picture, ended=ended or number < frame_chunks.count),
                disposal=_DISPOSALS[control.disposal] if control.disposal < len(_DISPOSALS) else "none",
                replaces=control.blend == 0,
            )
        )
    return Timeline(
        width=width,
        height=height,
        plays=min(frame_chunks.plays, MAX_PLAYS),
        frames=tuple(frames),
        grey=body[25] in _GREY,
    )


def _ends(controls: Sequence[FrameControl]) -> Callable[[int], int]:
    """When each frame ends, in milliseconds: rounded there, so that the errors of fractions do not add up."""
    ends, end = [0], Fraction(0)
    for control in controls:
        end += shown(Fraction(control.delay * 1000, control.delay_parts or 100))  # 0 means hundredths
        ends.append(round(end))
    return ends.__getitem__
