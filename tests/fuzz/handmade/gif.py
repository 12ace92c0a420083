"""GIF by hand (GIF89a specification)."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from tests.fuzz.handmade.bits import BitWriter

TRAILER = b"\x3b"
_PALETTE = b"\x00\x00\x00\xff\xff\xff"


def gif(width: int, height: int, *blocks: bytes, palette: bool = True) -> bytes:
    """A file with that screen, a global palette of black and white (or none), and these blocks."""
    screen = struct.pack("<HHBBB", width, height, 0x80 if palette else 0, 0, 0)
    return b"GIF89a" + screen + (_PALETTE if palette else b"") + b"".join(blocks) + TRAILER


def frame(
    width: int,
    height: int,
    *,
    left: int = 0,
    top: int = 0,
    flags: int = 0,
    data: bytes | None = None,
    code_size: int = 2,
) -> bytes:
    """A frame; `data` is its LZW data, of one colour unless given."""
    descriptor = b"," + struct.pack("<HHHHB", left, top, width, height, flags)
    return descriptor + bytes([code_size]) + sub_blocks(solid_data(width * height) if data is None else data)


def sub_blocks(data: bytes, *, size: int = 255) -> bytes:
    """Data cut into sub-blocks, with a terminator."""
    return b"".join(bytes([len(part)]) + part for part in _parts(data, size)) + b"\x00"


def _parts(data: bytes, size: int) -> Iterator[bytes]:
    for at in range(0, len(data), size):
        yield data[at : at + size]


def control(*, transparent: int | None = None, disposal: int = 0) -> bytes:
    """A graphic control extension."""
    flags = disposal << 2 | (transparent is not None)
    return b"!\xf9\x04" + struct.pack("<BHB", flags, 10, transparent or 0) + b"\x00"


def comment(text: bytes, *, size: int = 255) -> bytes:
    """A comment extension."""
    return b"!\xfe" + sub_blocks(text, size=size)


def solid_data(pixels: int) -> bytes:
    """LZW data of that many pixels of colour 0: each code is one pixel longer than the last, up to 4,090.

    When the table is full the longest code is repeated, so that 50 million pixels take 18 KB.
    """
    bits = BitWriter()
    clear, end, size = 4, 5, 3
    bits.put(clear, size)
    bits.put(0, size)
    left, run, code = pixels - 1, 1, end
    while left > 0:
        if code < 4095:
            code += 1
            run += 1
        # The decoder knows the entry that this code makes only after it; codes widen when the table does.
        if code == 1 << size and size < 12:
            size += 1
        if run <= left:
            bits.put(code, size)
            left -= run
        else:
            bits.put(0, size)
            left -= 1
    bits.put(end, size)
    return bits.done()


def blocks(body: bytes) -> Iterator[tuple[int, int]]:
    """The start and end of every whole block after the screen and its palette."""
    at = 13 + _palette_bytes(body[10]) if len(body) > 13 else len(body)
    while at + 2 < len(body):
        start, kind = at, body[at]
        if kind == 0x21:
            at += 2
        elif kind == 0x2C and at + 10 < len(body):
            at += 11 + _palette_bytes(body[at + 9])
        else:
            return
        while at < len(body) and body[at]:
            at += 1 + body[at]
        at += 1
        if at > len(body):
            return
        yield start, at


def _palette_bytes(flags: int) -> int:
    return 3 << (flags & 7) + 1 if flags & 0x80 else 0
