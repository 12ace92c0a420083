"""EXIF blocks written from the specification (CIPA DC-008): an orientation, and other data that a camera writes."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tests.engine.golden.colours import Array

ORIENTATION = 0x0112

STORED_SIDES = {
    1: ("top", "left"),
    2: ("top", "right"),
    3: ("bottom", "right"),
    4: ("bottom", "left"),
    5: ("left", "top"),
    6: ("right", "top"),
    7: ("right", "bottom"),
    8: ("left", "bottom"),
}
"""For each orientation: the visual sides of the stored first row and first column (TIFF 6.0, Orientation)."""


def stored(upright: Array, orientation: int) -> Array:
    """The rows and columns that a camera stores for a picture that should be seen as `upright`."""
    row_side, column_side = STORED_SIDES[orientation]
    picture = upright
    if "bottom" in (row_side, column_side):
        picture = picture[::-1]
    if "right" in (row_side, column_side):
        picture = picture[:, ::-1]
    # The first row is now the top one; if the stored rows are visual columns, the two are exchanged.
    return np.ascontiguousarray(picture.swapaxes(0, 1) if row_side in ("left", "right") else picture)


def exif(
    orientation: int,
    *,
    big_endian: bool = False,
    text: bytes = b"",
    gps: bytes = b"",
    texts: Sequence[tuple[int, bytes]] = (),
) -> bytes:
    """A TIFF block with an orientation, optionally a description, the camera's owner and number, a place and a
    thumbnail, all with the same text. `texts` are more texts of the first directory, by their tags."""
    order = ">" if big_endian else "<"

    def pack(layout: str, *values: Any) -> bytes:
        return struct.pack(order + layout, *values)

    def directory(offset: int, entries: list[tuple[int, int, int, bytes]], following: Callable[[int], int]) -> bytes:
        """An image file directory at `offset`; values of more than four bytes follow it."""
        place = offset + 2 + 12 * len(entries) + 4
        fields, values = b"", b""
        for tag, kind, count, value in entries:
            inline = value.ljust(4, b"\0") if len(value) <= 4 else pack("I", place + len(values))
            fields += pack("HHI", tag, kind, count) + inline
            values += b"" if len(value) <= 4 else value + bytes(len(value) % 2)
        return pack("H", len(entries)) + fields + pack("I", following(place + len(values))) + values

    entries = [(ORIENTATION, 3, 1, pack("H", orientation))]
    if not text and not gps:
        return (b"MM\0*" if big_endian else b"II*\0") + pack("I", 8) + directory(8, entries, lambda _: 0)
    private = [
        (0x927C, 7, len(text), text),  # the maker's note
        (0x9286, 7, len(text) + 8, b"ASCII\0\0\0" + text),  # a comment
        (0xA430, 2, len(text) + 1, text + b"\0"),  # the camera's owner
        (0xA431, 2, len(text) + 1, text + b"\0"),  # the camera's number
    ]
    places = [(0x001D, 2, len(gps) + 1, gps + b"\0"), (0x001B, 7, len(gps) + 8, b"ASCII\0\0\0" + gps)]
    thumbnail = b"\xff\xd8\xff\xfe" + struct.pack(">H", len(text) + 2) + text + b"\xff\xd9"
    block, pointers = b"", (0, 0)
    for _ in range(2):  # the second time with the offsets that the first one found
        first = [
            (0x010E, 2, len(text) + 1, text + b"\0"),
            *entries,
            *((tag, 2, len(more) + 1, more + b"\0") for tag, more in texts),
            (0x8769, 4, 1, pack("I", pointers[0])),
            (0x8825, 4, 1, pack("I", pointers[1])),
        ]
        head = directory(8, first, lambda end: end)
        at = 8 + len(head)
        size = len(thumbnail)
        second = [(0x0201, 4, 1, pack("I", at + 30)), (0x0202, 4, 1, pack("I", size))]
        block = head + directory(at, second, lambda _: 0) + thumbnail + bytes(size % 2)
        at = 8 + len(block)
        private_block = directory(at, private, lambda _: 0)
        pointers = (at, at + len(private_block))
        block += private_block + directory(pointers[1], places, lambda _: 0)
    return (b"MM\0*" if big_endian else b"II*\0") + pack("I", 8) + block
