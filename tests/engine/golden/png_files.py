"""PNG files written from the specification: every colour type, depth, filter, interlacing, and APNG."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle

import numpy as np

from tests.engine.golden.colours import Array
from tests.fuzz.handmade.png import GREY, GREY_ALPHA, PALETTE, RGB, RGBA, chunk
from tests.fuzz.handmade.png import png as written

__all__ = ["GREY", "GREY_ALPHA", "PALETTE", "RGB", "RGBA", "Chunk", "apng", "chunk", "png"]

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
    chunks = [(b"IHDR", header), *before, (b"IDAT", data[:half]), (b"IDAT", data[half:]), *after]
    return written(*(chunk(*each) for each in chunks))


@dataclass(frozen=True, kw_only=True)
class Shown:
    """A frame of an animation: where it lies, and how long, removed and blended in which way."""

    samples: Array
    left: int = 0
    top: int = 0
    timing: tuple[int, int, int, int] = (1, 10, 0, 0)


def apng(frames: Sequence[Array], colour_type: int, *, before: Sequence[Chunk] = (), hidden: bool = False) -> bytes:
    """An animation. With `hidden`, plain PNG readers see the first picture, which is no part of the animation."""
    apart = frames[0] if hidden else None
    shown = [Shown(samples=frame) for frame in frames[hidden:]]
    return timed_apng(frames[0].shape[1::-1], shown, colour_type, before=before, apart=apart)


def timed_apng(
    size: tuple[int, ...],
    frames: Sequence[Shown],
    colour_type: int,
    *,
    depth: int = 8,
    plays: int = 0,
    before: Sequence[Chunk] = (),
    apart: Array | None = None,
    cut: int = 0,
) -> bytes:
    """An animation whose frames have a place and a time; `apart` is a default picture that is no part of it.

    Frames behind the first picture come in two pieces if they are `cut` after so many bytes.
    """
    chunks = [(b"IHDR", struct.pack(">IIBBBBB", *size, depth, colour_type, 0, 0, 0)), *before]
    chunks.append((b"acTL", struct.pack(">II", len(frames), plays)))
    if apart is not None:
        chunks.append((b"IDAT", zlib.compress(image_data(apart, depth=depth))))
    sequence = 0
    for index, frame in enumerate(frames):
        height, width = frame.samples.shape[:2]
        control = struct.pack(">IIIIIHHBB", sequence, width, height, frame.left, frame.top, *frame.timing)
        chunks.append((b"fcTL", control))
        data = zlib.compress(image_data(frame.samples, depth=depth))
        sequence += 1
        if index == 0 and apart is None:
            chunks.append((b"IDAT", data))
            continue
        for piece in (data[:cut], data[cut:]) if cut else (data,):
            chunks.append((b"fdAT", struct.pack(">I", sequence) + piece))
            sequence += 1
    return written(*(chunk(*each) for each in chunks))


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
