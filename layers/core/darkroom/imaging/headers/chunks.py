"""Chunks, the parts of PNG and RIFF files: a name, a length, and data of that length."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from darkroom.imaging.headers.header import MAX_PIECES
from darkroom.imaging.headers.refusals import InPieces


def chunks(body: bytes, start: int, layout: str, *, trailer: int) -> Iterator[tuple[bytes, int, int]]:
    """The chunks of a PNG (length, then name, then a trailer) or a RIFF file: name, position of the data, its length.

    RIFF pads to even lengths and PNG has a CRC after the data. The last chunk may reach beyond the end of the file.
    """
    at = start
    for _ in range(MAX_PIECES):
        if at + 8 > len(body):
            return
        first, second = struct.unpack_from(layout, body, at)
        name, length = (first, second) if isinstance(first, bytes) else (second, first)
        yield name, at + 8, length
        at += 8 + length + (trailer or length % 2)
    raise InPieces
