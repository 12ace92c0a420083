"""GIF (GIF89a specification): its blocks, and those of the first frame."""

from __future__ import annotations

import struct

from darkroom.imaging.headers.header import MAX_PIECES, Header
from darkroom.imaging.headers.refusals import truncated, undecodable


def gif_header(body: bytes) -> Header:
    """The header of a GIF file."""
    width, height, flags = struct.unpack_from("<HHB", body, 6)
    at = 13 + _colour_table_bytes(flags)
    view = memoryview(body)
    parts: list[bytes | memoryview] = [view[:at]]
    frames, complete = 0, False
    frame, offset = (0, 0), (0, 0)
    control: memoryview | None = None
    budget = 10 * MAX_PIECES  # of sub-blocks, in the whole file
    for _ in range(MAX_PIECES):
        block = body[at] if at < len(body) else None
        if block == 0x3B:
            complete = True
            break
        start = at
        if block == 0x21:  # an extension: a label, then sub-blocks
            at, budget = _after_sub_blocks(body, at + 2, budget)
            if body[start + 1] == 0xF9 and frames == 0:  # graphic control: which colour is transparent
                control = view[start:at]
        elif block == 0x2C:
            left, top, frame_width, frame_height, flags = struct.unpack_from("<HHHHB", body, at + 1)
            # Its own colour table, the LZW code size, then sub-blocks.
            at, budget = _after_sub_blocks(body, at + 11 + _colour_table_bytes(flags), budget)
            if frames == 0:
                offset, frame = (left, top), (frame_width, frame_height)
                parts += [control, view[start:at]] if control is not None else [view[start:at]]
            frames += 1
        else:
            break
    else:
        raise undecodable("it is cut into too many pieces")
    if frames == 0:
        raise undecodable("it has no picture") if complete else truncated()
    # Decoders widen the screen for a first frame that reaches beyond it.
    width, height = max(width, offset[0] + frame[0]), max(height, offset[1] + frame[1])
    return Header(
        format="gif",
        width=width,
        height=height,
        parts=(*parts, b"\x3b"),
        offset=offset,
        frame=frame,
        frames=frames,
        decoder_bytes=width * height * 8,  # libnsgif's canvas and libvips's copy of it
        complete=complete,
    )


def _colour_table_bytes(flags: int) -> int:
    return 3 << (flags & 7) + 1 if flags & 0x80 else 0


def _after_sub_blocks(body: bytes, at: int, budget: int) -> tuple[int, int]:
    """The position after the sub-blocks that begin at `at`, and what is left of the budget of sub-blocks."""
    for steps in range(budget):
        if at >= len(body) or body[at] == 0:
            return at + 1, budget - steps
        at += body[at] + 1
    raise undecodable("it is cut into too many pieces")
