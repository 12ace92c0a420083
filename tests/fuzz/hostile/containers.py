"""AVIFs and HEICs whose boxes and items lie, loop or never end."""

from __future__ import annotations

import dataclasses
import functools
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from PIL import Image

from tests.fuzz.corpus import corpus, picture, saved
from tests.fuzz.handmade import isobmff
from tests.fuzz.hostile.case import (
    DAMAGED,
    DEVELOPED,
    SIDE,
    TOO_LARGE,
    UNSUPPORTED,
    WITHIN_MEMORY,
    Case,
    case,
    flooded,
)


def cases() -> Iterator[Case]:
    """All of them."""
    yield from _large()
    yield from _colours()
    sound = (
        _Kind("avif", b"av01", corpus()["avif-420"]),
        _Kind("heic", b"hvc1", corpus()["heic-plain"]),
    )
    for kind in sound:
        for group in (_sizes, _places, _items, _helpers, _boxes):
            yield from group(kind)


def _large() -> Iterator[Case]:
    within = WITHIN_MEMORY
    for side in (2000, 3000, 4000, 5000, SIDE):
        for mode in ("RGB", "RGBA"):
            make = functools.partial(_large_avif, side, mode)
            yield case(f"avif-{side}x{side}-{mode.lower()}", make, *within, heavy=True)
    yield case(
        "avif-52mp-says-64x48", lambda: _resized(_large_avif(SIDE, "RGB"), 64, 48), *within, *DAMAGED, heavy=True
    )
    yield case("avif-100mp-says-64x48", _lying_avif, *within, *DAMAGED, heavy=True)
    for side in (4000, 7000):
        dense = functools.partial(_dense_avif, side)
        yield case(f"avif-{side}x{side}-grey-dense", dense, *within, heavy=True)
    film = corpus()["avif-animated"]
    for name, offset in ((b"stsz", 16), (b"stsc", 12), (b"stco", 12), (b"stts", 12)):
        if name in film:
            counted = isobmff.with_raw_bytes(film, name, offset, b"\xff\xff\xff\xff")
            yield case(f"avif-animated-{name.decode()}", counted, *DAMAGED, DEVELOPED, *TOO_LARGE)
    frames = [picture(16, 16)] * 30
    animated = functools.partial(saved, frames[0], "AVIF", speed=10, save_all=True, append_images=frames[1:])
    yield case("avif-30-frames", animated, DEVELOPED)


def _large_avif(side: int, mode: str) -> bytes:
    return saved(Image.new(mode, (side, side), (90, 90, 90, 128)[: len(mode)]), "AVIF", speed=10)


def _lying_avif() -> bytes:
    large = saved(Image.new("L", (10_000, 10_000), 90), "AVIF", speed=10, subsampling="4:0:0")
    return _resized(large, 64, 48)


def _dense_avif(side: int) -> bytes:
    part = picture(1000, 1000, "L", noise=255)
    large = Image.new("L", (side, side))
    for left in range(0, side, 1000):
        for top in range(0, side, 1000):
            large.paste(part, (left, top))
    return saved(large, "AVIF", speed=10, quality=60, subsampling="4:0:0")


def _resized(body: bytes, width: int, height: int) -> bytes:
    """The file with another size in its `ispe` property than in its coded picture."""
    return isobmff.with_bytes(body, b"ispe", 12, struct.pack(">II", width, height))


_ANY = (DEVELOPED, *DAMAGED, *TOO_LARGE, UNSUPPORTED)


@dataclass(frozen=True)
class _Kind:
    """AVIF or HEIC: a valid file of one picture, and its parts."""

    name: str
    coding: bytes
    body: bytes

    @property
    def coded(self) -> bytes:
        return isobmff.data(self.body)

    @property
    def properties(self) -> list[bytes]:
        return isobmff.properties(self.body)

    def picture(self, extents: Sequence[tuple[int, int]] | None = None, **options: Any) -> isobmff.Item:
        """The item of the picture, with its bytes in the right place unless `extents` says otherwise."""
        all_bytes = [(0, len(self.coded))]
        return isobmff.Item(kind=self.coding, extents=all_bytes if extents is None else extents, **options)

    def assembled(
        self, *items: isobmff.Item, more: Sequence[bytes] = (), content: bytes = b"", idat: bytes = b""
    ) -> bytes:
        """A file of these items, with `more` properties, and `content` after the picture's bytes."""
        held = [*self.properties, *more]
        return isobmff.assembled(self.name.encode(), items, held, self.coded + content, idat=idat)


def _sizes(kind: _Kind) -> Iterator[Case]:
    yield case(f"{kind.name}-assembled", kind.assembled(kind.picture()), DEVELOPED)
    for width, height in ((65535, 65535), (2**32 - 1, 2**32 - 1), (7216, 7216), (60000, 1), (1, 60000)):
        body = _resized(kind.body, width, height)
        yield case(f"{kind.name}-claims-{width}x{height}", body, *TOO_LARGE, *DAMAGED)
    for width, height in ((0, 0), (1, 1), (63, 48), (7000, 7000)):
        yield case(f"{kind.name}-claims-{width}x{height}", _resized(kind.body, width, height), *_ANY)
    many = [isobmff.full_box(b"pixi", b"\x03\x08\x08\x08")] * 100
    yield case(f"{kind.name}-100-properties", kind.assembled(kind.picture(), more=many), *_ANY)
    turns = [isobmff.box(b"irot", b"\x01"), isobmff.box(b"imir", b"\x01")] * 50
    yield case(f"{kind.name}-100-turns", kind.assembled(kind.picture(), more=turns), *_ANY)
    for numbers in ((2**32 - 1,) * 8, (0,) * 8, (1, 1, 1, 1, 2**31, 1, 2**31, 1), (64, 1, 48, 1, 1, 0, 1, 0)):
        crop = isobmff.box(b"clap", struct.pack(">8I", *numbers))
        body = kind.assembled(kind.picture(), more=[crop])
        yield case(f"{kind.name}-crop-{numbers[0]}-{numbers[4]}", body, *_ANY)


def _colours() -> Iterator[Case]:
    """Sound AVIFs whose matrix coefficients (ITU-T H.273, 8.3) libavif does not convert, or does."""
    for matrix in (1, 2, 4, 5, 6, 7, 9):
        yield case(f"avif-matrix-{matrix}", _with_matrix(matrix), DEVELOPED)
    for matrix in (3, 10, 11, 13, 14, 16, 17, 255):
        yield case(f"avif-matrix-{matrix}", _with_matrix(matrix), UNSUPPORTED)


def _with_matrix(matrix: int) -> bytes:
    return isobmff.with_bytes(corpus()["avif-420"], b"colr", 16, struct.pack(">H", matrix))


def _places(kind: _Kind) -> Iterator[Case]:
    """The `iloc` box, which says where an item's bytes are."""
    length = len(kind.coded)
    odd = {
        "none": [],
        "empty": [(0, 0)],
        "beyond": [(10_000_000, 100)],
        "at-the-end": [(2**32 - 200, 100)],
        "too-long": [(0, 2**32 - 1)],
        "negative": [(-10_000, length)],
        "byte-by-byte": [(at, 1) for at in range(length)],
    }
    for name, extents in odd.items():
        yield case(f"{kind.name}-extents-{name}", kind.assembled(kind.picture(extents)), *_ANY)
    yield case(f"{kind.name}-extents-overlapping", functools.partial(_piled, kind, length, 0), *_ANY)
    yield case(f"{kind.name}-extents-of-60-gigabytes", functools.partial(_piled, kind, 10**6, 10**6), *_ANY, heavy=True)
    in_idat = kind.picture(construction=1)
    yield case(f"{kind.name}-in-idat", kind.assembled(in_idat, idat=kind.coded), *_ANY)
    yield case(f"{kind.name}-in-no-idat", kind.assembled(in_idat), *_ANY)
    in_itself = kind.picture([(0, 100)], construction=2, references={b"iloc": [1]})
    yield case(f"{kind.name}-in-itself", kind.assembled(in_itself), *_ANY)
    yield case(f"{kind.name}-construction-9", kind.assembled(kind.picture(construction=9)), *_ANY)


def _piled(kind: _Kind, length: int, content: int) -> bytes:
    """The same bytes 60,000 times over."""
    return kind.assembled(kind.picture([(0, length)] * 60_000), content=bytes(content))


def _items(kind: _Kind) -> Iterator[Case]:
    """What an item refers to, and what it is assembled from."""
    for reference in ("dimg", "thmb", "auxl", "cdsc", "prem", "base"):
        first, back = (kind.picture(references={reference.encode(): [number]}) for number in (2, 1))
        yield case(f"{kind.name}-circle-{reference}", kind.assembled(first, back), *_ANY)
        loop = kind.picture(references={reference.encode(): [1] * 1000})
        yield case(f"{kind.name}-loop-{reference}", kind.assembled(loop), *_ANY)
    yield case(f"{kind.name}-3000-items", kind.assembled(*[kind.picture()] * 3000), *_ANY)
    # A binding that assumes every name is UTF-8 fails at this one.
    for name in (b"\xc8xif", b"\xff\xff\xff\xff", bytes(4), b"mime", b"uri "):
        metadata = isobmff.Item(kind=name, extents=[(0, 20)], references={b"cdsc": [1]}, associations=[])
        body = kind.assembled(kind.picture(), metadata)
        yield case(f"{kind.name}-metadata-of-type-{name.hex()}", body, *_ANY)
    sizeless = [held for held in kind.properties if held[4:8] != b"ispe"]
    body = isobmff.assembled(kind.name.encode(), [kind.picture()], sizeless, kind.coded)
    yield case(f"{kind.name}-no-size", body, *_ANY)
    own = range(1, len(kind.properties) + 1)
    tile = kind.picture(associations=own)
    for side, width, height in ((1, 64, 48), (2, 128, 96), (255, 16320, 12240), (256, 64, 48), (256, 65535, 65535)):
        size = isobmff.full_box(b"ispe", struct.pack(">II", width, height))
        description = struct.pack(">BBBBHH", 0, 0, side - 1, side - 1, width, height)
        associations = [n for n, held in enumerate(kind.properties, 1) if held[4:8] != b"ispe"] + [len(own) + 1]

        def grid(target: int, side: int = side, associations: Sequence[int] = tuple(associations)) -> isobmff.Item:
            return isobmff.Item(
                kind=b"grid",
                extents=[(len(kind.coded), 8)],
                references={b"dimg": [target] * min(side * side, 65535)},
                associations=associations,
            )

        body = kind.assembled(grid(2), tile, more=[size], content=description)
        yield case(f"{kind.name}-grid-{side}x{side}-{width}x{height}", body, *_ANY)
        body = kind.assembled(grid(1), more=[size], content=description)
        yield case(f"{kind.name}-grid-of-itself-{side}-{width}", body, *_ANY)


def _helpers(kind: _Kind) -> Iterator[Case]:
    """Items that stand for another one (`iden`) or that serve it (`auxl`), nested and in circles.

    Of a HEIC only the picture, its tiles and one alpha reach the library; libavif knows no `iden`.
    """
    own = list(range(1, len(kind.properties) + 1))
    size = next(at for at in own if kind.properties[at - 1][4:8] == b"ispe")
    more = [
        isobmff.full_box(b"auxC", b"urn:mpeg:hevc:2015:auxid:1\0"),
        isobmff.full_box(b"auxC", b"urn:com:apple:photo:2020:aux:hdrgainmap\0"),
        isobmff.full_box(b"ispe", struct.pack(">II", 32, 24)),
    ]
    alpha, gain, smaller = ([*own, len(own) + 1], [*own, len(own) + 2], len(own) + 3)
    wrong = [at if at != size else smaller for at in alpha]
    picture = kind.picture(associations=own)

    def identity(of: int, **others: Sequence[int]) -> isobmff.Item:
        references = {b"dimg": [of]} | {name.encode(): of for name, of in others.items()}
        return isobmff.Item(kind=b"iden", extents=[], references=references, associations=[size])

    def helper(of: Sequence[int], associations: Sequence[int] = tuple(alpha), **others: Sequence[int]) -> isobmff.Item:
        references = {b"auxl": of} | {name.encode(): of for name, of in others.items()}
        return kind.picture(associations=associations, references=references)

    as_alpha = isobmff.Item(
        kind=b"iden", extents=[], references={b"dimg": [1], b"auxl": [1]}, associations=[size, alpha[-1]]
    )
    grid = isobmff.Item(kind=b"grid", extents=[(len(kind.coded), 8)], references={b"dimg": [2]}, associations=[size])
    refused: dict[str, Sequence[isobmff.Item]] = {
        "iden": [identity(2), picture],
        "iden-of-nothing": [identity(9)],
        "iden-of-itself": [identity(1)],
        "iden-circle": [identity(2), identity(1)],
        "iden-chain": [*(identity(number) for number in range(2, 1002)), picture],
        "iden-of-what-has-alpha": [identity(2, prem=[3]), picture, helper([2]), helper([1])],
        "iden-as-alpha": [picture, as_alpha],
        "iden-as-tile": [grid, identity(3), picture],
        "alpha-of-itself": [helper([1])],
        "alpha-of-a-tile": [grid, picture, helper([2])],
        "alphas": [picture, *[helper([1])] * 1000],
        "alpha-of-another-size": [picture, helper([1], wrong)],
    }
    developed: dict[str, Sequence[isobmff.Item]] = {
        "iden-beside": [picture, identity(3), identity(2), identity(9), identity(1, thmb=[1])],
        "alpha": [picture, helper([1])],
        "alpha-of-alphas": [picture, helper([1]), *(helper([number]) for number in range(2, 1002))],
        "alpha-circle": [picture, helper([1, 3]), helper([2])],
        "alpha-of-nothing": [picture, helper([9])],
        "gain-maps": [picture, *[helper([1], gain)] * 1000],
        "gain-map-of-itself": [kind.picture(associations=gain, references={b"auxl": [1]})],
        "auxl-without-purpose": [picture, helper([1], own)],
        "auxl-of-gigabytes": [picture, dataclasses.replace(helper([1], gain), extents=[(0, 2**32 - 1)] * 50)],
    }
    for files, outcome in ((refused, UNSUPPORTED), (developed, DEVELOPED)):
        for name, items in files.items():
            body = kind.assembled(*items, more=more, content=struct.pack(">BBBBHH", 0, 0, 0, 0, 64, 48))
            yield case(f"{kind.name}-{name}", body, *([outcome] if kind.name == "heic" else _ANY))


def _boxes(kind: _Kind) -> Iterator[Case]:
    """Boxes whose sizes lie, and too many of them."""
    body = kind.body
    meta, length = isobmff.find(body, b"meta")
    for size in (0, 1, 7, 8, 2**31, 2**32 - 1):
        for name in ("ftyp", "meta", "iprp", "ipco", "iloc", "mdat"):
            lying = isobmff.with_bytes(body, name.encode(), 0, struct.pack(">I", size))
            yield case(f"{kind.name}-{name}-of-{size}", lying, *_ANY)
    largest = isobmff.with_bytes(body, b"mdat", 0, struct.pack(">I4sQ", 1, b"mdat", 2**64 - 1))
    yield case(f"{kind.name}-mdat-of-2-to-the-64", largest, *_ANY)
    yield case(f"{kind.name}-two-metas", body[: meta + length] + body[meta:], *_ANY)
    yield case(f"{kind.name}-no-meta", body[:meta] + body[meta + length :], *DAMAGED)
    # 10,000 boxes, each inside the previous one.
    deep = b"".join(struct.pack(">I4s", 8 * left, b"dinf") for left in range(10_000, 0, -1))
    yield case(f"{kind.name}-deep-boxes", body[:meta] + deep + body[meta:], *_ANY)
    inside = isobmff.full_box(b"meta", isobmff.box(b"iprp", isobmff.box(b"ipco", deep)))
    yield case(f"{kind.name}-deep-properties", body[:meta] + inside + body[meta + length :], *_ANY)
    for place, at in (("first", meta), ("last", len(body))):
        flood = flooded(body[:at], isobmff.box(b"free"), body[at:])
        yield case(f"{kind.name}-flood-boxes-{place}", flood, *_ANY, heavy=True)
