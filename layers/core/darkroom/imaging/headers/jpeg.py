"""JPEG (ITU-T T.81, annex B): its segments, and which of them make the picture."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from darkroom.domain.kernel.errors import Rejected
from darkroom.imaging.headers.exif import orientation_in
from darkroom.imaging.headers.header import MAX_PIECES, MAX_PROFILE_BYTES, ImageHeader
from darkroom.imaging.headers.refusals import InPieces, truncated, undecodable, unsupported

_SOF0, _SOF1, _SOF2, _DHT, _DAC, _JPG = 0xC0, 0xC1, 0xC2, 0xC4, 0xCC, 0xC8
_SOI, _EOI, _SOS, _DQT, _DRI = 0xD8, 0xD9, 0xDA, 0xDB, 0xDD
_APP0, _APP1, _APP2, _APP14 = 0xE0, 0xE1, 0xE2, 0xEE
_FRAMES = frozenset(range(0xC0, 0xD0)) - {_DHT, _DAC, _JPG}
_KEPT = frozenset({*_FRAMES, _DHT, _SOS, _DQT, _DRI})
_STANDALONE = frozenset({0x01, *range(0xD0, 0xD8)})

END_OF_IMAGE = bytes((0xFF, _EOI))
"""The marker that ends a file."""

_TAIL_BYTES = 65_536
"""How far from its end a baseline file's end marker is searched first: few files have that much other data after it."""

_MARKER = re.compile(rb"\xff[^\x00\xff]")
"""The next marker. Whatever comes before it is passed over, as libjpeg does (jdmarker.c, next_marker): some cameras and
editors leave padding, or a length that is a few bytes short."""

_END_OF_SCAN = re.compile(rb"\xff[^\x00\xd0-\xd7\xff]")
"""In entropy-coded data FF is followed by 00, by a restart marker or by more FF; anything else is the next marker."""


def jpeg_header(body: bytes) -> ImageHeader:
    """The header of a JPEG file: JFIF, EXIF, Adobe's or none.

    Where the file has no end marker, the image data has none either and is not `complete`. Only a decoder can tell
    whether anything else is missing from the last scan.
    """
    view = memoryview(body)
    parts: list[bytes | memoryview] = [b"\xff\xd8"]
    metadata = _Metadata()
    frame: _Frame | None = None
    scans = _Scans()
    complete = False
    scan_from: int | None = None
    for marker, start, end in segments(body):
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
            scans.count(data, frame)
            if not scans.are_buffered:
                # The decoder reads on until the last row and no further, so this scan's data need not be searched.
                end_of_image = _end_of_image(body, end)
                complete = end_of_image is not None
                parts.append(view[start:end_of_image])
                break
            scan_from = start  # its data continues to the next marker
            frame.receive(data)
        elif marker in _KEPT:
            parts.append(view[start:end])
        elif scans.number == 0:
            parts.append(metadata.take(marker, bytes(data)))
    if scan_from is not None:
        parts.append(view[scan_from:])
    # guard: engine-progressive-scans-complete
    if frame is None or scans.number == 0 or (scans.are_buffered and not complete and not frame.is_received):
        raise truncated()
    # An end marker may have been cut in two.
    parts.append(END_OF_IMAGE if complete else bytes(parts.pop()).rstrip(b"\xff"))
    return ImageHeader(
        format="jpeg",
        width=frame.width,
        height=frame.height,
        parts=tuple(parts),
        scans=scans.number,
        scan_samples=scans.samples,
        decoder_bytes=2 * frame.samples if scans.are_buffered else 0,
        shrinks=True,
        complete=complete,
        orientation=orientation_in(metadata.exif),
        icc_profile=metadata.icc_profile,
    )


@dataclass(kw_only=True)
class _Scans:
    """How many scans there were, how many samples they touch, and whether a decoder must keep all coefficients."""

    number: int = 0
    samples: int = 0
    are_buffered: bool = False

    def count(self, scan: memoryview, frame: _Frame) -> None:
        """Counts a scan, by its header."""
        self.number += 1
        self.samples += frame.samples_of(scan)
        # libjpeg keeps all coefficients if one scan does not carry all components (jdmaster.c, has_multiple_scans);
        # otherwise it stops after the first.
        self.are_buffered = self.are_buffered or frame.progressive or scan[0] < len(frame.sampling)


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


def segments(body: bytes) -> Iterator[tuple[int, int, int]]:
    """Every marker segment after SOI: its code, its start and its end. A scan's data is skipped."""
    at = 2
    for _ in range(MAX_PIECES):
        marker_match = _MARKER.search(body, at)
        if marker_match is None:
            return
        at = marker_match.start()
        marker = body[at + 1]
        if marker == _SOI:  # guard: engine-nested-jpeg-refused
            raise undecodable("another JPEG begins before it ends")
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
    raise InPieces


def _end_of_image(body: bytes, at: int) -> int | None:
    """Where the end marker behind `at` is, if there is one: no other bytes of a scan look like it."""
    position = body.find(END_OF_IMAGE, max(at, len(body) - _TAIL_BYTES))
    position = position if position >= 0 else body.find(END_OF_IMAGE, at)
    return position if position >= 0 else None


def _end_of_scan(body: bytes, at: int) -> int:
    end = _END_OF_SCAN.search(body, at)
    return end.start() if end is not None else len(body)


_ALL_COEFFICIENTS = (1 << 64) - 1


@dataclass(kw_only=True)
class _Frame:
    width: int
    height: int
    progressive: bool
    sampling: dict[int, tuple[int, int]]
    _received: dict[int, int] = field(default_factory=dict)
    """For each component a bit for each coefficient that has all its bits."""

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

    def receive(self, scan: memoryview) -> None:
        """Takes note of what a scan sends, by its header: which components, and of a progressive picture which
        coefficients, to which bit (T.81, B.2.3)."""
        components = [scan[1 + 2 * index] for index in range(scan[0])]
        first, last, bits = struct.unpack_from("BBB", scan, 1 + 2 * scan[0]) if self.progressive else (0, 63, 0)
        if bits & 15 == 0:
            for component in components:
                sent = (2 << last) - (1 << first)
                self._received[component] = self._received.get(component, 0) | sent

    @property
    def is_received(self) -> bool:
        """Whether the scans so far send every coefficient to its last bit."""
        return all(self._received.get(component, 0) == _ALL_COEFFICIENTS for component in self.sampling)


def _frame(marker: int, data: memoryview, *, before: _Frame | None) -> _Frame:
    if before is not None:
        raise undecodable("it has two frame headers")
    precision, height, width, components = struct.unpack_from(">BHHB", data)
    if marker not in (_SOF0, _SOF1, _SOF2) or precision != 8:
        raise Rejected(
            "unsupported_format",
            "The JPEG is of a rare kind (arithmetic coding, 12 bits or lossless). Save it as an ordinary JPEG.",
        )
    if height == 0 < width:
        raise unsupported("it says how high it is only after its picture (DNL)")
    sampling = {}
    for index in range(components):
        name, factors, _ = struct.unpack_from("BBB", data, 6 + 3 * index)
        sampling[name] = (factors >> 4, factors & 15)
    if components not in (1, 3, 4):
        raise Rejected("unsupported_format", f"The JPEG has {components} colour components. Save it as RGB.")
    if len(sampling) < components or any(h == 0 or v == 0 for h, v in sampling.values()):
        raise undecodable("its frame header is invalid")
    return _Frame(width=width, height=height, progressive=marker == _SOF2, sampling=sampling)
