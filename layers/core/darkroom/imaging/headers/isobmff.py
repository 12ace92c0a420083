"""AVIF and HEIC (ISO/IEC 14496-12): walks a file's boxes, and reads the tables of its items."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import suppress

from darkroom.imaging.headers.header import MAX_PIECES


def box(name: bytes, *content: bytes) -> bytes:
    """A box."""
    body = b"".join(content)
    return struct.pack(">I4s", len(body) + 8, name) + body


def boxes(body: bytes, at: int, end: int) -> Iterator[tuple[bytes, int, int]]:
    """The boxes between two positions: name, start and end of the content.

    Raises ValueError or struct.error if one is broken.
    """
    for _ in range(MAX_PIECES):
        if at + 8 > end:
            return
        length, name = struct.unpack_from(">I4s", body, at)
        start = at + 8
        if length == 1:
            (length,) = struct.unpack_from(">Q", body, start)
            start += 8
        at = at + length if length else end
        if at < start or at > end:
            raise ValueError("a box ends outside its container")
        yield name, start, at


def number(body: bytes, at: int, size: int) -> tuple[int, int]:
    """The number of `size` bytes at a position, and the position behind it."""
    if at + size > len(body):
        raise ValueError("it ends within a table")
    return int.from_bytes(body[at : at + size]), at + size


def item_kinds(body: bytes, start: int, end: int) -> Iterator[tuple[int, bytes, int, int]]:
    """The items of an `iinf` box (8.11.6): number, type, and where the rest of the entry starts and ends."""
    first = start + (6 if body[start] == 0 else 8)  # version, flags and the count of entries
    for name, at, stop in boxes(body, first, end):
        version = body[at]
        if name == b"infe" and version >= 2:
            item, _, kind = struct.unpack_from(">HH4s" if version == 2 else ">IH4s", body, at + 4)
            yield item, kind, at + (12 if version == 2 else 14), stop


def item_places(body: bytes, at: int) -> Iterator[tuple[int, int, list[tuple[int, int]]]]:
    """The items of an `iloc` box (8.11.3): number, construction method, and the offset and length of each extent."""
    version, sizes, more = body[at], body[at + 4], body[at + 5]
    offset_bytes, length_bytes, base_bytes = sizes >> 4, sizes & 15, more >> 4
    index_bytes = more & 15 if version else 0
    many = 4 if version == 2 else 2
    count, at = number(body, at + 6, many)
    walked = 0  # extents, which need no bytes in the table if their offsets and lengths have none
    for _ in range(min(count, MAX_PIECES)):
        item, at = number(body, at, many)
        method = 0
        if version:
            method, at = number(body, at, 2)
        base, at = number(body, at + 2, base_bytes)  # after the number of the file that has the data: this one
        extents, at = number(body, at, 2)
        walked += extents
        if walked > MAX_PIECES:  # guard: rights-empty-extents-counted
            raise ValueError("it has too many extents")
        places = []
        for _ in range(extents):
            offset, at = number(body, at + index_bytes, offset_bytes)
            length, at = number(body, at, length_bytes)
            places.append((base + offset, length))
        yield item, method & 15, places


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


def without_metadata(body: bytes) -> bytes:
    """The file without any item that describes another: EXIF and XMP are still in it, but not found.

    Only the references of type `cdsc` ("content describes") in the `meta` box are changed, so that no offset moves.
    """
    with suppress(ValueError, struct.error):  # a file that is cut off or broken before its `meta` box is whole
        for name, start, end in boxes(body, 0, len(body)):
            if name == b"meta":
                return body[:start] + body[start:end].replace(b"cdsc", b"free") + body[end:]
    return body
