"""WebP by hand (RFC 9649): containers, and lossless pictures whose pixels take no bits at all."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from tests.fuzz.handmade.bits import BitWriter

ANIMATION, XMP, EXIF, ALPHA, ICC = 0x02, 0x04, 0x08, 0x10, 0x20
_SIMPLE_ZERO = 0b0001
"""A prefix code with only the symbol 0: "simple", one symbol, one bit wide, zero (the lowest bit comes first)."""

_REVERSED = [int(f"{value:08b}"[::-1], 2) for value in range(256)]


def chunk(name: bytes, data: bytes, *, length: int | None = None) -> bytes:
    """A RIFF chunk, padded to an even length; `length` is the false length that it claims, if any."""
    return name + struct.pack("<I", len(data) if length is None else length) + data + bytes(len(data) % 2)


def webp(*chunks: bytes, length: int | None = None) -> bytes:
    """A file of these chunks."""
    body = b"WEBP" + b"".join(chunks)
    return b"RIFF" + struct.pack("<I", len(body) if length is None else length) + body


def extended(flags: int, width: int, height: int) -> bytes:
    """The VP8X chunk: the file's contents, and the size of its canvas."""
    size = (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
    return chunk(b"VP8X", bytes((flags, 0, 0, 0)) + size)


def animation(width: int, height: int, *frames: bytes) -> bytes:
    """An animated file."""
    return webp(extended(ANIMATION | ALPHA, width, height), chunk(b"ANIM", bytes(6)), *frames)


def animation_frame(picture: bytes, *, left: int = 0, top: int = 0, width: int, height: int) -> bytes:
    """A frame: `picture` is a VP8 or VP8L chunk. Positions are in steps of two pixels."""
    numbers = (left // 2, top // 2, width - 1, height - 1, 100)
    return chunk(b"ANMF", b"".join(number.to_bytes(3, "little") for number in numbers) + b"\x00" + picture)


def lossless_header(width: int, height: int) -> BitWriter:
    """The start of VP8L data, up to its transforms."""
    bits = BitWriter()
    for value, size in ((0x2F, 8), (width - 1, 14), (height - 1, 14), (0, 1), (0, 3)):
        bits.put(value, size)
    return bits


def solid(width: int, height: int, *, transforms: bool = False) -> bytes:
    """A VP8L chunk of one colour in about 20 bytes; with `transforms`, all of those that cost time per pixel."""
    bits = lossless_header(width, height)
    if transforms:
        for kind in (0, 1):  # prediction and colour, both in the smallest blocks; their images have one colour too
            bits.put(1 | kind << 1, 3)
            bits.put(0, 3)
            bits.put(0, 1)  # no colour cache
            _zero_codes(bits)
        bits.put(1 | 2 << 1, 3)  # subtract green
    bits.put(0, 1)  # no more transforms
    bits.put(0, 1)  # no colour cache
    bits.put(0, 1)  # one group of prefix codes
    _zero_codes(bits)
    return chunk(b"VP8L", bits.done() + bytes(8))


def huffman_groups(width: int, height: int, groups: int) -> bytes:
    """A VP8L chunk with as many groups of prefix codes as possible (up to 65,536), each block of 4 by 4 in another.

    A decoder builds five tables for each before the first pixel, some 6 KB, and no header says how many there are.
    """
    bits = lossless_header(width, height)
    bits.put(0, 2)  # no transforms, no colour cache
    bits.put(1, 1)
    bits.put(0, 3)  # blocks of 4 by 4
    bits.put(0, 1)
    _eight_bits_each(bits, alphabet=280)  # green, the lower half of a group's number
    _eight_bits_each(bits, alphabet=256)  # red, the upper half
    for _ in range(3):
        bits.put(_SIMPLE_ZERO, 4)
    for block in range(-(-width // 4) * -(-height // 4)):
        bits.put(_REVERSED[block % groups & 255], 8)  # a code's highest bit comes first
        bits.put(_REVERSED[block % groups >> 8], 8)
    for _ in range(groups):
        _zero_codes(bits)
    return chunk(b"VP8L", bits.done() + bytes(8))


def _zero_codes(bits: BitWriter) -> None:
    """The five codes of a group in which every pixel is 0 and takes no bits."""
    bits.put(_SIMPLE_ZERO * 0x11111, 20)


def _eight_bits_each(bits: BitWriter, *, alphabet: int) -> None:
    """A prefix code that gives each of the first 256 symbols 8 bits, and the others no code."""
    bits.put(0, 1)
    bits.put(12 - 4, 4)  # how many lengths of code lengths follow, in the format's order
    for length in (0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1):  # of 18 (a run of zeros) and of 8
        bits.put(length, 3)
    bits.put(0, 1)  # lengths for the whole alphabet follow
    bits.put(0, 256)  # 8, each by one zero bit
    if alphabet > 256:
        bits.put(1 | (alphabet - 256 - 11) << 1, 8)


def chunks(body: bytes) -> Iterator[tuple[bytes, int, int]]:
    """Every whole chunk of a file: name, offset of its data, length."""
    at = 12
    while at + 8 <= len(body):
        name, length = struct.unpack_from("<4sI", body, at)
        if at + 8 + length > len(body):
            return
        yield name, at + 8, length
        at += 8 + length + length % 2


def with_mended_size(body: bytes) -> bytes:
    """The file with its actual size in its RIFF header."""
    if body[:4] != b"RIFF" or len(body) < 12:
        return body
    return body[:4] + struct.pack("<I", len(body) - 8) + body[8:]
