"""Counts what developing an animation takes, before any frame is decoded."""

from __future__ import annotations

from collections.abc import Sequence

from darkroom.domain.kernel.errors import Rejected
from darkroom.domain.recipes.recipes import MAX_WORK_PIXELS, WORK_OF_OVERLAY, Recipe, VariantSpec
from darkroom.imaging.animation.frames import Timeline
from darkroom.imaging.scaling.geometry import Placement

MAX_CANVAS_PIXELS = 3840 * 2160
"""The most pixels of an animation's frame, in the file and in a variant: 4K. A writer keeps several such frames, and
the canvas, a frame and what it covers are in memory too."""

_SHARE_OF_WEBP = 1 / 8
"""The work of a frame's pixel compared with a still WebP's, scaling included; a GIF's is the same.

Measured on one core (AMD EPYC), with frames of noise, the worst possible pictures: a megapixel takes 0.09 s as WebP
(method 2), 0.13 s with alpha, 0.14 s as GIF, and the limit of work allows 0.19 s. Method 4, for effort small, takes up
to 0.24 s.
"""

_SHARE_OF_FINE = 1 / 4
"""The same with effort small, which takes twice the time, or with quality 100, which makes files of noise two to four
times as large as quality 98: three copies of a file are in memory when it is finished."""

_LEAST_PIXELS = 40_000
"""A frame counts as at least so many pixels, because a small one still takes its few milliseconds: for the palette of a
GIF, up to 8."""

_SHARE_OF_SOURCE = 1 / 25
"""The work of decoding and composing a pixel, by the same measure: 0.01 s (GIF, PNG) to 0.07 s (lossy WebP) of noise.
The limit allows 0.06 s, and a file can bring only 18 megapixels of noise in lossy WebP."""

_SHARE_OF_LOSSLESS_BYTE = 1.2
"""The work of a byte of lossless WebP, if that is more: two and a half may be a group of Huffman codes, which libwebp
builds before the first pixel. Measured, it takes up to 1.9 µs per byte; the limit allows 1.8."""

_MAX_SEARCH_PIXELS = MAX_WORK_PIXELS // 8
"""The most work of looking for a poster: 100 frames of 800×600, four seconds of what is slowest. Intros are shorter."""

_SHARE_OF_FILTER, _SHARE_OF_PASS, _SHARE_OF_REGION = 1 / 8, 1 / 25, 1 / 100
"""The work of blurring or sharpening a frame's pixel, and of edits for each pixel of the file's frame: what
`Recipe.work_pixels` counts for them, for as many pixels as a still may have."""


def require_little_work(timeline: Timeline, recipe: Recipe, jobs: Sequence[tuple[VariantSpec, Placement]]) -> int:
    """Raises Rejected (`animation_too_large`) if the canvas is too large, or what moves is or takes too much work.

    The work of all variants, in the measure of `VariantSpec.work_pixels`, is limited as that of a recipe is. A frame
    counts by the pixels that it has in the variant, and by those of the canvas, or its own if it has more. Returns how
    many frames, the first ones, are looked at for a poster: as many as the work that is left, and an eighth of what is
    allowed, suffice for; one at least.
    """
    frames, canvas = len(timeline.frames), timeline.width * timeline.height
    areas = [max(canvas, frame.width * frame.height) for frame in timeline.frames]
    moves = any(spec.animation == "keep" for spec, _ in jobs)
    largest = max(areas) if moves else canvas
    if largest > MAX_CANVAS_PIXELS:  # guard: animation-canvas-size-bound
        raise _too_large(
            f"The animation has frames of {largest / 1e6:.1f} megapixels; at most {MAX_CANVAS_PIXELS / 1e6:.1f} are "
            "developed as an animation or a poster. Send a smaller one"
        )
    work = 0.0
    for spec, placement in jobs:
        width, height = placement.size
        if spec.animation == "keep":
            if width * height > MAX_CANVAS_PIXELS:
                raise _too_large(
                    f"The variant {spec.name} has {width * height / 1e6:.1f} megapixels; at most "
                    f"{MAX_CANVAS_PIXELS / 1e6:.1f} can move. Ask for a smaller one"
                )
            share = _SHARE_OF_FINE if spec.effort == "small" or spec.quality == 100 else _SHARE_OF_WEBP
            share += _SHARE_OF_FILTER * ((spec.blur is not None) + (spec.sharpen is not None))
            share += WORK_OF_OVERLAY * spec.covered  # guard: overlays-counted-per-frame
            work += frames * max(width * height, _LEAST_PIXELS) * share
        else:
            work += spec.work_of(width, height)
    share_of_edits = (
        bool(recipe.regions or recipe.crop or recipe.trim) * _SHARE_OF_PASS + len(recipe.regions) * _SHARE_OF_REGION
    )
    reading = [
        # guard: animation-lossless-work-by-bytes
        max(area * (_SHARE_OF_SOURCE + share_of_edits), frame.lossless_bytes * _SHARE_OF_LOSSLESS_BYTE)
        for area, frame in zip(areas, timeline.frames, strict=True)
    ]
    work += moves * sum(reading)
    if moves and work > MAX_WORK_PIXELS:  # guard: animation-total-work-bound
        raise _too_large(
            f"The animation has {frames} frames of {timeline.width}×{timeline.height} pixels, and its variants take "
            f"{work / 1e6:.1f} megapixels of work; at most {MAX_WORK_PIXELS / 1e6:.1f} are allowed. Ask for fewer or "
            "smaller variants that keep the animation, or send a shorter one"
        )
    # guard: animation-poster-search-bound, animation-poster-work-left
    affordable, left = 0, min(MAX_WORK_PIXELS - work, _MAX_SEARCH_PIXELS)
    for area, share in zip(areas, reading, strict=True):
        left -= share
        if affordable and (left < 0 or area > MAX_CANVAS_PIXELS):  # guard: animation-poster-work-bound
            break
        affordable += 1
    return affordable


def _too_large(reason: str) -> Rejected:
    return Rejected("animation_too_large", f"{reason}, or ask for animation first.")
