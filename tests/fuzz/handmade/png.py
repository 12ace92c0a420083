"""PNG by hand (W3C Portable Network Graphics, third edition)."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator

SIGNATURE = b"\x89PNG\r\n\x1a\n"
GREY, RGB, PALETTE, GREY_ALPHA, RGBA = 0, 2, 3, 4, 6
CHANNELS = {GREY: 1, RGB: 3, PALETTE: 1, GREY_ALPHA: 2, RGBA: 4}
# Adam7: where each pass begins and how far apart its pixels are (first column, first row, column step, row step).
_PASSES = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2))


def chunk(name: bytes, data: bytes = b"", *, length: int | None = None) -> bytes:
    """A chunk with the right CRC; `length` is the false length that it claims, if any."""
    claimed = len(data) if length is None else length
    return struct.pack(">I", claimed) + name + data + struct.pack(">I", zlib.crc32(name + data))


def header(
    width: int, height: int, *, depth: int = 8, colour: int = RGB, compression: int = 0, interlace: int = 0
) -> bytes:
    """The IHDR chunk."""
    return chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, colour, compression, 0, interlace))


def png(*chunks: bytes) -> bytes:
    """A file of these chunks, with its IEND chunk."""
    return SIGNATURE + b"".join(chunks) + chunk(b"IEND")


def solid(
    width: int, height: int, *, depth: int = 8, colour: int = RGB, interlace: int = 0, row_filter: int = 0
) -> bytes:
    """A complete valid black picture of any size: rows of zeros take next to nothing.

    `row_filter` 4 (Paeth) is the most expensive one for a decoder.
    """
    compressor = zlib.compressobj(9)
    data = []
    for row_bytes, count in rows(width, height, depth=depth, colour=colour, interlace=interlace):
        row = bytes([row_filter]) + bytes(row_bytes - 1)
        # About a megabyte at a time, so that the picture is never whole in memory.
        at_once = max(1, 1_000_000 // row_bytes)
        data += [compressor.compress(row * min(at_once, count - start)) for start in range(0, count, at_once)]
    data.append(compressor.flush())
    head = header(width, height, depth=depth, colour=colour, interlace=interlace)
    return png(head, *palette(colour), chunk(b"IDAT", b"".join(data)))


def palette(colour: int) -> list[bytes]:
    """The palette that a picture of that colour type needs: a black one, or none."""
    return [chunk(b"PLTE", bytes(768))] if colour == PALETTE else []


def rows(width: int, height: int, *, depth: int, colour: int, interlace: int) -> Iterator[tuple[int, int]]:
    """The bytes per row, its filter included, and the number of such rows: once, or for each Adam7 pass."""
    for left, top, across, down in _PASSES if interlace else ((0, 0, 1, 1),):
        columns, count = -(-(width - left) // across), -(-(height - top) // down)
        if columns > 0 and count > 0:
            yield 1 + (columns * depth * CHANNELS[colour] + 7) // 8, count


def inserted(body: bytes, *pieces: bytes) -> bytes:
    """The file with these chunks after its header."""
    return body[:33] + b"".join(pieces) + body[33:]


def chunks(body: bytes) -> Iterator[tuple[bytes, int, int]]:
    """Every whole chunk of a file: name, offset of its data, length."""
    at = len(SIGNATURE)
    while at + 12 <= len(body):
        length, name = struct.unpack_from(">I4s", body, at)
        if at + 12 + length > len(body):
            return
        yield name, at + 8, length
        at += 12 + length


def with_mended_crcs(body: bytes) -> bytes:
    """The file with the right CRC for each chunk's bytes: decoders would stop at a wrong one."""
    if not body.startswith(SIGNATURE):
        return body
    mended = bytearray(body)
    for _, at, length in chunks(body):
        struct.pack_into(">I", mended, at + length, zlib.crc32(body[at - 4 : at + length]))
    return bytes(mended)
