"""HEIC (ISO/IEC 23008-12): makes a file of the picture alone, which is all that the library gets to see.

A HEIC holds items that refer to each other. Phones write one picture or a grid of tiles, and beside it a thumbnail, a
depth map, a gain map and EXIF. libheif reads all of them and a dozen types more, and most of its vulnerabilities are in
those. So a new file is written: the picture, its tiles and its alpha, with the properties that decoding needs.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from darkroom.domain.kernel.errors import Rejected
from darkroom.imaging.headers.header import MAX_PIECES
from darkroom.imaging.headers.isobmff import box, boxes, item_kinds, item_places, number
from darkroom.imaging.headers.refusals import truncated, undecodable, unsupported

_PROPERTIES = frozenset({
    *(b"ispe", b"pixi", b"hvcC", b"colr", b"irot", b"imir", b"clap", b"pasp", b"auxC"),
    *(b"clli", b"mdcv", b"amve"),
})  # fmt: skip
"""What is handed on of an item's properties."""

_ALPHAS = (
    b"urn:mpeg:hevc:2015:auxid:1",
    b"urn:mpeg:avc:2015:auxid:1",
    b"urn:mpeg:mpegB:cicp:systems:auxiliary:alpha",
)
_ESSENTIAL = 0x8000
_IN_FILE, _IN_IDAT = 0, 1


@dataclass(frozen=True, kw_only=True)
class _Tables:
    """What a file says about its items. A property is a box: its name, and where its content starts and ends."""

    heic: bytes
    primary: int
    kinds: Mapping[int, bytes]
    references: tuple[int, int]
    properties: Sequence[tuple[bytes, int, int]]
    associations: Mapping[int, Sequence[int]]
    places: int
    idat: tuple[int, int]

    def referring(self, wanted: bytes) -> Iterator[tuple[int, tuple[int, ...]]]:
        """The references of a type: the item that refers, and those that it refers to."""
        start, end = self.references
        size, dead_letter = (4, "I") if end and self.heic[start] else (2, "H")
        for kind, at, _ in boxes(self.heic, start + 4, end):
            if kind == wanted:
                item, count = struct.unpack_from(f">{dead_letter}H", self.heic, at)
                yield item, struct.unpack_from(f">{count}{dead_letter}", self.heic, at + size + 2)

    def tiles_of(self, item: int) -> tuple[int, ...]:
        """The items that a grid is made of, in their order."""
        return next((tiles for grid, tiles in self.referring(b"dimg") if grid == item), ())

    def first(self, item: int, name: bytes) -> bytes | None:
        """The content of an item's first property of that name."""
        for index, _ in self.properties_of(item):
            kind, start, end = self.properties[index]
            if kind == name:
                return self.heic[start:end]
        return None

    def properties_of(self, item: int) -> Iterator[tuple[int, int]]:
        """The indices of an item's properties that are handed on, each with its flag."""
        for association in self.associations.get(item, ()):
            index, essential = association & ~_ESSENTIAL, association & _ESSENTIAL
            if index == 0:
                continue
            if self.properties[index - 1][0] in _PROPERTIES:  # guard: heic-needed-properties-only
                yield index - 1, essential
            elif essential:  # who does not understand it must not show the picture
                raise _unsupported()


def picture_alone(heic: bytes) -> bytes:
    """A HEIC of the same picture, in which every item is of type `hvc1` or a `grid` of such.

    Raises Rejected: `unsupported_format` if the picture is anything else, `truncated` or `undecodable`; and ValueError
    if the boxes are broken.
    """
    try:
        return _picture_alone(_read(heic))
    except (IndexError, KeyError, struct.error) as error:
        raise ValueError("its boxes are broken") from error


def _picture_alone(tables: _Tables) -> bytes:
    picture = _with_tiles(tables, tables.primary)
    alpha = _alpha_of(tables, picture)
    numbers = {item: at for at, item in enumerate([*picture, *alpha], start=1)}
    if len(numbers) < len(picture) + len(alpha):  # guard: heic-alpha-not-itself
        raise _unsupported()
    links = [(b"dimg", item, tables.tiles_of(item)) for item in numbers if tables.kinds[item] == b"grid"]
    if alpha:
        links.append((b"auxl", alpha[0], (tables.primary,)))
        if any(item == tables.primary and alpha[0] in of for item, of in tables.referring(b"prem")):
            links.append((b"prem", tables.primary, (alpha[0],)))
    return _written(tables, numbers, links)


def _unsupported() -> Rejected:
    return unsupported("its picture is not what phones write, one picture or a grid of tiles, coded in HEVC")


def _read(heic: bytes) -> _Tables:
    meta = next(((start, end) for name, start, end in boxes(heic, 0, len(heic)) if name == b"meta"), None)
    if meta is None:
        raise undecodable("it does not say what its picture is")
    inside = _by_name(heic, meta[0] + 4, meta[1])
    described = _by_name(heic, *inside[b"iprp"])
    primary, _ = number(heic, inside[b"pitm"][0] + 4, 4 if heic[inside[b"pitm"][0]] else 2)
    associations: dict[int, list[int]] = {}
    for name, at, _ in boxes(heic, *inside[b"iprp"]):
        if name == b"ipma":
            for item, indices in _associations(heic, at):
                associations.setdefault(item, []).extend(indices)
    return _Tables(
        heic=heic,
        primary=primary,
        kinds={item: kind for item, kind, _, _ in item_kinds(heic, *inside[b"iinf"])},
        references=inside.get(b"iref", (0, 0)),
        properties=list(boxes(heic, *described[b"ipco"])),
        associations=associations,
        places=inside[b"iloc"][0],
        idat=inside.get(b"idat", (0, 0)),
    )


def _by_name(heic: bytes, start: int, end: int) -> dict[bytes, tuple[int, int]]:
    span_by_name: dict[bytes, tuple[int, int]] = {}
    for name, at, stop in boxes(heic, start, end):
        span_by_name.setdefault(name, (at, stop))
    return span_by_name


def _associations(heic: bytes, at: int) -> Iterator[tuple[int, list[int]]]:
    """The items of an `ipma` box, with the numbers of their properties, from 1, and the flag `_ESSENTIAL`."""
    item_bytes, is_wide = 4 if heic[at] else 2, heic[at + 3] & 1
    count, at = number(heic, at + 4, 4)
    for _ in range(min(count, MAX_PIECES)):
        item, at = number(heic, at, item_bytes)
        many, at = number(heic, at, 1)
        values = struct.unpack_from(f">{many}{'H' if is_wide else 'B'}", heic, at)
        at += many * (2 if is_wide else 1)
        yield item, list(values) if is_wide else [(value & 0x80) << 8 | value & 0x7F for value in values]


def _with_tiles(tables: _Tables, item: int) -> list[int]:
    """A picture, followed by its tiles if it is a grid."""
    if tables.kinds[item] == b"hvc1":
        return [item]
    tiles = list(dict.fromkeys(tables.tiles_of(item)))
    # guard: heic-coded-or-grid
    if tables.kinds[item] != b"grid" or any(tables.kinds[tile] != b"hvc1" for tile in tiles):
        raise _unsupported()
    return [item, *tiles]


def _alpha_of(tables: _Tables, picture: list[int]) -> list[int]:
    """The picture's alpha, with its tiles, or nothing. Two of them, or one of a tile, no phone writes."""
    alphas = {}
    for item, of in tables.referring(b"auxl"):
        purpose = tables.first(item, b"auxC")
        if purpose and purpose[4:].split(b"\0", 1)[0] in _ALPHAS and not set(of).isdisjoint(picture):
            alphas[item] = of
    if not alphas:
        return []
    alpha = _with_tiles(tables, min(alphas))
    sizes = {tables.first(item, b"ispe") for item in (tables.primary, alpha[0])}
    # guard: heic-single-alpha-same-size
    if len(alphas) > 1 or tables.primary not in alphas[alpha[0]] or len(sizes) > 1:
        raise _unsupported()
    return alpha


def _written(tables: _Tables, numbers: Mapping[int, int], links: Sequence[tuple[bytes, int, Sequence[int]]]) -> bytes:
    """A file of these items by their new numbers: our own boxes, then the whole original as data."""
    kept: dict[int, int] = {}
    joined = b""
    for item, new in numbers.items():
        flagged = [essential | kept.setdefault(index, len(kept) + 1) for index, essential in tables.properties_of(item)]
        joined += struct.pack(f">HB{len(flagged)}H", new, len(flagged), *flagged)
    properties = [tables.properties[index] for index in kept]
    entries = [
        _full_box(b"infe", struct.pack(">HH4sx", new, 0, tables.kinds[item]), version=2, flags=int(new > 1))
        for item, new in numbers.items()  # all are hidden but the first
    ]
    related = [
        box(kind, struct.pack(f">HH{len(of)}H", numbers[item], len(of), *(numbers[target] for target in of)))
        for kind, item, of in links
    ]
    spans = _spans(tables, numbers)

    def head(data_at: int) -> bytes:
        places = struct.pack(">BBH", 0x88, 0, len(numbers))
        for item, new in numbers.items():
            places += struct.pack(">HHH", new, 0, len(spans[item]))
            places += b"".join(struct.pack(">QQ", data_at + start, length) for start, length in spans[item])
        return box(b"ftyp", b"heic", bytes(4), b"mif1heic") + _full_box(
            b"meta",
            _full_box(b"hdlr", bytes(4), b"pict", bytes(13)),
            _full_box(b"pitm", struct.pack(">H", 1)),
            _full_box(b"iloc", places),
            _full_box(b"iinf", struct.pack(">H", len(entries)), *entries),
            _full_box(b"iref", *related) if related else b"",
            box(
                b"iprp",
                box(b"ipco", *(box(name, tables.heic[start:end]) for name, start, end in properties)),
                _full_box(b"ipma", struct.pack(">I", len(numbers)), joined, flags=1),
            ),
        )

    data_at = len(head(0)) + 8
    return head(data_at) + box(b"mdat", tables.heic)


def _full_box(name: bytes, *content: bytes, version: int = 0, flags: int = 0) -> bytes:
    return box(name, struct.pack(">I", version << 24 | flags), *content)


def _spans(tables: _Tables, items: Mapping[int, int]) -> dict[int, list[tuple[int, int]]]:
    """Where the bytes of these items are in the file: the start and length of each piece."""
    spans: dict[int, list[tuple[int, int]]] = {}
    for item, method, places in item_places(tables.heic, tables.places):
        if item not in items or item in spans:
            continue
        if method not in (_IN_FILE, _IN_IDAT):
            raise _unsupported()
        first, end = tables.idat if method == _IN_IDAT else (0, len(tables.heic))
        spans[item] = [(first + offset, length) for offset, length in places]
        if any(start + length > end for start, length in spans[item]):
            raise truncated()
        if sum(length for _, length in places) > len(tables.heic):  # guard: heic-bytes-without-repeats
            raise undecodable("parts of it are there several times")
    return spans
