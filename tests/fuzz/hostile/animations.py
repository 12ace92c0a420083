"""Animations that are too large, too many, absurd or damaged, whose variants keep them or are their poster."""

from __future__ import annotations

import functools
import random
import struct
import zlib
from collections.abc import Iterator

from PIL import Image

from tests.fuzz.corpus import picture, saved
from tests.fuzz.handmade import gif, png, webp
from tests.fuzz.hostile.case import (
    DAMAGED,
    DEVELOPED,
    KEPT,
    NEARLY_ALL_BYTES,
    POSTER,
    TOO_LARGE,
    UNSUPPORTED,
    Case,
    case,
)

_REFUSED = ("animation_too_large", *TOO_LARGE)
_4K = (3840, 2160)


def cases() -> Iterator[Case]:
    """All of them; each name says what is made of the animation."""
    yield from _gifs()
    yield from _pngs()
    yield from _webps()
    yield from _posters()


def _gifs() -> Iterator[Case]:
    name, ends = f"gif{KEPT}", (DEVELOPED, *DAMAGED)
    small, tiny = gif.frame(64, 48), gif.frame(1, 1)
    yield case(f"{name}10000-tiny", gif.gif(64, 48, tiny * 10_000), "too_many_frames")
    yield case(f"{name}200-tiny", gif.gif(64, 48, (gif.control(disposal=3) + tiny) * 200), DEVELOPED)
    yield case(f"{name}500-tiny", gif.gif(64, 48, (gif.control(disposal=2) + tiny) * 500), DEVELOPED, heavy=True)
    yield case(f"{name}canvas", gif.gif(16383, 16383, tiny, tiny), *_REFUSED)
    yield case(f"{name}4k", gif.gif(*_4K, gif.frame(*_4K), gif.control(disposal=3) + gif.frame(*_4K)), DEVELOPED)
    yield case(f"{name}800x600", gif.gif(800, 600, gif.frame(800, 600) * 1000), *_REFUSED)
    for width, height in ((65535, 65535), (65535, 1), (1, 65535), (16383, 16383)):
        large = gif.frame(width, height, data=gif.solid_data(3072))
        yield case(f"{name}frame-{width}x{height}", gif.gif(64, 48, small, large, small), *ends, *_REFUSED)
    for left, top in ((64, 48), (63, 47), (65535, 65535)):
        yield case(f"{name}at-{left}x{top}", gif.gif(64, 48, small, gif.frame(64, 48, left=left, top=top)), *ends)
    yield case(f"{name}empty-frame", gif.gif(64, 48, small, gif.frame(0, 0, data=b""), small), *ends)
    odd_control = b"!\xf9\x01\x09\x00"
    yield case(f"{name}short-control", gif.gif(64, 48, small, odd_control, small), *ends)
    loops = b"!\xff\x0bNETSCAPE2.0\x03\x01\xff\xff\x00"
    yield case(f"{name}most-plays", gif.gif(64, 48, loops, small, tiny), DEVELOPED)
    yield case(f"{name}cut-loop", gif.gif(64, 48, small, tiny)[:-1] + loops[:16], *ends)
    yield case(f"{name}noise", functools.partial(_noise, 6), DEVELOPED)
    yield case(f"{name}nested", gif.gif(64, 48, small, gif.gif(64, 48, small), small), *ends)


def _noise(frames: int) -> bytes:
    """Interlaced frames of noise with their own colour tables, each for no time."""
    pictures = [picture(300, 200, noise=255).rotate(turn * 40).quantize(255) for turn in range(frames)]
    return saved(pictures[0], "GIF", save_all=True, append_images=pictures[1:], duration=0, interlace=1, disposal=2)


def _pngs() -> Iterator[Case]:
    name, ends = f"png{KEPT}", (DEVELOPED, *DAMAGED)
    header, idat = png.header(64, 48), png.chunk(b"IDAT", _rows(64, 48))
    first = _control(0, 64, 48)
    for number, (width, height, left, top) in enumerate(
        ((2**31 - 1, 2**31 - 1, 0, 0), (0, 0, 0, 0), (64, 48, 2**31, 2**31), (64, 48, 1, 1))
    ):
        odd = png.png(header, _counted(2), first, idat, _control(1, width, height, left, top), _data(2, 64, 48))
        yield case(f"{name}frame-{number}", odd, *DAMAGED)
    bomb = _data(2, 3000, 3000)
    yield case(f"{name}inflates", png.png(header, _counted(2), first, idat, _control(1, 8, 8), bomb), *ends)
    yield case(f"{name}no-data", png.png(header, _counted(2), first, idat, _control(1, 8, 8)), *DAMAGED)
    short = png.chunk(b"fdAT", b"\0\0\0")
    yield case(f"{name}short-data", png.png(header, _counted(2), first, idat, _control(1, 8, 8), short), *DAMAGED)
    yield case(f"{name}no-control", png.png(header, _counted(2), idat, _data(0, 64, 48)), *ends)
    many = [piece for number in range(2000) for piece in (_control(2 * number, 8, 8), _data(2 * number + 1, 8, 8))]
    yield case(f"{name}2000-uncounted", png.png(header, _counted(2), idat, *many), DEVELOPED)
    odd_numbers = [_control(7, 8, 8, operations=(9, 9)), _data(7, 8, 8)]
    for colour in (png.RGB, png.PALETTE):
        for chunk in (b"tRNS", b"PLTE"):
            shared = functools.partial(_shared, png.header(8, 8, colour=colour), png.palette(colour), chunk)
            yield case(f"{name}{chunk.decode()}-for-1000-of-type-{colour}", shared, *DAMAGED)
    body = png.png(header, _counted(2), first, idat, _control(1, 64, 48), _data(2, 64, 48))
    yield case(f"{name}no-end", body[:-12], DEVELOPED)
    yield case(f"{name}cut", body[:-20], "truncated")
    yield case(f"{name}operations", png.png(header, _counted(2), first, idat, *odd_numbers), DEVELOPED)


def _shared(header: bytes, palette: list[bytes], name: bytes) -> bytes:
    """Many frames, for each of which a decoder needs a chunk of nearly the whole file."""
    parts = [_control(0, 8, 8), png.chunk(b"IDAT", _rows(8, 8))]
    for number in range(1, 2000, 2):
        parts += [_control(number, 8, 8), _data(number + 1, 8, 8)]
    large = png.chunk(name, bytes(NEARLY_ALL_BYTES - 200_000))
    return png.png(header, _counted(1000), *palette, large, *parts[:2000])


def _counted(frames: int) -> bytes:
    return png.chunk(b"acTL", struct.pack(">II", frames, 2**32 - 1))


def _control(
    number: int, width: int, height: int, left: int = 0, top: int = 0, *, operations: tuple[int, int] = (2, 1)
) -> bytes:
    return png.chunk(b"fcTL", struct.pack(">5I2H2B", number, width, height, left, top, 65535, 0, *operations))


def _data(number: int, width: int, height: int) -> bytes:
    return png.chunk(b"fdAT", struct.pack(">I", number) + _rows(width, height))


def _rows(width: int, height: int) -> bytes:
    return zlib.compress((b"\x00" + bytes(width * 3)) * height)


def _webps() -> Iterator[Case]:
    name = f"webp{KEPT}"
    small = webp.animation_frame(webp.solid(64, 48), width=64, height=48)
    huge = webp.animation_frame(webp.solid(16384, 16384), width=16384, height=16384)
    yield case(f"{name}canvas", webp.animation(16383, 16383, small, small), *_REFUSED)
    yield case(f"{name}frame", webp.animation(64, 48, small, huge), *DAMAGED)
    liar = webp.animation_frame(webp.solid(16384, 16384), width=64, height=48)
    yield case(f"{name}frame-lies", webp.animation(64, 48, small, liar), *DAMAGED)
    outside = webp.animation_frame(webp.solid(64, 48), left=2**24, top=2**24, width=64, height=48)
    yield case(f"{name}frame-outside", webp.animation(64, 48, small, outside), *DAMAGED)
    nested = webp.animation_frame(small, width=64, height=48)
    yield case(f"{name}nested", webp.animation(64, 48, small, nested), *DAMAGED)
    described = webp.webp(
        webp.extended(webp.ANIMATION | webp.EXIF, 64, 48),
        webp.chunk(b"ANIM", bytes(6)),
        small * 2,
        webp.chunk(b"EXIF", b"II*"),
    )
    for missing, outcome in ((1, DEVELOPED), (9, DEVELOPED), (12, DEVELOPED), (20, "truncated")):
        yield case(f"{name}lacks-{missing}", described[:-missing], outcome)
    yield case(f"{name}lacks-a-frame", webp.animation(64, 48, small * 2)[: -len(small)], "truncated")
    yield case(f"{name}200", webp.animation(64, 48, small * 200), DEVELOPED)
    frame = webp.animation_frame(webp.solid(*_4K, transforms=True), width=_4K[0], height=_4K[1])
    yield case(f"{name}4k", webp.animation(*_4K, frame, frame), DEVELOPED)
    for alpha in (False, True):
        beyond = functools.partial(_beyond, alpha=alpha)
        yield case(f"{name}beyond-1000-frames{'-of-alpha' * alpha}", beyond, *DAMAGED)
    yield case(f"{name}groups", functools.partial(_groups, 20), DEVELOPED)
    yield case(f"{name}too-many-groups", functools.partial(_groups, 1000), *_REFUSED)
    yield case(f"{name}no-canvas", webp.webp(webp.chunk(b"ANIM", bytes(6)), small, small), UNSUPPORTED, *DAMAGED)
    noise = Image.frombytes("RGBA", (64, 48), random.Random(5).randbytes(64 * 48 * 4))
    frames = [noise.rotate(90 * turn) for turn in range(3)]
    yield case(f"{name}noise", saved(frames[0], "WEBP", save_all=True, append_images=frames[1:]), DEVELOPED)


def _posters() -> Iterator[Case]:
    """Thousands of frames of one colour, among which there is no poster."""
    tiny, ends = gif.frame(1, 1), (DEVELOPED, *DAMAGED)
    yield case(f"gif{POSTER}20000-tiny", gif.gif(64, 48, gif.frame(64, 48), tiny * 20_000), DEVELOPED)
    yield case(f"gif{POSTER}800x600", gif.gif(800, 600, gif.frame(800, 600) * 1000), DEVELOPED, heavy=True)
    yield case(f"gif{POSTER}4k", gif.gif(*_4K, gif.frame(*_4K) * 100), DEVELOPED, heavy=True)
    large = gif.frame(65535, 65535, data=gif.solid_data(3072))
    yield case(f"gif{POSTER}large-second-frame", gif.gif(64, 48, gif.frame(64, 48), large), DEVELOPED)
    yield case(f"gif{POSTER}canvas", gif.gif(16383, 16383, tiny, tiny), *_REFUSED)
    small = webp.animation_frame(webp.solid(64, 48), width=64, height=48)
    yield case(f"webp{POSTER}30000", webp.animation(64, 48, small * 30_000), DEVELOPED)
    yield case(f"webp{POSTER}groups", functools.partial(_groups, 1000), *ends, heavy=True)
    many = [piece for number in range(0, 24_000, 2) for piece in (_control(number, 8, 8), _data(number + 1, 8, 8))]
    idat = png.chunk(b"IDAT", _rows(64, 48))
    long = png.png(png.header(64, 48), _counted(12_001), _control(0, 64, 48), idat, *many)
    yield case(f"png{POSTER}12001", long, DEVELOPED)


def _beyond(*, alpha: bool) -> bytes:
    """Many frames whose pictures say that they are as long as the rest of the file."""
    still = picture(16, 16)
    if alpha:
        still.putalpha(100)
    body = saved(still, "WEBP", quality=50)
    *alphas, last = [(name, body[at : at + length]) for name, at, length in webp.chunks(body) if name != b"VP8X"]
    coded = b"".join(webp.chunk(*chunk) for chunk in alphas) + webp.chunk(*last, length=11_900_000)
    frame = webp.animation_frame(coded, width=16, height=16)
    return webp.animation(16, 16, frame * 1000, webp.chunk(b"JUNK", bytes(12_000_000)))


def _groups(frames: int) -> bytes:
    frame = webp.animation_frame(webp.huffman_groups(256, 256, 4000), width=256, height=256)
    return webp.animation(256, 256, frame * frames)
