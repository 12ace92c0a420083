"""JPEG (ITU-T T.81, annex B): its segments, and which of them make the picture."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from darkroom.domain.errors import Rejected
from darkroom.imaging.headers.exif import orientation_in
from darkroom.imaging.headers.header import MAX_PIECES, MAX_PROFILE_BYTES, Header
from darkroom.imaging.headers.refusals import truncated, undecodable

_SOF0, _SOF1, _SOF2, _DHT, _DAC, _JPG = 0xC0, 0xC1, 0xC2, 0xC4, 0xCC, 0xC8
_EOI, _SOS, _DQT, _DRI, _APP0, _APP1, _APP2, _APP14 = 0xD9, 0xDA, 0xDB, 0xDD, 0xE0, 0xE1, 0xE2, 0xEE
_FRAMES = frozenset(range(0xC0, 0xD0)) - {_DHT, _DAC, _JPG}
_KEPT = frozenset({*_FRAMES, _DHT, _SOS, _DQT, _DRI})
_STANDALONE = frozenset({0x01, *range(0xD0, 0xD8)})

_TAIL_BYTES = 65_536
"""How far from its end a baseline file's end marker is searched: some files have other data after it."""

_END_OF_SCAN = re.compile(rb"\xff[^\x00\xd0-\xd7\xff]")
"""In entropy-coded data FF is followed by 00, by a restart marker or by more FF; anything else is the next marker."""


def jpeg_header(body: bytes) -> Header:
    """The header of a JPEG file: JFIF, EXIF, Adobe's or none."""
    view = memoryview(body)
    parts: list[bytes | memoryview] = [b"\xff\xd8"]
    metadata = _Metadata()
    frame: _Frame | None = None
    scans = scan_samples = 0
    buffered = complete = False
    scan_from: int | None = None
    for marker, start, end in _segments(body):
        data = view[start + 4 : end]
        if scan_from is not None:
            parts.append(view[scan_from:start])
            scan_from = None
        if marker == _EOI:
            complete = True
            break
        if marker in _FRAMES:
            frame = _frame(marker, data, before=frame)
        if marker == _SOS:
            if frame is None:
                raise undecodable("it has no frame header before its picture")
            scans += 1
            scan_samples += frame.samples_of(data)
            # libjpeg keeps all coefficients if one scan does not carry all components (jdmaster.c, has_multiple_scans);
            # otherwise it stops after the first.
            buffered = buffered or frame.progressive or data[0] < len(frame.sampling)
            if not buffered:
                # The decoder reads on until the last row and no further, so this scan's data need not be searched.
                end_of_image = body.find(b"\xff\xd9", max(end, len(body) - _TAIL_BYTES))
                complete = end_of_image >= 0
                parts.append(view[start:end_of_image] if complete else view[start:])
                break
            scan_from = start  # its data continues to the next marker
        elif marker in _KEPT:
            parts.append(view[start:end])
        elif scans == 0:
            parts.append(metadata.take(marker, bytes(data)))
    if frame is None or scans == 0:
        raise truncated()
    if scan_from is not None:
        parts.append(view[scan_from:])
    if complete:
        parts.append(b"\xff\xd9")
    return Header(
        format="jpeg",
        width=frame.width,
        height=frame.height,
        parts=tuple(parts),
        scans=scans,
        scan_samples=scan_samples,
        decoder_bytes=2 * frame.samples if buffered else 0,
        shrinks=True,
        complete=complete,
        orientation=orientation_in(metadata.exif),
        icc_profile=metadata.icc_profile,
    )


class _Metadata:
    """What the segments before the picture say about it: EXIF, the colour profile, the meaning of the components."""

    def __init__(self) -> None:
        self.exif = b""
        self._profile_chunks: dict[int, bytes] = {}

    def take(self, marker: int, data: bytes) -> bytes:
        """Reads a segment; returns the bytes that belong to the image data."""
        if marker == _APP1 and not self.exif and data.startswith(b"Exif\0\0"):
            self.exif = data[6:]
        elif marker == _APP2 and data.startswith(b"ICC_PROFILE\0") and len(data) > 14:
            self._profile_chunks[data[12]] = data[14:]
        elif marker == _APP0 and data.startswith(b"JFIF\0") and len(data) >= 14:
            return b"\xff\xe0\x00\x10" + data[:12] + b"\0\0"  # without its thumbnail
        elif marker == _APP14 and data.startswith(b"Adobe") and len(data) >= 12:
            return b"\xff\xee\x00\x0e" + data[:12]
        return b""

    @property
    def icc_profile(self) -> bytes | None:
        """The profile from its numbered chunks (ICC.1:2022, annex B.4), or None if some are missing."""
        chunks = self._profile_chunks
        if not chunks or sorted(chunks) != list(range(1, len(chunks) + 1)):
            return None
        profile = b"".join(chunks[number] for number in sorted(chunks))
        return profile if len(profile) <= MAX_PROFILE_BYTES else None


def _segments(body: bytes) -> Iterator[tuple[int, int, int]]:
    """Every marker segment after SOI: its code, its start and its end. A scan's data is skipped."""
    at = 2
    for _ in range(MAX_PIECES):
        if at + 2 > len(body):
            return
        if body[at] != 0xFF:
            raise undecodable("a marker is missing where the JPEG format requires one")
        marker = body[at + 1]
        if marker == 0xFF:  # any number of FF may precede a marker
            at = _end_of_scan(body, at)
            continue
        if marker in _STANDALONE or marker == _EOI:
            yield marker, at, at + 2
            at += 2
            continue
        length = struct.unpack_from(">H", body, at + 2)[0]
        if length < 2:
            raise undecodable("one of its segments has an impossible length")
        end = at + 2 + length
        if end > len(body):
            return
        yield marker, at, end
        at = end if marker != _SOS else _end_of_scan(body, end)
    raise undecodable("it is cut into too many pieces")


def _end_of_scan(body: bytes, at: int) -> int:
    found = _END_OF_SCAN.search(body, at)
    return found.start() if found is not None else len(body)


@dataclass(kw_only=True)
class _Frame:
    width: int
    height: int
    progressive: bool
    sampling: dict[int, tuple[int, int]]

    @cached_property
    def _samples(self) -> dict[int, int]:
        widest = max(h for h, _ in self.sampling.values())
        tallest = max(v for _, v in self.sampling.values())
        area = self.width * self.height
        return {name: area * h * v // (widest * tallest) for name, (h, v) in self.sampling.items()}

    @property
    def samples(self) -> int:
        return sum(self._samples.values())

    def samples_of(self, scan: memoryview) -> int:
        """How many samples a scan touches, by its header: its components' numbers are in every other byte."""
        if not 1 <= scan[0] <= 4:
            raise undecodable("one of its scans has an impossible number of components")
        return sum(self._samples.get(scan[1 + 2 * index], 0) for index in range(scan[0]))


def _frame(marker: int, data: memoryview, *, before: _Frame | None) -> _Frame:
    if before is not None:
        raise undecodable("it has two frame headers")
    precision, height, width, components = struct.unpack_from(">BHHB", data)
    if marker not in (_SOF0, _SOF1, _SOF2) or precision != 8:
        raise Rejected(
            "unsupported_format",
            "The JPEG is of a rare kind (arithmetic coding, 12 bits or lossless). Save it as an ordinary JPEG.",
        )
    sampling = {}
    for index in range(components):
        name, factors, _ = struct.unpack_from("BBB", data, 6 + 3 * index)
        sampling[name] = (factors >> 4, factors & 15)
    if components not in (1, 3, 4):
        raise Rejected("unsupported_format", f"The JPEG has {components} colour components. Save it as RGB.")
    if len(sampling) < components or any(h == 0 or v == 0 for h, v in sampling.values()):
        raise undecodable("its frame header is invalid")
    return _Frame(width=width, height=height, progressive=marker == _SOF2, sampling=sampling)
