"""What no engine can go below that uses these codecs and libvips's Lanczos at Darkroom's quality: reading a JPEG at the
smallest scale that quality allows, scaling it to the largest variant and from one variant to the next, encoding them.

Everything else counts as nothing: checking the file, turning it, converting its colours, putting it in place to a part
of a pixel, and the placeholder.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import pyvips

from benchmarks.engine import darkroom_itself
from darkroom.imaging.decode import jpeg_at_once
from darkroom.imaging.encode import encode
from darkroom.imaging.headers import ImageHeader, read_header
from darkroom.imaging.scaling.resize import scaled
from darkroom.imaging.scaling.shrinking import shrink_of


class _Task(NamedTuple):
    """What is known beforehand about one original: its header, the scale to read it at, and each variant's size as
    stored, which is before turning, largest first."""

    header: ImageHeader
    shrink: int
    sizes: list[tuple[dict[str, Any], tuple[int, int]]]


_TASKS: dict[tuple[int, bytes, int], _Task] = {}


def versions() -> Mapping[str, str]:
    """As Darkroom's."""
    return darkroom_itself.versions()


def run(original: bytes, variants: list[dict[str, Any]], encoding: dict[str, Any]) -> dict[str, bytes]:
    """The variants' bytes by name, as stored. An original's first run also decides how the others go."""
    middle = len(original) // 2
    key = len(original), original[middle : middle + 64], len(variants)
    if key not in _TASKS:
        _TASKS[key] = _decided(original, variants, encoding)
    task = _TASKS[key]
    quality = {"jpeg": encoding["jpeg_quality"], "webp": encoding["webp_quality"]}
    picture = jpeg_at_once(original, task.header, task.shrink) or pyvips.Image.jpegload_buffer(
        original, shrink=task.shrink, access="sequential"
    )
    bodies = {}
    for variant, size in task.sizes:
        picture = scaled(picture, *size).copy_memory()
        file_format = variant["format"]
        bodies[variant["name"]] = encode(picture, file_format, quality=quality[file_format], effort="balanced")
    return bodies


def _decided(original: bytes, variants: list[dict[str, Any]], encoding: dict[str, Any]) -> _Task:
    header = read_header(original)
    if header is None:
        raise ValueError("Nothing can be read from these bytes.")
    made = darkroom_itself.run(original, variants, encoding)
    sizes = []
    for variant in variants:
        image = pyvips.Image.new_from_buffer(made[variant["name"]], "")
        stored = (image.height, image.width) if header.orientation >= 5 else (image.width, image.height)
        sizes.append((variant, stored))
    sizes.sort(key=lambda entry: -entry[1][0] * entry[1][1])
    return _Task(header=header, shrink=shrink_of(header, sizes[0][1]), sizes=sizes)
