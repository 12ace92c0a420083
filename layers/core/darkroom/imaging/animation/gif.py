"""The frames of a GIF (GIF89a specification; the NETSCAPE2.0 extension for its plays)."""

from __future__ import annotations

import struct
from functools import partial

from darkroom.imaging.animation.frames import MAX_PLAYS, Disposal, Frame, Timeline, shown
from darkroom.imaging.headers.gif import EXTENSION, GRAPHIC_CONTROL, IMAGE, colour_table_bytes, gif_blocks, gif_header
from darkroom.imaging.headers.refusals import truncated

_DISPOSALS: dict[int, Disposal] = {2: "background", 3: "previous", 4: "previous"}
"""Some encoders write 4 for 3, and browsers follow them; any other number leaves the frame."""

_LOOPS = (b"\x0bNETSCAPE2.0\x03\x01", b"\x0bANIMEXTS1.0\x03\x01")


def gif_timeline(body: bytes, most: int) -> Timeline:
    """The timeline of a GIF, up to `most` frames. One that only lacks what comes after its last frame is whole.

    Frames keep their own colour tables.
    """
    header = gif_header(body)
    table = 13 + colour_table_bytes(body[10])
    frames: list[Frame] = []
    plays = 1
    flags, delay, transparent = 0, 0, 0
    for kind, start, end in gif_blocks(body):
        # guard: animation-gif-frame-truncated
        if end > len(body) and (kind == IMAGE or body[start + 1] == GRAPHIC_CONTROL):
            raise truncated()
        if kind == EXTENSION:
            if body[start + 1] == GRAPHIC_CONTROL and body[start + 2] >= 4:
                flags, delay, transparent = struct.unpack_from("<BHB", body, start + 3)
            elif body[start + 1] == 0xFF and body[start + 2 : start + 16] in _LOOPS:
                # It counts how often the animation is repeated after the first time.
                (repeated,) = struct.unpack_from("<H", body, start + 16)
                plays = min(repeated + 1, MAX_PLAYS) if repeated else 0  # guard: animation-gif-repeat-count
        elif kind == IMAGE:
            left, top, width, height = struct.unpack_from("<HHHH", body, start + 1)
            control = b"!\xf9\x04\x01\0\0%c\0" % transparent if flags & 1 else b""
            frames.append(
                Frame(
                    left=left,
                    top=top,
                    width=width,
                    height=height,
                    milliseconds=shown(delay * 10),
                    file=partial(_still, body, table, control, start, end),
                    disposal=_DISPOSALS.get(flags >> 2 & 7, "none"),
                )
            )
            flags, delay, transparent = 0, 0, 0
            if len(frames) == most:
                break
    return Timeline(width=header.width, height=header.height, plays=plays, frames=tuple(frames))


def _still(body: bytes, table: int, control: bytes, start: int, end: int) -> bytes:
    """A GIF whose screen is the image that lies between `start` and `end`."""
    size = body[start + 5 : start + 9]
    return b"".join(
        (b"GIF89a", size, body[10:table], control, b",\0\0\0\0", size, memoryview(body)[start + 9 : end], b";")
    )
