"""AVIF and HEIC containers written from ISO/IEC 23008-12 around bitstreams of AV1 and HEVC.

The AV1 is libaom's. The HEVC is written here: every block in it is PCM, that is, raw samples, so that HEIC too comes
from known colours and loses nothing.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import imagecodecs
import numpy as np

from tests.engine.golden.colours import Array
from tests.fuzz.handmade.isobmff import box

type References = tuple[tuple[bytes, tuple[int, ...]], ...]
"""Kinds of reference and the numbers of their target items."""

_CONTAINERS = (b"meta", b"iprp", b"ipco")


@dataclass(frozen=True, kw_only=True)
class Item:
    """One item of a file: what it is, its data, and its properties as boxes."""

    kind: bytes
    data: bytes
    properties: tuple[bytes, ...] = ()
    refers: References = ()
    content_type: bytes = b""
    hidden: bool = False


def boxes(data: bytes, *, inside: Sequence[bytes] = _CONTAINERS) -> Iterator[tuple[bytes, bytes]]:
    """Every box and the boxes in the given containers, each by name and content."""
    at = 0
    while at + 8 <= len(data):
        size, name = struct.unpack_from(">I4s", data, at)
        head = 8
        if size == 1:
            (size,) = struct.unpack_from(">Q", data, at + 8)
            head = 16
        end = at + size if size else len(data)
        body = data[at + head : end]
        yield name, body
        if name in inside:
            yield from boxes(body[4:] if name == b"meta" else body, inside=inside)
        at = max(end, at + 8)


def irot(quarter_turns: int) -> bytes:
    """Turned anticlockwise for display, by quarters."""
    return box(b"irot", bytes([quarter_turns]))


def imir(axis: int) -> bytes:
    """Mirrored for display: 0 swaps top and bottom, 1 left and right (ISO/IEC 23008-12:2022, 6.5.12)."""
    return box(b"imir", bytes([axis]))


def auxiliary(kind: bytes) -> bytes:
    """The purpose of a picture that serves another one."""
    return box(b"auxC", bytes(4), kind + b"\0")


def colour_profile(profile: bytes) -> bytes:
    """An ICC profile."""
    return box(b"colr", b"prof", profile)


def nclx(primaries: int, transfer: int, matrix: int, *, full_range: bool = True) -> bytes:
    """Colours by code points (ITU-T H.273)."""
    return box(b"colr", b"nclx", struct.pack(">HHHB", primaries, transfer, matrix, 0x80 * full_range))


def exif_item(block: bytes, of: int = 1) -> Item:
    """EXIF, by reference to the picture that it describes."""
    return Item(kind=b"Exif", data=b"\0\0\0\0" + block, refers=((b"cdsc", (of,)),), hidden=True)


def xmp_item(packet: bytes, of: int = 1) -> Item:
    """XMP."""
    return Item(kind=b"mime", data=packet, refers=((b"cdsc", (of,)),), content_type=b"application/rdf+xml", hidden=True)


def container(brand: bytes, items: Sequence[Item], *, primary: int = 1, extra: bytes = b"") -> bytes:
    """The file. Items are numbered from 1; `extra` are boxes at its end."""
    shared: list[bytes] = []
    associations = b""
    for number, item in enumerate(items, start=1):
        indices = []
        for item_property in item.properties:
            if item_property not in shared:
                shared.append(item_property)
            # A reader that does not understand a transformation must not show the picture.
            essential = item_property[4:8] in (b"irot", b"imir", b"av1C", b"hvcC")
            indices.append(shared.index(item_property) + 1 | 0x80 * essential)
        if indices:
            associations += struct.pack(">HB", number, len(indices)) + bytes(indices)
    described = sum(1 for item in items if item.properties)
    entries = b"".join(
        box(
            b"infe",
            struct.pack(">IHH4s", 2 << 24 | item.hidden, number, 0, item.kind),
            b"\0",
            item.content_type + b"\0" if item.content_type else b"",
        )
        for number, item in enumerate(items, start=1)
    )
    references = b"".join(
        box(kind, struct.pack(f">HH{len(ids)}H", number, len(ids), *ids))
        for number, item in enumerate(items, start=1)
        for kind, ids in item.refers
    )

    def meta(data_at: int) -> bytes:
        places, at = b"", data_at
        for number, item in enumerate(items, start=1):
            places += struct.pack(">HHHII", number, 0, 1, at, len(item.data))
            at += len(item.data)
        return box(
            b"meta",
            bytes(4),
            box(b"hdlr", bytes(8), b"pict", bytes(13)),
            box(b"pitm", struct.pack(">IH", 0, primary)),
            box(b"iloc", struct.pack(">IBBH", 0, 0x44, 0, len(items)), places),
            box(b"iinf", struct.pack(">IH", 0, len(items)), entries),
            *([box(b"iref", bytes(4), references)] if references else []),
            box(
                b"iprp",
                box(b"ipco", *shared),
                box(b"ipma", struct.pack(">II", 0, described), associations),
            ),
        )

    head = box(b"ftyp", brand, bytes(4), b"mif1", brand, b"miaf")
    data_at = len(head) + len(meta(0)) + 8
    return head + meta(data_at) + box(b"mdat", *(item.data for item in items)) + extra


def _size(samples: Array) -> bytes:
    return box(b"ispe", struct.pack(">III", 0, samples.shape[1], samples.shape[0]))


def _channels(depth: int, count: int) -> bytes:
    return box(b"pixi", bytes(4), bytes([count]), bytes([depth]) * count)


# ── AVIF ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def avif(
    samples: Array,
    *,
    depth: int = 8,
    alpha: Array | None = None,
    properties: Sequence[bytes] = (),
    others: Sequence[Item] = (),
    extra: bytes = b"",
    **settings: Any,
) -> bytes:
    """A lossless AVIF of grey or RGB samples. `properties` are of the picture; `settings` override the encoder's."""
    items = [_av1_item(samples, depth, properties, **settings), *others]
    if alpha is not None:
        kind = auxiliary(b"urn:mpeg:mpegB:cicp:systems:auxiliary:alpha")
        mask = _av1_item(alpha, depth, [kind], refers=((b"auxl", (1,)),), **settings)
        items.append(mask)
    return container(b"avif", items, extra=extra)


def _av1_item(
    samples: Array, depth: int, properties: Sequence[bytes], *, refers: References = (), **settings: Any
) -> Item:
    grey = samples.ndim == 2
    options: dict[str, Any] = {
        "level": 100,
        "speed": 8,
        "bitspersample": depth,
        "pixelformat": "400" if grey else "444",
        "primaries": 1,
        "transfer": 13,
        "matrix": 1 if grey else 0,  # identity: red, green and blue as they are
        "numthreads": 1,
        **settings,
    }
    file = bytes(imagecodecs.avif_encode(samples, **options))
    parsed = dict(boxes(file))
    colours = (
        () if any(b"colr" in item_property[4:8] for item_property in properties) else (box(b"colr", parsed[b"colr"]),)
    )
    return Item(
        kind=b"av01",
        data=parsed[b"mdat"],
        properties=(
            _size(samples),
            _channels(depth, 1 if grey else 3),
            box(b"av1C", parsed[b"av1C"]),
            *colours,
            *properties,
        ),
        refers=refers,
    )


# ── HEIC ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def heic(
    samples: Array,
    *,
    depth: int = 8,
    alpha: Array | None = None,
    properties: Sequence[bytes] = (),
    others: Sequence[Item] = (),
    extra: bytes = b"",
) -> bytes:
    """A lossless HEIC of grey or RGB samples in one picture."""
    items = [hevc_item(samples, depth, properties), *others]
    if alpha is not None:
        kind = auxiliary(b"urn:mpeg:hevc:2015:auxid:1")
        items.append(hevc_item(alpha, depth, [kind], refers=((b"auxl", (1,)),)))
    return container(b"heic", items, extra=extra)


def heic_grid(samples: Array, tile: int, *, properties: Sequence[bytes] = (), others: Sequence[Item] = ()) -> bytes:
    """The same as square tiles in a grid, as phones write it. The last tiles extend beyond the picture."""
    height, width = samples.shape[:2]
    rows, columns = -(-height // tile), -(-width // tile)
    padded = np.pad(samples, ((0, rows * tile - height), (0, columns * tile - width), (0, 0)), mode="edge")
    tiles = [
        hevc_item(padded[y * tile : (y + 1) * tile, x * tile : (x + 1) * tile], 8, ())
        for y in range(rows)
        for x in range(columns)
    ]
    numbers = tuple(range(2 + len(others), 2 + len(others) + len(tiles)))
    layout = struct.pack(">BBBBHH", 0, 0, rows - 1, columns - 1, width, height)
    grid = Item(
        kind=b"grid",
        data=layout,
        properties=(_size(samples), _channels(8, 3), *properties),
        refers=((b"dimg", numbers),),
    )
    return container(b"heic", [grid, *others, *tiles])


def hevc_item(samples: Array, depth: int = 8, properties: Sequence[bytes] = (), *, refers: References = ()) -> Item:
    """An independent picture, whatever its relation to the others."""
    grey = samples.ndim == 2
    # Matrix 0 is identity, its planes in the order green, blue, red (ITU-T H.273, 8.3).
    planes = [samples] if grey else [samples[..., 1], samples[..., 2], samples[..., 0]]
    sets, data = _hevc(planes, depth)
    chroma = 0 if grey else 3
    arrays = b"".join(struct.pack(">BHH", 0x80 | kind, 1, len(unit)) + unit for kind, unit in sets)
    configuration = box(
        b"hvcC",
        b"\x01\x04",
        struct.pack(">I", 1 << 27),
        b"\x90\0\0\0\0\0",
        bytes([93, 0xF0, 0, 0xFC, 0xFC | chroma, 0xF8 | depth - 8, 0xF8 | depth - 8, 0, 0, 0x0F, len(sets)]),
        arrays,
    )
    colours = (
        []
        if any(item_property[4:12] == b"colrnclx" for item_property in properties)
        else [nclx(1, 13, 6 if grey else 0)]
    )
    return Item(
        kind=b"hvc1",
        data=data,
        properties=(_size(samples), _channels(depth, len(planes)), configuration, *colours, *properties),
        refers=refers,
    )


_BLOCK = 32
"""The side of a coding tree unit, which is also the largest block that PCM allows."""


def _hevc(planes: Sequence[Array], depth: int) -> tuple[list[tuple[int, bytes]], bytes]:
    """Parameter sets by type, and a picture with one slice per block (ITU-T H.265, 7.3).

    A slice begins with fresh contexts. Its only decision with a context, part_mode, is then coded in one known state,
    so everything between a slice's header and its samples is the same in each.
    """
    height, width = planes[0].shape
    down, across = -(-height // _BLOCK), -(-width // _BLOCK)
    padding = ((0, down * _BLOCK - height), (0, across * _BLOCK - width))
    padded = [np.pad(plane, padding, mode="edge") for plane in planes]
    colours = len(planes) == 3
    level = _u(2, 0) + "0" + _u(5, 4) + _u(32, 1 << 27) + "1001" + _u(43, 0) + "0" + _u(8, 93)
    video = _u(4, 0) + "11" + _u(6, 0) + _u(3, 0) + "1" + _u(16, 0xFFFF) + level + "1" + _ue(0) * 3
    video += _u(6, 0) + _ue(0) + "00"
    sequence = _u(4, 0) + _u(3, 0) + "1" + level + _ue(0) + _ue(3 if colours else 0) + ("0" if colours else "")
    sequence += _ue(across * _BLOCK) + _ue(down * _BLOCK)
    sequence += "1" + _ue(0) + _ue(across * _BLOCK - width) + _ue(0) + _ue(down * _BLOCK - height)
    sequence += _ue(depth - 8) * 2 + _ue(0) + "1" + _ue(0) * 3
    sequence += _ue(2) + _ue(0) + _ue(0) + _ue(3) + _ue(0) * 2  # blocks of 32 only, transforms of 4 to 32
    sequence += "000" + "1" + _u(4, depth - 1) * 2 + _ue(2) + _ue(0) + "1"  # PCM of 32, not filtered
    sequence += _ue(0) + "000" + "00"
    picture = _ue(0) * 2 + "00" + _u(3, 0) + "00" + _ue(0) * 2 + _ue(0) + "000" + _ue(0) * 2 + "000"
    picture += "000" + "0" + "1" + "01" + "00" + _ue(0) + "00"  # deblocking off
    sets = [(32, _nal(32, video + "1")), (33, _nal(33, sequence + "1")), (34, _nal(34, picture + "1"))]

    # part_mode is the likelier symbol (range 510 → 510 - 240), then pcm_flag ends the arithmetic code: 270 - 2.
    opening, closing = _ended_at(268), _ended_at(508)
    address_bits = (down * across - 1).bit_length()
    data = b""
    for address in range(down * across):
        y, x = address // across * _BLOCK, address % across * _BLOCK
        header = ("1" if address == 0 else "0") + "0" + _ue(0)
        header += _u(address_bits, address) if address else ""
        header = _aligned(header + _ue(2) + _ue(0) + "1")
        samples = "".join(
            _u(depth, value) for plane in padded for value in plane[y : y + _BLOCK, x : x + _BLOCK].ravel().tolist()
        )
        unit = _nal(19, header + _aligned(opening) + samples + closing)
        data += struct.pack(">I", len(unit)) + unit
    return sets, data


def _ended_at(low: int) -> str:
    """The bits of an arithmetic code that ends with this `low`, the stop bit included (H.265, 9.3.5.5)."""
    bits, outstanding, first = "", 0, True

    def put(bit: int) -> None:
        nonlocal bits, outstanding, first
        bits += ("" if first else str(bit)) + str(1 - bit) * outstanding
        outstanding, first = 0, False

    for _ in range(7):  # from a range of 2 to one of 256
        if low < 256:
            put(0)
        elif low >= 512:
            low -= 512
            put(1)
        else:
            low -= 256
            outstanding += 1
        low <<= 1
    put(low >> 9 & 1)
    return bits + _u(2, low >> 7 & 3 | 1)


def _u(width: int, value: int) -> str:
    return f"{value:0{width}b}" if width else ""


def _ue(value: int) -> str:
    """Exponential Golomb."""
    return f"{value + 1:0{2 * (value + 1).bit_length() - 1}b}"


def _aligned(bits: str) -> str:
    return bits + "0" * (-len(bits) % 8)


def _nal(kind: int, bits: str) -> bytes:
    bits = _aligned(bits)
    payload = int(bits, 2).to_bytes(len(bits) // 8, "big")
    out, zeros = bytearray([kind << 1, 1]), 0
    for value in payload:
        if zeros == 2 and value < 4:  # no start code may appear by accident
            out.append(3)
            zeros = 0
        out.append(value)
        zeros = zeros + 1 if value == 0 else 0
    return bytes(out)
