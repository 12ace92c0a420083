"""WebP containers written from RFC 9649 around bitstreams that libwebp made."""

from __future__ import annotations

import struct
from collections.abc import Sequence

import imagecodecs
import numpy as np

from tests.engine.golden.colours import Array

type Chunk = tuple[bytes, bytes]

_ICC, _ALPHA, _EXIF, _XMP, _ANIMATION = 0x20, 0x10, 0x08, 0x04, 0x02
_FLAGS = {b"ICCP": _ICC, b"ALPH": _ALPHA, b"EXIF": _EXIF, b"XMP ": _XMP, b"ANIM": _ANIMATION}


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
        return riff(picture)
    alpha = _ALPHA if samples.shape[-1] == 4 else 0
    return riff([_extended(samples, [*before, *picture, *after], alpha), *before, *picture, *after])


def animation(
    canvas: tuple[int, int], frames: Sequence[tuple[Array, int, int]], *, after: Sequence[Chunk] = ()
) -> bytes:
    """An animation with frames at (left, top), both even, on a canvas with a loud background colour."""
    parts: list[Chunk] = [(b"ANIM", struct.pack("<IH", 0xFF00FFFF, 0))]
    for samples, left, top in frames:
        height, width = samples.shape[:2]
        fields = (left // 2, top // 2, width - 1, height - 1, 100)
        head = b"".join(value.to_bytes(3, "little") for value in fields) + b"\0"
        parts.append((b"ANMF", head + b"".join(chunk(name, body) for name, body in bitstream(samples))))
    blank = np.empty((canvas[1], canvas[0], 4))
    return riff([_extended(blank, [*parts, *after], _ALPHA), *parts, *after])


def chunks(file: bytes) -> list[Chunk]:
    """Names and data of a RIFF file's chunks."""
    at, read_chunks = 12, []
    while at + 8 <= len(file):
        name, size = struct.unpack_from("<4sI", file, at)
        read_chunks.append((name, file[at + 8 : at + 8 + size]))
        at += 8 + size + size % 2
    return read_chunks


def riff(parts: Sequence[Chunk]) -> bytes:
    """A WebP file of these chunks."""
    body = b"WEBP" + b"".join(chunk(name, data) for name, data in parts)
    return b"RIFF" + struct.pack("<I", len(body)) + body


def _extended(samples: Array, parts: Sequence[Chunk], flags: int) -> Chunk:
    for name, _ in parts:
        flags |= _FLAGS.get(name, 0)
    height, width = samples.shape[:2]
    return b"VP8X", bytes([flags, 0, 0, 0]) + (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")


def chunk(name: bytes, data: bytes) -> bytes:
    """Name, length, data, padding."""
    return name + struct.pack("<I", len(data)) + data + bytes(len(data) % 2)
