"""WebP containers written from RFC 9649 around bitstreams that libwebp made."""

from __future__ import annotations

import struct
from collections.abc import Sequence

import imagecodecs

from tests.engine.golden.colours import Array
from tests.fuzz.handmade import webp as written
from tests.fuzz.handmade.webp import chunk

__all__ = ["Chunk", "animation", "bitstream", "chunk", "chunks", "webp"]

type Chunk = tuple[bytes, bytes]

_FLAGS = {
    b"ICCP": written.ICC,
    b"ALPH": written.ALPHA,
    b"EXIF": written.EXIF,
    b"XMP ": written.XMP,
    b"ANIM": written.ANIMATION,
}


def bitstream(samples: Array, *, quality: int | None = None) -> list[Chunk]:
    """The chunks of a picture: lossless VP8L if `quality` is None, otherwise VP8 and ALPH."""
    if quality is None:
        file = imagecodecs.webp_encode(samples, lossless=True)
    else:
        file = imagecodecs.webp_encode(samples, level=quality, lossless=False)
    return [(name, body) for name, body in chunks(bytes(file)) if name != b"VP8X"]


def webp(
    samples: Array, *, quality: int | None = None, before: Sequence[Chunk] = (), after: Sequence[Chunk] = ()
) -> bytes:
    """The file of a picture, in the extended form if there are other chunks `before` or `after` it."""
    picture = bitstream(samples, quality=quality)
    if not before and not after and len(picture) == 1:
        return written.webp(chunk(*picture[0]))
    height, width = samples.shape[:2]
    return _extended((width, height), [*before, *picture, *after], written.ALPHA if samples.shape[-1] == 4 else 0)


def animation(
    canvas: tuple[int, int], frames: Sequence[tuple[Array, int, int]], *, after: Sequence[Chunk] = ()
) -> bytes:
    """An animation with frames at (left, top), both even, on a canvas with a loud background colour."""
    return timed_animation(canvas, [(*frame, 100, 0) for frame in frames], after=after)


def timed_animation(
    canvas: tuple[int, int],
    frames: Sequence[tuple[Array, int, int, int, int]],
    *,
    plays: int = 0,
    after: Sequence[Chunk] = (),
) -> bytes:
    """The same with each frame's milliseconds, and its flags of disposal and blending."""
    parts: list[Chunk] = [(b"ANIM", struct.pack("<IH", 0xFF00FFFF, plays))]
    for samples, left, top, milliseconds, flags in frames:
        height, width = samples.shape[:2]
        fields = (left // 2, top // 2, width - 1, height - 1, milliseconds)
        head = b"".join(value.to_bytes(3, "little") for value in fields) + bytes([flags])
        parts.append((b"ANMF", head + b"".join(chunk(*each) for each in bitstream(samples))))
    return _extended(canvas, [*parts, *after], written.ALPHA)


def chunks(file: bytes) -> list[Chunk]:
    """Names and data of a RIFF file's chunks."""
    at, read_chunks = 12, []
    while at + 8 <= len(file):
        name, size = struct.unpack_from("<4sI", file, at)
        read_chunks.append((name, file[at + 8 : at + 8 + size]))
        at += 8 + size + size % 2
    return read_chunks


def _extended(size: tuple[int, int], parts: Sequence[Chunk], flags: int) -> bytes:
    for name, _ in parts:
        flags |= _FLAGS.get(name, 0)
    return written.webp(written.extended(flags, *size), *(chunk(*part) for part in parts))
