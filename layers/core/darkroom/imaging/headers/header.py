"""What is known of a file before it is decoded, and the bounds of the walk that finds it out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

type StreamedFormat = Literal["jpeg", "png", "webp", "gif"]

MAX_PIECES = 20_000
"""How many segments, chunks or blocks of a file are walked over. Real files have a few thousand at most."""

MAX_PROFILE_BYTES = 4_000_000
"""A larger colour profile is left aside: those of printing presses have one to three megabytes."""


@dataclass(frozen=True, kw_only=True)
class Header:
    """A file's structure. Sizes are in pixels as stored, before `orientation` (EXIF's numbers, 1 is upright).

    `parts` are the bytes of the image_data. `frames` counts at least the first picture, which may be smaller than the
    screen that it is shown on: then it lies at `offset`. `scans` counts the passes over a JPEG, and `scan_samples` the
    samples that all of them touch. `decoder_bytes` estimates what a decoder holds at once for the whole picture.
    `raw_bytes` is what a PNG's rows come to, inflated, and `lossy_bytes` what a lossy WebP's picture weighs: both are
    measures of time. `allowance_bytes` is how much the decoder is given, where it may ask for memory of which the
    header does not tell. `shrinks` is whether it can decode at a half, a quarter or an eighth, `complete` whether the
    file reaches its end.
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
    complete: bool = True
    orientation: int = 1
    icc_profile: bytes | None = None

    def image_data(self) -> bytes:
        """The file that the decoder is shown."""
        return b"".join(self.parts)
