"""GIF files written from the GIF89a specification: interlacing, offsets, transparency, disposal."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tests.engine.golden.colours import Array
from tests.fuzz.handmade.bits import BitWriter
from tests.fuzz.handmade.gif import comment, sub_blocks

__all__ = ["Frame", "comment", "extension", "gif"]


@dataclass(frozen=True, kw_only=True)
class Frame:
    """Palette indices at (left, top) of the screen; `colours` is the frame's own table, `delay` in hundredths of a
    second."""

    indices: Array
    left: int = 0
    top: int = 0
    transparent: int | None = None
    disposal: int = 0
    delay: int = 10
    interlaced: bool = False
    colours: Array | None = None


def gif(
    screen: tuple[int, int],
    frames: Sequence[Frame],
    *,
    colours: Array | None = None,
    background: int = 0,
    extensions: Sequence[bytes] = (),
    repeated: int | None = 0,
) -> bytes:
    """The file. `colours` is the global table, whose length is a power of two. More than one frame is `repeated` so
    often, 0 is for ever; None leaves that out."""
    table_flags = 0x80 | _table_bits(colours) if colours is not None else 0
    out = b"GIF89a" + struct.pack("<HHBBB", *screen, 0x70 | table_flags, background, 0)
    out += _table(colours)
    if len(frames) > 1 and repeated is not None:
        out += extension(0xFF, b"NETSCAPE2.0", struct.pack("<BH", 1, repeated))
    out += b"".join(extensions)
    for frame in frames:
        height, width = frame.indices.shape
        control = (frame.disposal << 2) | (frame.transparent is not None)
        out += b"\x21\xf9\x04" + struct.pack("<BHBB", control, frame.delay, frame.transparent or 0, 0)
        flags = (0x80 | _table_bits(frame.colours) if frame.colours is not None else 0) | (0x40 * frame.interlaced)
        out += b"\x2c" + struct.pack("<HHHHB", frame.left, frame.top, width, height, flags) + _table(frame.colours)
        rows = frame.indices
        if frame.interlaced:
            rows = np.concatenate([rows[0::8], rows[4::8], rows[2::4], rows[1::2]])
        out += b"\x08" + sub_blocks(_lzw(rows.astype(np.uint8).tobytes()))
    return out + b"\x3b"


def extension(label: int, head: bytes, body: bytes = b"") -> bytes:
    """A comment (0xFE), plain text (0x01) or application (0xFF) block."""
    return bytes([0x21, label, len(head)]) + head + sub_blocks(body)


def _table(colours: Array | None) -> bytes:
    return b"" if colours is None else colours.astype(np.uint8).tobytes()


def _table_bits(colours: Array | None) -> int:
    return 0 if colours is None else int(np.log2(len(colours))) - 1


def _lzw(data: bytes) -> bytes:
    """LZW with eight-bit symbols and codes of nine to twelve bits (GIF89a, appendix F)."""
    clear, end, width = 256, 257, 9
    fresh = {bytes([value]): value for value in range(256)}
    codes, run, bits = dict(fresh), b"", BitWriter()
    bits.put(clear, width)
    for value in data:
        longer = run + bytes([value])
        if longer in codes:
            run = longer
            continue
        bits.put(codes[run], width)
        codes[longer] = len(codes) + 2
        if codes[longer] == 1 << width:
            width += 1
        if codes[longer] == 4095:
            bits.put(clear, width)
            codes, width = dict(fresh), 9
        run = bytes([value])
    bits.put(codes[run], width)
    bits.put(end, width)
    return bits.done()
