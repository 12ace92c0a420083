"""Boxes of AVIF and HEIC files (ISO/IEC 14496-12): finds, changes and assembles them."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

_CONTAINERS = {b"iprp": 0, b"ipco": 0, b"meta": 4, b"dinf": 0, b"iinf": 6}
"""Boxes that contain boxes, and how many bytes of their own come first."""


def box(name: bytes, *content: bytes, size: int | None = None) -> bytes:
    """A box; `size` is the false size that it claims, if any."""
    body = b"".join(content)
    return struct.pack(">I4s", len(body) + 8 if size is None else size, name) + body


def full_box(name: bytes, *content: bytes, version: int = 0, flags: int = 0) -> bytes:
    """A box with a version and flags."""
    return box(name, struct.pack(">I", version << 24 | flags), *content)


def boxes(body: bytes, start: int = 0, end: int | None = None) -> Iterator[tuple[bytes, int, int]]:
    """Every whole box, nested ones included: name, offset (of its size field), length."""
    at, end = start, len(body) if end is None else end
    while at + 8 <= end:
        size, name = struct.unpack_from(">I4s", body, at)
        if size < 8 or at + size > end:
            return
        yield name, at, size
        if name in _CONTAINERS:
            yield from boxes(body, at + 8 + _CONTAINERS[name], at + size)
        at += size


def find(body: bytes, name: bytes) -> tuple[int, int]:
    """The offset of the first box of that name, and its length."""
    return next((at, size) for kind, at, size in boxes(body) if kind == name)


def with_bytes(body: bytes, name: bytes, offset: int, data: bytes) -> bytes:
    """The file with `data` written `offset` bytes into the first box of that name."""
    at, _ = find(body, name)
    return body[: at + offset] + data + body[at + offset + len(data) :]


def with_raw_bytes(body: bytes, name: bytes, offset: int, data: bytes) -> bytes:
    """The same for a box inside boxes that are not parsed: found by its name alone."""
    at = body.index(name) - 4 + offset
    return body[:at] + data + body[at + len(data) :]


def properties(body: bytes) -> list[bytes]:
    """A file's item properties, each a whole box."""
    start, length = find(body, b"ipco")
    return [body[at : at + size] for _, at, size in boxes(body, start + 8, start + length)]


def data(body: bytes) -> bytes:
    """The content of a file's mdat box."""
    at, size = find(body, b"mdat")
    return body[at + 8 : at + size]


@dataclass(frozen=True, kw_only=True)
class Item:
    """An item of a file: its type, where its bytes are (in the data, or in another item), and what it refers to."""

    kind: bytes
    extents: Sequence[tuple[int, int]]
    construction: int = 0  # 0: in the file, 1: in the idat box, 2: in another item
    references: Mapping[bytes, Sequence[int]] = MappingProxyType({})
    associations: Sequence[int] | None = None  # numbers of properties, from 1; all unless given


def assembled(
    brand: bytes, items: Sequence[Item], held: Sequence[bytes], content: bytes, *, idat: bytes = b""
) -> bytes:
    """A file of these items (numbered from 1, the first is the picture), properties and data."""
    head = box(b"ftyp", brand, bytes(4), b"mif1", brand, b"miaf")
    every = range(1, len(held) + 1)
    entries = b"".join(
        full_box(b"infe", struct.pack(">HH4s", number, 0, item.kind), b"\x00", version=2)
        for number, item in enumerate(items, 1)
    )
    links = b"".join(
        box(kind, struct.pack(f">HH{len(targets)}H", number, len(targets), *targets))
        for number, item in enumerate(items, 1)
        for kind, targets in item.references.items()
    )
    joined = struct.pack(">I", len(items))
    for number, item in enumerate(items, 1):
        chosen = every if item.associations is None else item.associations
        joined += struct.pack(">HB", number, len(chosen)) + bytes(chosen)

    def meta(start: int) -> bytes:
        places = [struct.pack(">BBH", 0x44, 0, len(items))]
        for number, item in enumerate(items, 1):
            base = start if item.construction == 0 else 0
            places.append(struct.pack(">HHHH", number, item.construction, 0, len(item.extents)))
            places += (struct.pack(">II", (base + offset) % 2**32, length) for offset, length in item.extents)
        return full_box(
            b"meta",
            full_box(b"hdlr", bytes(4), b"pict", bytes(13)),
            full_box(b"pitm", struct.pack(">H", 1)),
            full_box(b"iloc", *places, version=1),
            full_box(b"iinf", struct.pack(">H", len(items)), entries),
            full_box(b"iref", links) if links else b"",
            box(b"iprp", box(b"ipco", *held), full_box(b"ipma", joined)),
            box(b"idat", idat) if idat else b"",
        )

    start = len(head) + len(meta(0)) + 8
    return head + meta(start) + box(b"mdat", content)
