"""EXIF directories that loop, lie or never end: they may cost only the orientation."""

from __future__ import annotations

import functools
from collections.abc import Iterator

from tests.fuzz.corpus import corpus
from tests.fuzz.handmade import exif, jpeg, png, webp
from tests.fuzz.hostile.case import DAMAGED, DEVELOPED, Case, case


def cases() -> Iterator[Case]:
    """Broken EXIF may cost the orientation, but never the picture."""
    photo, drawing = corpus()["jpeg-420"], corpus()["png-rgb"]
    up = exif.entry(exif.ORIENTATION, exif.SHORT, 1, 6)
    links = [exif.entry(tag, exif.LONG, 1, 8) for tag in (exif.EXIF_IFD, exif.GPS_IFD, exif.INTEROPERABILITY_IFD)]
    long_text = exif.entry(0x010E, exif.ASCII, 2**31, 8)
    blocks = {
        "good": exif.orientation(6),
        "empty": b"",
        "nonsense": b"nonsense" * 30,
        "header-only": exif.exif(),
        "loop": exif.exif(exif.directory([up], following=8)),
        "loop-through-links": exif.exif(exif.directory([up, *links], following=8)),
        "many-links-back": exif.exif(exif.directory([links[0]] * 5000, following=8)),
        "claims-65535-entries": exif.exif(exif.directory([up] * 10, count=65535)),
        "5000-entries": exif.exif(exif.directory([up] * 5000)),
        "first-directory-outside": exif.exif(exif.directory([up]), first=2**32 - 1),
        "first-directory-in-header": exif.exif(exif.directory([up]), first=0),
        "next-directory-outside": exif.exif(exif.directory([up], following=2**32 - 2)),
        "text-outside": exif.exif(exif.directory([up, long_text])),
        "long-texts": exif.exif(exif.directory([exif.entry(0x010E, exif.ASCII, 50_000, 8)] * 4000)),
        "rationals": exif.exif(exif.directory([exif.entry(0x011A, exif.RATIONAL, 2**29, 8)] * 100)),
        "types": exif.exif(exif.directory([exif.entry(0x0112, kind, 1, 6) for kind in range(256)])),
        "maker-note": exif.exif(exif.directory([exif.entry(exif.MAKER_NOTE, exif.UNDEFINED, 60_000, 8)] * 3000)),
        "thumbnail-outside": exif.exif(
            exif.directory([exif.entry(exif.THUMBNAIL, exif.LONG, 1, 2**31), exif.entry(0x0202, exif.LONG, 1, 2**31)])
        ),
        "big-endian": b"MM" + exif.orientation(6)[2:],
        "big-tiff": b"II\x2b\x00\x08\x00\x00\x00" + bytes(30),
    }
    for value in (0, 1, 8, 9, 255, 65535):
        blocks[f"orientation-{value}"] = exif.orientation(value)
    for kind in (0, exif.ASCII, exif.LONG, exif.RATIONAL, 255):
        blocks[f"orientation-of-type-{kind}"] = exif.orientation(6, kind=kind)
    for count in (0, 2, 2**31):
        blocks[f"orientation-{count}-times"] = exif.orientation(6, count=count)
    for name, block in blocks.items():
        yield case(
            f"jpeg-exif-{name}", jpeg.inserted(photo, jpeg.segment(jpeg.APP1, b"Exif\x00\x00" + block)), DEVELOPED
        )
        yield case(f"png-exif-{name}", png.inserted(drawing, png.chunk(b"eXIf", block)), DEVELOPED, *DAMAGED)
        yield case(f"webp-exif-{name}", _webp_exif(block), DEVELOPED)
    wide = exif.exif(exif.directory([exif.entry(0x010E, exif.ASCII, 700_000, 8)] * 60_000))
    for name, block in (("wide", wide), ("wide-links", exif.exif(exif.directory([links[0]] * 60_000, following=8)))):
        yield case(
            f"png-exif-{name}", functools.partial(png.inserted, drawing, png.chunk(b"eXIf", block)), DEVELOPED, *DAMAGED
        )
        yield case(f"webp-exif-{name}", functools.partial(_webp_exif, block), DEVELOPED)
    chain = exif.exif(*(exif.directory([up], following=8 + 18 * (number + 1)) for number in range(3000)))
    yield case("jpeg-exif-chain", jpeg.inserted(photo, jpeg.segment(jpeg.APP1, b"Exif\x00\x00" + chain)), DEVELOPED)
    twice = jpeg.segment(jpeg.APP1, b"Exif\x00\x00" + exif.orientation(6))
    yield case("jpeg-exif-many-times", jpeg.inserted(photo, twice * 100), DEVELOPED)
    xmp = jpeg.segment(jpeg.APP1, b"http://ns.adobe.com/xap/1.0/\x00" + b"<x" * 30_000)
    yield case("jpeg-xmp-many-times", jpeg.inserted(photo, xmp * 100), DEVELOPED)


def _webp_exif(block: bytes) -> bytes:
    return webp.webp(webp.extended(webp.EXIF, 72, 56), corpus()["webp-lossy"][12:], webp.chunk(b"EXIF", block))
