"""GIF (GIF89a specification): its blocks, and those of the first frame."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from darkroom.imaging.headers.header import MAX_PIECES, ImageHeader
from darkroom.imaging.headers.refusals import InPieces, truncated, undecodable, walked

EXTENSION, IMAGE, TRAILER = 0x21, 0x2C, 0x3B
GRAPHIC_CONTROL = 0xF9
"""The label of the extension that says which colour of the next image is transparent, for example."""


def gif_header(body: bytes) -> ImageHeader:
    """The header of a GIF file."""
    width, height, flags = struct.unpack_from("<HHB", body, 6)
    view = memoryview(body)
    parts: list[bytes | memoryview] = [view[: 13 + colour_table_bytes(flags)]]
    frames, complete = 0, False
    frame, offset = (0, 0), (0, 0)
    control: memoryview | None = None
    blocks = walked(gif_blocks(body), has_enough=lambda: frames > 1)
    for kind, start, end in blocks:
        if kind == TRAILER:
            complete = True
        elif kind == EXTENSION:
            if body[start + 1] == GRAPHIC_CONTROL and frames == 0:
                control = view[start:end]
        else:
            if frames == 0:
                left, top, frame_width, frame_height = struct.unpack_from("<HHHH", body, start + 1)
                offset, frame = (left, top), (frame_width, frame_height)
                parts += [control, view[start:end]] if control is not None else [view[start:end]]
            frames += 1
    if frames == 0:
        raise undecodable("it has no picture") if complete else truncated()
    # Decoders widen the screen for a first frame that reaches beyond it.
    width, height = max(width, offset[0] + frame[0]), max(height, offset[1] + frame[1])
    return ImageHeader(
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


def gif_blocks(body: bytes) -> Iterator[tuple[int, int, int]]:
    """The kind, start and end of each block, up to the trailer or the first byte that begins none.

    The last block may reach beyond the end of the file.
    """
    at = 13 + colour_table_bytes(body[10])
    budget = 10 * MAX_PIECES  # of sub-blocks, in the whole file
    for _ in range(MAX_PIECES):
        start, kind = at, body[at] if at < len(body) else None
        if kind == EXTENSION:  # a label, then sub-blocks
            at, budget = _after_sub_blocks(body, at + 2, budget)
        elif kind == IMAGE:  # a descriptor, its own colour table, the LZW code size, then sub-blocks
            at, budget = _after_sub_blocks(body, at + 11 + colour_table_bytes(body[at + 9]), budget)
        elif kind == TRAILER:
            yield kind, at, at + 1
            return
        else:
            return
        yield kind, start, at
    raise InPieces


def colour_table_bytes(flags: int) -> int:
    """The size of the colour table that a screen or an image with these flags has."""
    return 3 << (flags & 7) + 1 if flags & 0x80 else 0


def _after_sub_blocks(body: bytes, at: int, budget: int) -> tuple[int, int]:
    """The position after the sub-blocks that begin at `at`, and what is left of the budget of sub-blocks."""
    for steps in range(budget):
        if at >= len(body) or body[at] == 0:
            return at + 1, budget - steps
        at += body[at] + 1
    raise InPieces
