"""AVIF and HEIC (ISO/IEC 14496-12 and 23008-12): the items of a file that are EXIF and XMP."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from darkroom.imaging.headers.header import MAX_PIECES
from darkroom.imaging.rights.xmp import MAX_XMP_BYTES

_IN_FILE, _IN_IDAT = 0, 1


def metadata_items(body: bytes) -> dict[bytes, bytes]:
    """The first EXIF item, as `Exif`, and the first of each content type, by that type.

    Raises struct.error or ValueError if the boxes are broken.
    """
    for name, start, end in _boxes(body, 0, len(body)):
        if name == b"meta":
            inside = {name: (start, end) for name, start, end in _boxes(body, start + 4, end)}
            if not {b"iinf", b"iloc"} <= inside.keys():
                return {}
            kinds = _kinds(body, *inside[b"iinf"])
            return _contents(body, inside[b"iloc"][0], kinds, idat=inside.get(b"idat", (0, 0)))
    return {}


def _boxes(body: bytes, at: int, end: int) -> Iterator[tuple[bytes, int, int]]:
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


def _kinds(body: bytes, start: int, end: int) -> dict[int, bytes]:
    """The items that are metadata, by their numbers: what each is."""
    kinds: dict[int, bytes] = {}
    first = start + (6 if body[start] == 0 else 8)  # version, flags and the count of entries
    for name, at, stop in _boxes(body, first, end):
        version = body[at]
        if name != b"infe" or version < 2:
            continue
        number, _, kind = struct.unpack_from(">HH4s" if version == 2 else ">IH4s", body, at + 4)
        if kind == b"mime":
            texts = body[at + (12 if version == 2 else 14) : stop].split(b"\0", 2)  # a name, then the content type
            kind = texts[1] if len(texts) > 1 else b""
        if kind not in kinds.values():
            kinds[number] = kind
    return kinds


def _contents(body: bytes, at: int, kinds: dict[int, bytes], *, idat: tuple[int, int]) -> dict[bytes, bytes]:
    """The bytes of these items, from the table of their places (14496-12, 8.11.3)."""
    version, sizes, more = body[at], body[at + 4], body[at + 5]
    offset_bytes, length_bytes, base_bytes = sizes >> 4, sizes & 15, more >> 4
    index_bytes = more & 15 if version else 0
    at += 6
    many = 4 if version == 2 else 2
    count, at = _number(body, at, many)
    found: dict[bytes, bytes] = {}
    walked = 0  # extents, which need no bytes in the table if their offsets and lengths have none
    for _ in range(min(count, MAX_PIECES)):
        number, at = _number(body, at, many)
        method = _IN_FILE
        if version:
            method, at = _number(body, at, 2)
        base, at = _number(body, at + 2, base_bytes)  # after the number of the file that has the data: this one
        extents, at = _number(body, at, 2)
        kind = kinds.get(number, b"")
        walked += extents
        if walked > MAX_PIECES:
            raise ValueError("it has too many extents")
        content = bytearray()
        for _ in range(extents):
            offset, at = _number(body, at + index_bytes, offset_bytes)
            length, at = _number(body, at, length_bytes)
            if kind and kind not in found and method & 15 in (_IN_FILE, _IN_IDAT) and len(content) <= MAX_XMP_BYTES:
                start = base + offset + (idat[0] if method & 15 == _IN_IDAT else 0)
                content += body[start : start + min(length, MAX_XMP_BYTES + 1)]
        if content:
            found.setdefault(kind, bytes(content))
    return found


def _number(body: bytes, at: int, size: int) -> tuple[int, int]:
    if at + size > len(body):
        raise ValueError("it ends within a table")
    return int.from_bytes(body[at : at + size]), at + size
