"""The frames of an APNG (W3C Portable Network Graphics, third edition, 11.3.6)."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from fractions import Fraction
from functools import partial

from darkroom.imaging.animation.frames import MAX_PLAYS, Disposal, Frame, Timeline, shown
from darkroom.imaging.headers.chunks import chunks
from darkroom.imaging.headers.refusals import truncated, undecodable

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_GREY = (0, 4)
_DISPOSALS: tuple[Disposal, ...] = ("none", "background", "previous")

_MAX_BYTES = {b"PLTE": 768, b"tRNS": 256}
"""The chunks that every frame needs, and the most bytes that they can have: 256 colours, and their alphas."""


def png_timeline(body: bytes) -> Timeline:
    """The timeline of an APNG: the frames that have a control chunk. A default picture without one is none of them."""
    width, height = struct.unpack_from(">II", body, 16)
    header = body[24:29]  # depth, colour type, methods
    view = memoryview(body)
    controls: list[tuple[int, ...]] = []
    pictures: list[list[memoryview]] = []
    plays, complete = 0, False
    for name, at, length in chunks(body, 8, ">I4s", trailer=4):
        if at + length + 4 > len(body):
            raise truncated()
        if name == b"acTL" and length == 8:
            (plays,) = struct.unpack_from(">I", body, at + 4)
        elif name == b"fcTL" and length == 26:
            controls.append(struct.unpack_from(">IIIIHHBB", body, at + 4))
            pictures.append([])
        elif name == b"IDAT" and len(controls) == 1:
            pictures[-1].append(view[at : at + length])
        elif name == b"fdAT" and length >= 4 and controls:
            pictures[-1].append(view[at + 4 : at + length])
        elif name == b"IEND":
            complete = True
            break
    if not complete:
        raise truncated()
    before = _before_pictures(body)
    ends = _ends(controls)
    frames = []
    for number, (control, picture) in enumerate(zip(controls, pictures, strict=True)):
        frame_width, frame_height, left, top, _, _, disposal, blend = control
        if not picture or 0 in (frame_width, frame_height):
            raise undecodable(f"frame {number + 1} has no picture")
        if left + frame_width > width or top + frame_height > height:
            raise undecodable(f"frame {number + 1} lies outside the canvas")
        frames.append(
            Frame(
                left=left,
                top=top,
                width=frame_width,
                height=frame_height,
                milliseconds=ends(number + 1) - ends(number),
                file=partial(_still, struct.pack(">II", frame_width, frame_height) + header, before, picture),
                disposal=_DISPOSALS[disposal] if disposal < len(_DISPOSALS) else "none",
                replaces=blend == 0,
            )
        )
    return Timeline(
        width=width,
        height=height,
        plays=min(plays, MAX_PLAYS),
        frames=tuple(frames),
        grey=header[1] in _GREY,
    )


def _before_pictures(body: bytes) -> dict[bytes, bytes]:
    """The chunks that every frame needs. Decoders ignore those that come after the first picture."""
    found: dict[bytes, bytes] = {}
    for name, at, length in chunks(body, 8, ">I4s", trailer=4):
        if name == b"IDAT":
            break
        if name in _MAX_BYTES:
            if name in found or length > _MAX_BYTES[name]:
                raise undecodable(f"its {name.decode()} chunk is too long, or one of two")
            found[name] = body[at : at + length]
    return found


def _ends(controls: list[tuple[int, ...]]) -> Callable[[int], int]:
    """When each frame ends, in milliseconds: rounded there, so that the errors of fractions do not add up."""
    ends, end = [0], Fraction(0)
    for control in controls:
        seconds, parts = control[4:6]
        end += shown(Fraction(seconds * 1000, parts or 100))  # 0 means hundredths
        ends.append(round(end))
    return ends.__getitem__


def _still(header: bytes, before: dict[bytes, bytes], picture: list[memoryview]) -> bytes:
    """A PNG of one frame."""
    chunked = [(b"IHDR", header), *before.items(), (b"IDAT", b"".join(picture)), (b"IEND", b"")]
    return _SIGNATURE + b"".join(
        struct.pack(">I4s", len(data), name) + data + struct.pack(">I", zlib.crc32(data, zlib.crc32(name)))
        for name, data in chunked
    )
