"""Files that are no image, another one than they seem, several things at once, or incomplete."""

from __future__ import annotations

import functools
import random
import struct
from collections.abc import Iterator

from tests.fuzz.corpus import corpus, picture, saved
from tests.fuzz.handmade import gif, isobmff, jpeg, png, webp
from tests.fuzz.hostile.case import DAMAGED, DEVELOPED, LIMITS, TOO_LARGE, UNSUPPORTED, Case, case


def cases() -> Iterator[Case]:
    """All of them."""
    yield from _no_image()
    yield from _confused()
    yield from _polyglots()
    yield from _truncated()


def _no_image() -> Iterator[Case]:
    yield case("none-empty", b"", UNSUPPORTED)
    yield case("none-one-byte", b"\xff", UNSUPPORTED)
    yield case("none-zeros", bytes(1_000_000), UNSUPPORTED)
    yield case("none-ones", b"\xff" * 1_000_000, UNSUPPORTED)
    yield case("none-too-many-bytes", lambda: bytes(LIMITS.max_bytes + 1), "file_too_large")
    yield case("none-jpeg-of-too-many-bytes", lambda: jpeg.solid(64, 64) + bytes(LIMITS.max_bytes), "file_too_large")
    small = picture(32, 24)
    for other in ("TIFF", "BMP", "ICO", "PPM", "TGA", "PCX", "JPEG2000", "ICNS", "PDF", "EPS"):
        yield case(f"none-{other.lower()}", functools.partial(saved, small, other), UNSUPPORTED)
    laughs = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))
    svg = f'<?xml version="1.0"?><!DOCTYPE svg [<!ENTITY l0 "lol">{laughs}]><svg><text>&l9;</text></svg>'
    yield case("none-svg", svg.encode(), UNSUPPORTED)
    yield case("none-html", b"<!DOCTYPE html><script>alert(1)</script>", UNSUPPORTED)
    yield case("none-jxl", b"\xff\x0a" + bytes(100), UNSUPPORTED)
    yield case("none-psd", b"8BPS\x00\x01" + bytes(6) + struct.pack(">HIIHH", 3, 30000, 30000, 8, 3), UNSUPPORTED)
    yield case("none-mp4", isobmff.box(b"ftyp", b"isom", bytes(4), b"mp42"), UNSUPPORTED)
    for signature in ("jpeg", "png", "webp", "gif"):
        head = _SIGNATURES[signature]
        yield case(f"{signature}-signature-only", head, *DAMAGED)
        yield case(f"{signature}-signature-and-zeros", head + bytes(10_000), *DAMAGED, UNSUPPORTED)
        yield case(f"{signature}-signature-and-ones", head + b"\xff" * 10_000, *DAMAGED, *TOO_LARGE)
        noise = random.Random(signature).randbytes(100_000)
        yield case(f"{signature}-signature-and-noise", head + noise, *DAMAGED, *TOO_LARGE, UNSUPPORTED)


_SIGNATURES = {
    "jpeg": b"\xff\xd8\xff",
    "png": png.SIGNATURE,
    "webp": b"RIFF\x10\x27\x00\x00WEBPVP8 ",
    "gif": b"GIF89a",
    "avif": isobmff.box(b"ftyp", b"avif", bytes(4), b"mif1avif"),
    "heic": isobmff.box(b"ftyp", b"heic", bytes(4), b"mif1heic"),
}


def _confused() -> Iterator[Case]:
    """One format's signature before another's file, and one format's picture in another's container."""
    samples = {"jpeg": "jpeg-420", "png": "png-rgb", "webp": "webp-lossy", "gif": "gif-plain", "avif": "avif-420"}
    for claimed, signature in _SIGNATURES.items():
        for actual, sample in samples.items():
            if claimed != actual:
                body = corpus()[sample]
                yield case(
                    f"{claimed}-but-{actual}", signature + body[len(signature) :], *DAMAGED, *TOO_LARGE, UNSUPPORTED
                )
                yield case(f"{claimed}-before-{actual}", signature + body, *DAMAGED, *TOO_LARGE, UNSUPPORTED)
    yield case("webp-of-jpeg", webp.webp(webp.chunk(b"VP8 ", corpus()["jpeg-420"])), *DAMAGED)
    yield case("webp-of-lossless-as-lossy", webp.webp(webp.chunk(b"VP8 ", webp.solid(9, 9)[8:])), *DAMAGED)
    yield case("png-of-jpeg", png.png(png.header(72, 56), png.chunk(b"IDAT", corpus()["jpeg-420"])), *DAMAGED)
    heic_as_avif = corpus()["heic-plain"].replace(b"heic", b"avif")
    yield case("avif-of-hevc", heic_as_avif, UNSUPPORTED)
    yield case("heic-of-av1", corpus()["avif-420"].replace(b"avif", b"heic"), UNSUPPORTED)


def _polyglots() -> Iterator[Case]:
    zip_file = b"PK\x05\x06" + bytes(18)
    script = b"=1;alert(1)//"
    for name in ("jpeg-420", "png-rgb", "webp-lossy", "gif-plain", "avif-420", "heic-plain"):
        body = corpus()[name]
        kind = name.partition("-")[0]
        yield case(f"{kind}-and-zip", body + zip_file, DEVELOPED)
        yield case(f"{kind}-and-html", body + b"<script>alert(1)</script>", DEVELOPED)
        yield case(f"{kind}-twice", body + body, DEVELOPED)
        yield case(f"{kind}-and-megabytes-of-zeros", body + bytes(10_000_000), DEVELOPED)
    screen = struct.unpack("<H", b"/*")[0]
    yield case("gif-and-script", gif.gif(screen, 100, gif.frame(30, 20)) + b"*/" + script, DEVELOPED)
    yield case(
        "jpeg-with-html",
        jpeg.inserted(corpus()["jpeg-420"], jpeg.segment(jpeg.COM, b"<script>alert(1)</script>")),
        DEVELOPED,
    )
    yield case("jpeg-behind-pdf", b"%PDF-1.4\n" + corpus()["jpeg-420"], UNSUPPORTED)
    php = png.chunk(b"tEXt", b"Comment\x00<?php system($_GET[0]); ?>")
    yield case("png-with-php", png.inserted(corpus()["png-rgb"], php), DEVELOPED)


def _truncated() -> Iterator[Case]:
    """One file of each format, cut off after every kilobyte."""
    files = {
        "jpeg": saved(picture(200, 150), "JPEG", quality=88),
        "jpeg-progressive": saved(picture(200, 150), "JPEG", quality=88, progressive=True),
        "png": saved(picture(100, 75), "PNG"),
        "png-interlaced": corpus()["png-rgba-16-interlaced"],
        "webp": saved(picture(320, 240), "WEBP", quality=95),
        "webp-lossless": saved(picture(100, 75), "WEBP", lossless=True),
        "webp-alpha": saved(picture(240, 180, "RGBA"), "WEBP", quality=95),
        "gif": saved(picture(160, 120).quantize(128), "GIF", interlace=0),
        "gif-interlaced": saved(picture(160, 120).quantize(128), "GIF", interlace=1),
        "avif": saved(picture(200, 150), "AVIF", speed=10, quality=90),
        "heic": corpus()["heic-metadata"],
    }
    for name, body in files.items():
        for length in range(1000, len(body), 1000):
            yield case(f"{name}-of-{length}-bytes", body[:length], "truncated")
