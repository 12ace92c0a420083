"""What is known about a file before it is decoded, and the limits of the walk that finds it out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

type StreamedFormat = Literal["jpeg", "png", "webp", "gif"]

MAX_PIECES = 20_000
"""The most segments, chunks or blocks of a file that are walked. Real files have a few thousand at most."""

MAX_PROFILE_BYTES = 4_000_000
"""A larger colour profile is ignored: those of printing presses have one to three megabytes."""


@dataclass(frozen=True, kw_only=True)
class ImageHeader:
    """A file's structure. Sizes are in pixels as stored, before `orientation` (EXIF's numbers, 1 is upright).

    `parts` are the bytes of the image data. `frames` counts at least the first picture, which may be smaller than the
    screen that it is shown on: then it is at `offset`. Of a file that ends too early it counts missing ones as well.
    `scans` counts the passes over a JPEG, and `scan_samples` the samples that all of them touch. `decoder_bytes`
    estimates what a decoder holds at once for the whole picture. `raw_bytes` is the inflated size of a PNG's rows, and
    `lossy_bytes` the size of a lossy WebP's picture: both measure time. `allowance_bytes` is the decoder's memory
    limit, if it may ask for memory that the header does not reveal. `shrinks` is whether it can decode at a half, a
    quarter or an eighth, and `shrinks_to_fit` whether it must where that is still large enough, because the whole
    picture takes too much memory. `complete` is whether the file reaches its end.
    """

    format: StreamedFormat
    width: int
    height: int
    parts: tuple[bytes | memoryview, ...]
    offset: tuple[int, int] = (0, 0)
    frame: tuple[int, int] | None = None
    frames: int = 1
    scans: int = 1
    scan_samples: int = 0
    decoder_bytes: int = 0
    raw_bytes: int = 0
    lossy_bytes: int = 0
    allowance_bytes: int | None = None
    shrinks: bool = False
    shrinks_to_fit: bool = False
    complete: bool = True
    orientation: int = 1
    icc_profile: bytes | None = None

    def image_data(self) -> bytes:
        """The file that the decoder sees."""
        return b"".join(self.parts)
