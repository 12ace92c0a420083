"""GIFs that are too large, too deep, absurd, or come in too many pieces."""

from __future__ import annotations

import functools
import random
from collections.abc import Iterator

from tests.fuzz.corpus import picture, saved
from tests.fuzz.handmade import gif
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
    yield from _deep()


def _large() -> Iterator[Case]:
    within = WITHIN_MEMORY
    small = gif.frame(64, 48)
    for side in (3000, 5000, SIDE):
        make = functools.partial(_solid_gif, side, side)
        yield case(f"gif-{side}x{side}", make, *within, heavy=True)
        screen = gif.gif(side, side, gif.control(transparent=0), small)
        yield case(f"gif-screen-{side}x{side}", screen, *within, heavy=True)
    yield case("gif-16mp-dense", _dense_gif, *within, heavy=True)
    for width, height in ((65535, 65535), (30000, 30000), (7216, 7216), (60000, 1), (1, 60000), (65501, 328)):
        yield case(f"gif-screen-{width}x{height}", gif.gif(width, height, small), *TOO_LARGE)
        beyond = gif.gif(64, 48, gif.frame(width, height, data=gif.solid_data(3072)))
        yield case(f"gif-frame-{width}x{height}", beyond, *TOO_LARGE, *DAMAGED)
        second = gif.gif(64, 48, small, gif.frame(width, height, data=gif.solid_data(3072)))
        yield case(f"gif-second-frame-{width}x{height}", second, *TOO_LARGE, DEVELOPED)
    for width, height in ((65500, 328), (328, 65500), (200, 1), (1, 1)):
        yield case(f"gif-{width}x{height}", _solid_gif(width, height), DEVELOPED)
    for width, height in ((60000, 1), (1, 60000), (201, 1)):
        yield case(f"gif-{width}x{height}", _solid_gif(width, height), *TOO_LARGE)


def _solid_gif(width: int, height: int) -> bytes:
    return gif.gif(width, height, gif.frame(width, height))


def _dense_gif() -> bytes:
    return saved(picture(4000, 4000, "L", noise=255), "GIF", optimize=False)


def _odd() -> Iterator[Case]:
    ends = (DEVELOPED, *DAMAGED)
    small = gif.frame(64, 48)
    for width, height in ((0, 48), (64, 0), (0, 0)):
        yield case(f"gif-size-{width}x{height}", gif.gif(width, height, small), *ends, *TOO_LARGE)
        none = gif.frame(width, height, data=gif.solid_data(10))
        yield case(f"gif-frame-size-{width}x{height}", gif.gif(64, 48, none), *ends)
        yield case(f"gif-both-sizes-{width}x{height}", gif.gif(width, height, none), *DAMAGED)
    yield case("gif-no-palette", gif.gif(64, 48, small, palette=False), *ends)
    yield case("gif-no-frame", gif.gif(64, 48), *DAMAGED)
    yield case("gif-no-trailer", gif.gif(64, 48, small)[:-1], *ends)
    yield case("gif-frame-outside", gif.gif(64, 48, gif.frame(64, 48, left=1000, top=1000)), *ends, *TOO_LARGE)
    yield case("gif-frame-far-outside", gif.gif(64, 48, gif.frame(64, 48, left=65535, top=65535)), *ends, *TOO_LARGE)
    for code_size in (0, 1, 8, 9, 11, 12, 13, 31, 255):
        odd = gif.gif(64, 48, gif.frame(64, 48, code_size=code_size))
        yield case(f"gif-code-size-{code_size}", odd, *ends)
    noise = random.Random(4)
    for number in range(8):
        odd = gif.gif(64, 48, gif.frame(64, 48, data=noise.randbytes(2000), code_size=8, flags=0x40 * (number % 2)))
        yield case(f"gif-noise-{number}", odd, *ends)
    yield case("gif-ones", gif.gif(64, 48, gif.frame(64, 48, data=b"\xff" * 2000)), *ends)
    yield case("gif-empty-data", gif.gif(64, 48, gif.frame(64, 48, data=b"")), *ends)
    yield case("gif-half-data", gif.gif(64, 48, gif.frame(64, 48, data=gif.solid_data(1500))), *ends)
    more = gif.frame(64, 48, data=gif.solid_data(50_000_000))
    yield case("gif-more-data-than-pixels", gif.gif(64, 48, more), *ends)
    yield case("gif-clear-codes", _clear_codes, *ends, heavy=True)
    yield case("gif-transparent-out-of-range", gif.gif(64, 48, gif.control(transparent=255), small), *ends)
    yield case("gif-disposal-7", gif.gif(64, 48, gif.control(disposal=7), small, small), DEVELOPED)
    for label in (0x00, 0x01, 0xF9, 0xFE, 0xFF):
        odd_extension = b"!" + bytes([label]) + gif.sub_blocks(b"\xff" * 300)
        yield case(f"gif-extension-{label:02x}", gif.gif(64, 48, odd_extension, small), *ends)
        empty = b"!" + bytes([label, 0])
        yield case(f"gif-extension-{label:02x}-empty", gif.gif(64, 48, empty, small), *ends)
    yield case("gif-unknown-block", gif.gif(64, 48, b"\x99" + bytes(20), small), *ends)
    yield case("gif-extension-without-end", gif.gif(64, 48, b"!\xfe" + b"\xff" * 1000), *DAMAGED)
    first_empty = gif.gif(64, 48, gif.frame(0, 0, data=b""), small)
    yield case("gif-first-frame-empty", first_empty, *ends)


def _clear_codes() -> bytes:
    return gif.gif(64, 48, gif.frame(64, 48, data=bytes.fromhex("244992") * 8_000_000))  # 4 in three bits, repeatedly


def _deep() -> Iterator[Case]:
    """Thousands of frames, and 25 MB of the smallest pieces."""
    ends = (DEVELOPED, *DAMAGED)
    tiny = gif.frame(1, 1)
    yield case("gif-1000-frames", gif.gif(64, 48, gif.frame(64, 48), tiny * 999), DEVELOPED)
    yield case("gif-1001-frames", gif.gif(64, 48, gif.frame(64, 48), tiny * 1000), DEVELOPED)
    yield case("gif-20000-frames", gif.gif(64, 48, tiny * 20_000), DEVELOPED)
    yield case("gif-1000-large-frames", _many_large_frames, *ends, *TOO_LARGE, heavy=True)
    yield case("gif-100000-extensions", gif.gif(64, 48, gif.comment(b"") * 100_000, gif.frame(64, 48)), *FLOODED)
    body = gif.gif(64, 48, gif.frame(64, 48))
    head, frame = body[:19], body[19:]
    pieces = {"frames": tiny, "extensions": b"!\xfe\x00", "controls": gif.control()}
    for name, piece in pieces.items():
        flood = flooded(head, piece, frame)
        yield case(f"gif-flood-{name}", flood, *FLOODED, heavy=True)
    # Sub-blocks of one byte each: in a comment, and in a frame's data.
    yield case("gif-flood-comment", flooded(head + b"!\xfe", b"\x01a", b"\x00" + frame), *FLOODED, heavy=True)
    comments = b"!\xfe" + b"\x01a" * 199_000 + b"\x00"
    yield case("gif-flood-comments", flooded(head, comments, frame), *FLOODED, heavy=True)
    start = frame[:11]
    yield case("gif-flood-data", flooded(head + start, b"\x01\x00", frame[11:]), *FLOODED, heavy=True)


def _many_large_frames() -> bytes:
    return gif.gif(5000, 5000, gif.frame(5000, 5000) * LIMITS.max_frames)
