"""Walks EXIF (CIPA DC-008) no further than its first directory, which has the orientation and who made the picture."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

_ORIENTATION, _SHORT, _LONG = 0x0112, 3, 4
_MAX_ENTRIES = 512


@dataclass(frozen=True, kw_only=True)
class ExifEntry:
    """An entry of a directory; `at` is where its value stands, or the offset of its value. `endian` is for `struct`."""

    tag: int
    kind: int
    count: int
    at: int
    endian: str


def first_directory(exif: bytes) -> Iterator[ExifEntry]:
    """The entries of the first directory of an EXIF block (a TIFF file), 512 at most; none if it is no EXIF.

    Raises struct.error where the block ends too early.
    """
    endian = {b"II": "<", b"MM": ">"}.get(exif[:2])
    if endian is None:
        return
    (directory,) = struct.unpack_from(f"{endian}I", exif, 4)
    (entries,) = struct.unpack_from(f"{endian}H", exif, directory)
    for index in range(min(entries, _MAX_ENTRIES)):
        at = directory + 2 + 12 * index
        tag, kind, count = struct.unpack_from(f"{endian}HHI", exif, at)
        yield ExifEntry(tag=tag, kind=kind, count=count, at=at + 8, endian=endian)


def orientation_in(exif: bytes) -> int:
    """The orientation in the first directory of an EXIF block; 1 if there is no valid one."""
    try:
        for entry in first_directory(exif):
            if entry.tag == _ORIENTATION and entry.count == 1 and entry.kind in (_SHORT, _LONG):
                layout = f"{entry.endian}{'H' if entry.kind == _SHORT else 'I'}"
                (value,) = struct.unpack_from(layout, exif, entry.at)
                return value if 1 <= value <= 8 else 1
    except struct.error:
        return 1
    return 1
