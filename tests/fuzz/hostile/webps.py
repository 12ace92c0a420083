"""WebPs that are too large, too costly to set up, contradict themselves, or come in too many pieces."""

from __future__ import annotations

import functools
import math
import random
import struct
from collections.abc import Iterator

from PIL import Image

from tests.fuzz.corpus import corpus, picture, saved
from tests.fuzz.handmade import webp
from tests.fuzz.hostile.case import (
    DAMAGED,
    DEVELOPED,
    FLOODED,
    LIMITS,
    SIDE,
    TOO_LARGE,
    WITHIN_MEMORY,
    Case,
    case,
    flooded,
)


def cases() -> Iterator[Case]:
    """All of them."""
    yield from _large()
    yield from _odd()
    yield from _animations()


def _large() -> Iterator[Case]:
    within = WITHIN_MEMORY
    for name, transforms in (("", False), ("-transforms", True)):
        for width, height in ((16383, 3173), (SIDE, SIDE), (6300, 6300), (4900, 4900), (4000, 3000)):
            body = webp.webp(webp.solid(width, height, transforms=transforms))
            yield case(f"webp-{width}x{height}-lossless{name}", body, *within, heavy=True)
    for megapixels in (24, 31, 52):  # the engine may treat the largest differently
        side = min(SIDE, math.isqrt(megapixels * 1_000_000))
        for alpha in ("", "-alpha"):
            mode = "RGBA" if alpha else "RGB"
            solid = functools.partial(_lossy, side, mode)
            yield case(f"webp-{megapixels}mp-lossy{alpha}", solid, *within, heavy=True)
            dense = functools.partial(_dense_lossy, side, mode)
            yield case(f"webp-{megapixels}mp-lossy{alpha}-dense", dense, *within, heavy=True)
    yield case("webp-8mp-lossless-dense", _dense_lossless_webp, *within, heavy=True)
    for width, height in ((16384, 16384), (7216, 7216), (16384, 1), (1, 16384), (16383, 1), (1, 16383), (201, 1)):
        yield case(f"webp-lossless-{width}x{height}", webp.webp(webp.solid(width, height)), *TOO_LARGE)
    for width, height in ((16383, 82), (82, 16383), (200, 1), (1, 1)):
        yield case(f"webp-lossless-{width}x{height}", webp.webp(webp.solid(width, height)), DEVELOPED)
    for width, height in ((16383, 16383), (7216, 7216), (16383, 1)):
        yield case(f"webp-lossy-claims-{width}x{height}", _lossy_claiming(width, height), *TOO_LARGE)
    yield case("webp-lossy-52mp-of-nothing", _lossy_claiming(SIDE, SIDE), DEVELOPED, *DAMAGED, heavy=True)
    # Tables for 65,536 groups of prefix codes, which no header announces, for few pixels.
    for side, groups in ((64, 256), (256, 4096), (512, 16384), (1024, 65536), (4000, 65536), (7000, 65536)):
        made = functools.partial(_with_groups, side, groups)
        yield case(f"webp-{side}x{side}-{groups}-groups", made, *within, *DAMAGED, heavy=groups > 5000)


def _with_groups(side: int, groups: int) -> bytes:
    return webp.webp(webp.huffman_groups(side, side, groups))


def _lossy(side: int, mode: str) -> bytes:
    return saved(Image.new(mode, (side, side), (10, 20, 30, 128)[: len(mode)]), "WEBP", method=0)


def _dense_lossy(side: int, mode: str) -> bytes:
    """Noise in the maximum number of bytes."""
    part = picture(side, side // 16, mode, noise=255)
    large = Image.new(mode, (side, side // 16 * 16))
    for number in range(16):
        large.paste(part, (0, number * part.height))
    for quality in (90, 75, 50, 25, 15, 8, 4, 2, 0):
        try:
            body = saved(large, "WEBP", quality=quality, alpha_quality=0, method=0)
        except ValueError:  # so much noise does not fit into the format's first partition
            continue
        if len(body) <= LIMITS.max_webp_bytes:
            return body
    raise ValueError("no quality is low enough")


def _dense_lossless_webp() -> bytes:
    return saved(picture(2850, 2850, noise=255), "WEBP", lossless=True, quality=0, method=0)


def _lossy_claiming(width: int, height: int) -> bytes:
    body = bytearray(corpus()["webp-lossy"])
    struct.pack_into("<HH", body, 26, width, height)
    return bytes(body)


def _odd() -> Iterator[Case]:
    ends = (DEVELOPED, *DAMAGED)
    lossy = corpus()["webp-lossy"][12:]
    plain = webp.solid(64, 48)
    for width, height in ((2**24, 2**24), (16384, 16384), (7216, 7216), (60000, 1), (1, 60000)):
        odd = webp.webp(webp.extended(0, width, height), plain)
        yield case(f"webp-canvas-{width}x{height}", odd, *DAMAGED, *TOO_LARGE)
    for width, height in ((63, 48), (65, 48), (1, 1), (2000, 2000)):
        yield case(f"webp-canvas-not-frame-{width}x{height}", webp.webp(webp.extended(0, width, height), plain), *ends)
    large = webp.webp(webp.extended(0, 64, 48), webp.solid(16384, 16384))
    yield case("webp-frame-larger-than-canvas", large, *DAMAGED, *TOO_LARGE)
    for flags in (0xFF, webp.ANIMATION, webp.ALPHA | webp.ICC | webp.EXIF | webp.XMP):
        yield case(f"webp-flags-{flags:02x}", webp.webp(webp.extended(flags, 64, 48), plain), *ends)
    for length in (0, 3, 2**31, 2**32 - 1, len(plain) + 2):
        odd_length = webp.webp(webp.chunk(b"VP8L", plain[8:], length=length))
        yield case(f"webp-frame-of-{length}", odd_length, *ends)
        yield case(f"webp-file-of-{length}", webp.webp(plain, length=length), *ends)
        before = webp.webp(webp.extended(0, 64, 48), webp.chunk(b"TEST", bytes(9), length=length), plain)
        yield case(f"webp-chunk-of-{length}", before, *ends)
    yield case("webp-no-frame", webp.webp(webp.extended(0, 64, 48)), *DAMAGED)
    yield case("webp-two-frames", webp.webp(webp.extended(0, 64, 48), plain, webp.solid(16384, 16384)), *ends)
    yield case("webp-two-frames-simple", webp.webp(plain, webp.solid(16384, 16384)), *ends)
    yield case("webp-canvas-behind-frame", webp.webp(plain, webp.extended(0, 16384, 16384)), *ends)
    yield case("webp-two-canvases", webp.webp(webp.extended(0, 64, 48), webp.extended(0, 9000, 9000), plain), *ends)
    alpha = webp.extended(webp.ALPHA, 72, 56)
    for method, name in ((0, "raw"), (1, "lossless"), (2, "unknown")):
        for data in (b"", bytes(10), b"\xff" * 5000):
            odd = webp.webp(alpha, webp.chunk(b"ALPH", bytes([method]) + data), lossy)
            yield case(f"webp-alpha-{name}-of-{len(data)}", odd, *ends)
    yield case("webp-alphas-without-picture", webp.webp(alpha, webp.chunk(b"ALPH", b"") * 9000), *DAMAGED)
    yield case("webp-alpha-alone", webp.webp(alpha, webp.chunk(b"ALPH", bytes(9))), *DAMAGED)
    for transform in range(4):
        bits = webp.lossless_header(64, 48)
        for value, size in ((1, 1), (transform, 2), (2**30 - 1, 30)):
            bits.put(value, size)
        yield case(
            f"webp-transform-{transform}-of-ones", webp.webp(webp.chunk(b"VP8L", bits.done() + bytes(50))), *ends
        )
    for cache in range(16):
        bits = webp.lossless_header(64, 48)
        bits.put(0, 1)
        bits.put(1 | cache << 1, 5)
        yield case(f"webp-cache-{cache}", webp.webp(webp.chunk(b"VP8L", bits.done() + bytes(500))), *ends)
    noise = random.Random(3)
    for number in range(8):
        head = webp.lossless_header(64, 48).done()
        yield case(f"webp-lossless-noise-{number}", webp.webp(webp.chunk(b"VP8L", head + noise.randbytes(3000))), *ends)
        still = corpus()["webp-lossy"][20:30] + noise.randbytes(3000)
        yield case(f"webp-lossy-noise-{number}", webp.webp(webp.chunk(b"VP8 ", still)), *ends)
    for kind in ("TEST", "EXIF", "ICCP", "XMP ", "ALPH"):
        flood = functools.partial(_with_many, webp.chunk(kind.encode(), b""))
        yield case(f"webp-flood-{kind.strip().lower()}", flood, *FLOODED, heavy=True)


def _with_many(chunk: bytes) -> bytes:
    body = webp.webp(webp.extended(0, 64, 48), webp.solid(64, 48))
    return webp.with_mended_size(flooded(body[:30], chunk, body[30:])())


def _animations() -> Iterator[Case]:
    ends = (DEVELOPED, *DAMAGED, *TOO_LARGE)
    small = webp.animation_frame(webp.solid(64, 48), width=64, height=48)
    huge = webp.animation_frame(webp.solid(16384, 16384), width=16384, height=16384)
    yield case("webp-animation", webp.animation(64, 48, small, small), DEVELOPED)
    yield case("webp-animation-canvas-bomb", webp.animation(16384, 16384, small), *TOO_LARGE)
    yield case("webp-animation-canvas-52mp", webp.animation(SIDE, SIDE, small), *ends, heavy=True)
    yield case("webp-animation-frame-bomb", webp.animation(64, 48, huge), *DAMAGED, *TOO_LARGE)
    yield case("webp-animation-second-frame-bomb", webp.animation(64, 48, small, huge), *ends)
    liar = webp.animation_frame(webp.solid(16384, 16384), width=64, height=48)
    yield case("webp-animation-frame-lies", webp.animation(64, 48, liar), *DAMAGED, *TOO_LARGE)
    outside = webp.animation_frame(webp.solid(64, 48), left=2**24, top=2**24, width=64, height=48)
    yield case("webp-animation-frame-outside", webp.animation(64, 48, outside), *ends)
    yield case("webp-animation-no-frame", webp.animation(64, 48), *DAMAGED)
    empty = webp.animation_frame(b"", width=64, height=48)
    yield case("webp-animation-empty-frame", webp.animation(64, 48, empty), *DAMAGED)
    nested = webp.animation_frame(small, width=64, height=48)
    yield case("webp-animation-in-frame", webp.animation(64, 48, nested), *DAMAGED)
    yield case("webp-1000-frames", webp.animation(64, 48, small * 1000), DEVELOPED)
    yield case("webp-1001-frames", webp.animation(64, 48, small * 1001), DEVELOPED)
    flood = functools.partial(webp.animation, 64, 48, small * 300_000)
    yield case("webp-300000-frames", flood, DEVELOPED, heavy=True)
    big = webp.animation_frame(webp.solid(4000, 4000), width=4000, height=4000)
    yield case("webp-1000-frames-16mp", webp.animation(4000, 4000, big * 1000), *ends, heavy=True)
    yield case("webp-animation-65536-groups", _animated_groups, *ends, heavy=True)
    hidden = webp.webp(webp.extended(0, 64, 48), small, webp.solid(64, 48))
    yield case("webp-frame-in-still", hidden, *ends)


def _animated_groups() -> bytes:
    frame = webp.animation_frame(webp.huffman_groups(1024, 1024, 65_536), width=1024, height=1024)
    return webp.animation(1024, 1024, frame)
