"""Format `best`: the qualities at which JPEG, WebP and AVIF look alike, so that the smallest file is the best one."""

from __future__ import annotations

from itertools import pairwise

from darkroom.domain.recipes.recipes import OutputFormat

EQUAL_QUALITIES: dict[int, dict[OutputFormat, int]] = {
    10: {"webp": 1, "avif": 5},
    25: {"webp": 26, "avif": 31},
    40: {"webp": 48, "avif": 42},
    50: {"webp": 62, "avif": 48},
    60: {"webp": 72, "avif": 51},
    70: {"webp": 80, "avif": 57},
    80: {"webp": 85, "avif": 67},
    85: {"webp": 89, "avif": 73},
    89: {"webp": 92, "avif": 80},
    100: {"webp": 100, "avif": 100},
}
"""For each quality of JPEG, those of WebP and AVIF with the same score by SSIMULACRA 2: medians of 21 photographs.

Printed on 2026-11-25 by `make bench-best CALIBRATE=1`, at effort balanced and 1024 pixels a side, from the photographs
of `benchmarks/engine/photos.toml`; docs/benchmarks.md says how far a photograph is from equal. The last line is where
the scales end, and no measurement; at 10 WebP's lowest quality still has a higher score than the JPEG.
"""

HIGHEST_COMPARED = 89
"""From 90 on libvips keeps JPEG's colours at full resolution. WebP always halves it, and no quality makes up for it."""


def equal_qualities(quality: int, *, is_transparent: bool) -> dict[OutputFormat, int]:
    """The formats to choose from for a quality of JPEG, each with its equal quality, the most widely understood first.

    JPEG has no transparency; above HIGHEST_COMPARED there is JPEG alone, unless something is transparent. Between two
    lines of the table qualities lie on a straight line, and below the first one they stay as they are there.
    """
    others = looking_like(quality)
    if is_transparent:  # guard: best-no-transparent-jpeg
        return others
    # guard: best-high-quality-jpeg-only
    return {"jpeg": quality} if quality > HIGHEST_COMPARED else {"jpeg": quality, **others}


def looking_like(quality: int) -> dict[OutputFormat, int]:
    """The qualities of WebP and AVIF that are equal to one of JPEG."""
    for (low, lower), (high, upper) in pairwise(EQUAL_QUALITIES.items()):
        if quality <= high:
            share = max(0, quality - low) / (high - low)  # guard: best-low-quality-floor
            return {name: round(start + share * (upper[name] - start)) for name, start in lower.items()}
    raise ValueError(f"{quality} is not a quality")
