"""The structure of a file down to its last byte: every segment, chunk or box, and nothing that is not one.

Written for files that contain only a picture: anything that cannot be accounted for is an error here.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator

from tests.engine.golden.isobmff_files import boxes
from tests.engine.golden.webp_files import chunks


def jpeg_segments(file: bytes) -> list[tuple[int, bytes]]:
    """Markers and what they carry, SOI to EOI; entropy-coded data belongs to its SOS."""
    assert file[:2] == b"\xff\xd8"
    segments, at = [(0xD8, b"")], 2
    while True:
        assert file[at] == 0xFF, f"no marker at {at}"
        marker = file[at + 1]
        if marker == 0xD9:
            assert at + 2 == len(file), "bytes behind EOI"
            return [*segments, (0xD9, b"")]
        (length,) = struct.unpack_from(">H", file, at + 2)
        segments.append((marker, file[at + 4 : at + 2 + length]))
        at += 2 + length
        if marker == 0xDA:
            while file[at] != 0xFF or file[at + 1] == 0 or 0xD0 <= file[at + 1] <= 0xD7:
                at += 1


def png_chunks(file: bytes) -> list[tuple[bytes, bytes]]:
    """Names and data; the CRCs must be right, and IEND must be the end."""
    assert file[:8] == b"\x89PNG\r\n\x1a\n"
    read_chunks, at = [], 8
    while at < len(file):
        length, name = struct.unpack_from(">I4s", file, at)
        data = file[at + 8 : at + 8 + length]
        assert struct.unpack_from(">I", file, at + 8 + length) == (zlib.crc32(name + data),)
        read_chunks.append((name, data))
        at += 12 + length
        assert name != b"IEND" or at == len(file), "bytes behind IEND"
    return read_chunks


def webp_chunks(file: bytes) -> list[tuple[bytes, bytes]]:
    """Names and data; the RIFF header accounts for the whole file."""
    assert file[:4] == b"RIFF" and file[8:12] == b"WEBP"
    assert struct.unpack_from("<I", file, 4) == (len(file) - 8,)
    read_chunks = chunks(file)
    assert 12 + sum(8 + len(data) + len(data) % 2 for _, data in read_chunks) == len(file)
    return read_chunks


def avif_boxes(file: bytes) -> list[tuple[bytes, bytes]]:
    """Every box, nested ones too, with items and references as separate boxes."""
    top = list(boxes(file, inside=()))
    assert sum(len(data) + 8 for _, data in top) == len(file), "bytes in no box"
    read_boxes = []
    for name, data in boxes(file):
        read_boxes.append((name, data))
        if name == b"iinf":
            read_boxes += boxes(data[6:] if data[0] == 0 else data[8:], inside=())
        if name == b"iref":
            read_boxes += boxes(data[4:], inside=())
    return read_boxes


def av1_units(data: bytes) -> Iterator[int]:
    """The types of the open bitstream units of AV1 data (AV1 specification, 5.3)."""
    at = 0
    while at < len(data):
        header = data[at]
        assert header & 0x82 == 0x02, "a unit without a size, or no unit"
        at += 2 if header & 0x04 else 1
        size, shift = 0, 0
        while True:
            size |= (data[at] & 0x7F) << shift
            shift += 7
            at += 1
            if not data[at - 1] & 0x80:
                break
        yield header >> 3 & 15
        at += size
