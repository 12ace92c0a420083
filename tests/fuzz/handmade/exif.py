"""EXIF by hand: image file directories (TIFF 6.0) that end, and some that do not."""

from __future__ import annotations

import struct
from collections.abc import Sequence

ORIENTATION, EXIF_IFD, GPS_IFD, INTEROPERABILITY_IFD, THUMBNAIL, MAKER_NOTE = (
    0x0112,
    0x8769,
    0x8825,
    0xA005,
    0x0201,
    0x927C,
)
BYTE, ASCII, SHORT, LONG, RATIONAL, UNDEFINED = 1, 2, 3, 4, 5, 7


def entry(tag: int, kind: int, count: int, value: int) -> bytes:
    """A directory entry: its value, or the offset of its value."""
    return struct.pack("<HHII", tag, kind, count, value)


def directory(entries: Sequence[bytes], *, following: int = 0, count: int | None = None) -> bytes:
    """A directory; `count` is the false count that it claims, if any, `following` the offset of the next directory."""
    return (
        struct.pack("<H", len(entries) if count is None else count) + b"".join(entries) + struct.pack("<I", following)
    )


def exif(*parts: bytes, first: int = 8) -> bytes:
    """A TIFF file of these parts, which begin at its ninth byte."""
    return struct.pack("<2sHI", b"II", 42, first) + b"".join(parts)


def orientation(value: int, *, kind: int = SHORT, count: int = 1) -> bytes:
    """What a camera writes that was not held level."""
    return exif(directory([entry(ORIENTATION, kind, count, value)]))
