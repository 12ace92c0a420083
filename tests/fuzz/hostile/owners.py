"""Metadata that says whose picture it is, made to break its reader: it may cost the author, but never the picture."""

from __future__ import annotations

import functools
import struct
import zlib
from collections.abc import Iterator

from tests.fuzz.corpus import corpus
from tests.fuzz.handmade import exif, jpeg, png
from tests.fuzz.hostile.case import DAMAGED, DEVELOPED, Case, case

_HEAD = (
    b"<x:xmpmeta xmlns:x='adobe:ns:meta/'><rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#'>"
    b"<rdf:Description xmlns:dc='http://purl.org/dc/elements/1.1/'>"
)
_TAIL = b"</rdf:Description></rdf:RDF></x:xmpmeta>"
_APP13 = 0xED
_MEGABYTE = 1_000_000


def cases() -> Iterator[Case]:
    """All of them."""
    photo, drawing = corpus()["jpeg-420"], corpus()["png-rgb"]
    levels = "".join(f"<!ENTITY {b} '{f'&{a};' * 10}'>" for a, b in zip("abcdefgh", "bcdefghi", strict=True))
    bomb = f"<!DOCTYPE x [<!ENTITY a 'ha'>{levels}]>".encode()
    packets = {
        "entity-bomb": bomb + _HEAD + b"<dc:creator>&i;</dc:creator>" + _TAIL,
        "file": b"<!DOCTYPE x SYSTEM 'file:///etc/passwd'>" + _HEAD + _TAIL,
        "deep": b"<a>" * 20_000,
        "attributes": _HEAD + b"<a " + b" ".join(b"b%d=''" % number for number in range(5000)) + b"/>" + _TAIL,
        "names": _HEAD + b"<" + b"a" * 60_000 + b"/>" + _TAIL,
        "creators": _HEAD
        + b"<dc:creator><rdf:Seq>"
        + b"<rdf:li>a</rdf:li>" * 3000
        + b"</rdf:Seq></dc:creator>"
        + _TAIL,
        "never-ends": _HEAD + b"<dc:creator>" + b"a" * 60_000,
        "encoding": b"<?xml version='1.0' encoding='idna'?>" + _HEAD + _TAIL,
        "no-text": bytes(range(256)) * 200,
    }
    for name, packet in packets.items():
        segment = jpeg.segment(jpeg.APP1, b"http://ns.adobe.com/xap/1.0/\0" + packet)
        yield case(f"jpeg-owner-xmp-{name}", jpeg.inserted(photo, segment), DEVELOPED)
    inflated = functools.partial(_packed, drawing, _HEAD + b"<a/>" * 25 * _MEGABYTE)
    yield case("png-owner-xmp-deflated-bomb", inflated, DEVELOPED, *DAMAGED, heavy=True)
    for name, piece in (("elements", b"<a/>"), ("values", b"<dc:creator>x</dc:creator>"), ("entities", b"&amp;")):
        dense = _HEAD + piece * ((_MEGABYTE - 1000) // len(piece)) + _TAIL
        yield case(f"png-owner-xmp-{name}", functools.partial(_packed, drawing, dense), DEVELOPED, *DAMAGED)

    texts = [exif.entry(tag, exif.ASCII, 40_000, 8) for tag in (0x013B, 0x8298)]
    for name, block in (
        ("overlapping", exif.exif(exif.directory(texts * 250), b'"' * 40_000)),
        ("outside", exif.exif(exif.directory([exif.entry(0x8298, exif.ASCII, 2**32 - 1, 8)]))),
        ("quotes", exif.exif(exif.directory([exif.entry(0x013B, exif.ASCII, 30_000, 26)]), b'";' * 15_000)),
    ):
        yield case(
            f"jpeg-owner-exif-{name}", jpeg.inserted(photo, jpeg.segment(jpeg.APP1, b"Exif\0\0" + block)), DEVELOPED
        )

    empty = struct.pack(">BBBH", 0x1C, 2, 80, 0)
    for name, resources in (
        ("datasets", _resource(0x0404, empty * 13_000)),
        ("resources", _resource(0x0404, b"") * 5000),
        ("length", struct.pack(">4sHHI", b"8BIM", 0x0404, 0, 2**32 - 1)),
        ("dataset-length", _resource(0x0404, b"\x1c\x02\x50\xff\xff" * 100)),
        ("dataset-extended", _resource(0x0404, b"\x1c\x02\x50\x80\x04\0\0\0\0" * 5000 + b"\x1c\x02\x50\x80\x04\xff")),
        ("name", b"8BIM\x04\x04\xff" + b"a" * 20),
    ):
        segment = jpeg.segment(_APP13, b"Photoshop 3.0\0" + resources)
        yield case(f"jpeg-owner-iptc-{name}", jpeg.inserted(photo, segment), DEVELOPED)
        yield case(f"jpeg-owner-iptc-{name}-many-times", jpeg.inserted(photo, segment * 100), DEVELOPED)


def _packed(drawing: bytes, packet: bytes) -> bytes:
    text = b"XML:com.adobe.xmp\0\1\0\0\0" + zlib.compress(packet)
    return png.inserted(drawing, png.chunk(b"iTXt", text))


def _resource(number: int, data: bytes) -> bytes:
    return struct.pack(">4sHHI", b"8BIM", number, 0, len(data)) + data + bytes(len(data) % 2)
