"""Boxes, the parts of AVIF and HEIC files (ISO/IEC 14496-12, 4.2): a length, a name, and data."""

from __future__ import annotations

import struct

from darkroom.imaging.headers.header import MAX_PIECES


def reaches_end(body: bytes) -> bool:
    """Whether every box of the file is all there."""
    at = 0
    for _ in range(MAX_PIECES):
        if at + 8 > len(body):
            break
        (length,) = struct.unpack_from(">I", body, at)
        if length == 1 and at + 16 <= len(body):
            (length,) = struct.unpack_from(">Q", body, at + 8)
        if length < 8:  # it reaches to the end, or is broken
            return True
        at += length
    return at == len(body)
