"""PNG files written from the specification: every colour type, depth, filter, interlacing, and APNG."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from itertools import cycle

import numpy as np

from tests.engine.golden.colours import Array

GREY, RGB, PALETTE, GREY_ALPHA, RGBA = 0, 2, 3, 4, 6

type Chunk = tuple[bytes, bytes]

_ADAM7 = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2))
"""For each pass: first column, first row, distance of columns, distance of rows (PNG third edition, 8.1)."""


def png(
    samples: Array,
    colour_type: int,
    *,
    depth: int = 8,
    interlaced: bool = False,
    before: Sequence[Chunk] = (),
    after: Sequence[Chunk] = (),
) -> bytes:
    """The file of `samples` (rows, columns[, channels]), with the caller's chunks `before` and `after` the data."""
    height, width = samples.shape[:2]
    header = struct.pack(">IIBBBBB", width, height, depth, colour_type, 0, 0, interlaced)
    data = zlib.compress(image_data(samples, depth=depth, interlaced=interlaced), 6)
    half = len(data) // 2  # data comes in pieces of any length
    chunks = [(b"IHDR", header), *before, (b"IDAT", data[:half]), (b"IDAT", data[half:]), *after, (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunk(name, body) for name, body in chunks)


def apng(frames: Sequence[Array], colour_type: int, *, before: Sequence[Chunk] = (), hidden: bool = False) -> bytes:
    """An animation. With `hidden`, plain PNG readers see the first picture, which is no part of the animation."""
    height, width = frames[0].shape[:2]
    count = len(frames) - hidden
    chunks = [(b"acTL", struct.pack(">II", count, 0))]
    sequence = 0
    for index, frame in enumerate(frames):
        if not (hidden and index == 0):
            size = (frame.shape[1], frame.shape[0], 0, 0)
            chunks.append((b"fcTL", struct.pack(">IIIIIHHBB", sequence, *size, 1, 10, 0, 0)))
            sequence += 1
        data = zlib.compress(image_data(frame))
        if index == 0:
            chunks.append((b"IDAT", data))
        else:
            chunks.append((b"fdAT", struct.pack(">I", sequence) + data))
            sequence += 1
    header = (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, colour_type, 0, 0, 0))
    all_chunks = [header, *before, *chunks, (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunk(name, body) for name, body in all_chunks)


def apng_apart(apart: Array, frame: Array, colour_type: int, *, at: tuple[int, int], depth: int) -> bytes:
    """An animation of one frame, with a default picture that is no part of it and as large as the canvas."""
    header = struct.pack(">IIBBBBB", apart.shape[1], apart.shape[0], depth, colour_type, 0, 0, 0)
    control = struct.pack(">IIIIIHHBB", 0, frame.shape[1], frame.shape[0], *at, 1, 10, 0, 0)
    chunks = [
        (b"IHDR", header),
        (b"acTL", struct.pack(">II", 1, 0)),
        (b"IDAT", zlib.compress(image_data(apart, depth=depth))),
        (b"fcTL", control),
        (b"fdAT", struct.pack(">I", 1) + zlib.compress(image_data(frame, depth=depth))),
        (b"IEND", b""),
    ]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunk(name, body) for name, body in chunks)


def chunk(name: bytes, body: bytes) -> bytes:
    """Length, name, data and CRC."""
    return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))


def iccp(profile: bytes) -> Chunk:
    """The chunk of a colour profile."""
    return b"iCCP", b"profile\0\0" + zlib.compress(profile)


def palette(colours: Array, opacities: Sequence[int] = ()) -> list[Chunk]:
    """The chunks of a palette, and of its opacities if there are any."""
    chunks = [(b"PLTE", colours.astype(np.uint8).tobytes())]
    return [*chunks, (b"tRNS", bytes(opacities))] if opacities else chunks


def colour_key(*levels: int) -> Chunk:
    """The chunk that declares one grey or RGB value transparent."""
    return b"tRNS", struct.pack(f">{len(levels)}H", *levels)


def image_data(samples: Array, *, depth: int = 8, interlaced: bool = False) -> bytes:
    """The filtered rows. Filters take turns, so that each one occurs."""
    samples = samples[..., None] if samples.ndim == 2 else samples
    if not interlaced:
        return _filtered(samples, depth)
    passes = (samples[y::rows, x::columns] for x, y, columns, rows in _ADAM7)
    return b"".join(_filtered(part, depth) for part in passes if part.size)


def _filtered(samples: Array, depth: int) -> bytes:
    rows = _packed(samples, depth)
    step = max(1, samples.shape[2] * depth // 8)
    above = np.zeros(rows.shape[1], dtype=np.int64)
    out = []
    for row, kind in zip(rows.astype(np.int64), cycle(range(5)), strict=False):
        left = np.concatenate([np.zeros(step, dtype=np.int64), row[:-step]])
        corner = np.concatenate([np.zeros(step, dtype=np.int64), above[:-step]])
        predicted = [np.zeros_like(row), left, above, (left + above) // 2, _paeth(left, above, corner)][kind]
        out.append(bytes([kind]) + ((row - predicted) & 0xFF).astype(np.uint8).tobytes())
        above = row
    return b"".join(out)


def _packed(samples: Array, depth: int) -> Array:
    height = samples.shape[0]
    if depth == 16:
        return np.frombuffer(samples.astype(">u2").tobytes(), np.uint8).reshape(height, -1)
    flat = samples.reshape(height, -1).astype(np.uint8)
    if depth == 8:
        return flat
    bits = np.unpackbits(flat[..., None], axis=-1)[..., 8 - depth :].reshape(height, -1)
    return np.packbits(bits, axis=-1)


def _paeth(left: Array, above: Array, corner: Array) -> Array:
    guess = left + above - corner
    by_left, by_above, by_corner = np.abs(guess - left), np.abs(guess - above), np.abs(guess - corner)
    nearest = np.where(by_above <= by_corner, above, corner)
    return np.where((by_left <= by_above) & (by_left <= by_corner), left, nearest)
