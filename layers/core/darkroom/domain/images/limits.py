"""How large and unusual an original may be: limits on its header, checked before a pixel is decoded."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

type InputFormat = Literal["jpeg", "png", "webp", "gif", "avif", "heic"]

STANDARD_INPUT_FORMATS: frozenset[InputFormat] = frozenset({"jpeg", "png", "webp", "gif"})
"""The formats that are always accepted. AVIF and HEIC need a setting: their decoders are younger and slower."""


MAX_BODY_BYTES = 4 * 1024 * 1024
"""The largest direct upload. Base64 makes it 4/3 as large, and Lambda's synchronous payload ends at 6 MB."""


@dataclass(frozen=True, kw_only=True)
class Limits:
    """The limits of an original. A file that exceeds one is refused by its header, with that limit's code."""

    input_formats: frozenset[InputFormat] = field(default=STANDARD_INPUT_FORMATS)
    max_bytes: int = 25_000_000
    max_webp_bytes: int = 12_000_000  # of a lossy WebP picture: its decoder reads about 10 MB a second
    max_pixels: int = 52_000_000  # "50 megapixels" are up to 51.3 (8272×6200)
    # Of a PNG's rows inflated, twice that where it is interlaced: 52 megapixels of RGB, 20 of RGBA with 16 bits.
    max_png_bytes: int = 160_000_000
    max_side: int = 65_500  # pixels; the longest side that libjpeg decodes (jmorecfg.h); a WebP's ends at 16,383
    max_aspect: int = 200  # the longer side may be this many times the shorter one
    max_frames: int = 1_000  # of an animation that is kept, and those in which a poster is sought
    max_scans: int = 30  # of a progressive JPEG; encoders write about 10
    # Over all scans: libjpeg's progression touches 14 for each pixel without subsampling, and 8 with 4:2:0.
    max_scan_samples: int = 730_000_000
    max_decoder_bytes: int = 320_000_000  # what decoding may hold at once, estimated from the header
