"""What no engine can go below that uses these codecs: reading every code of a JPEG, and encoding the variants.

libjpeg reads all Huffman codes at every scale, so a decode at an eighth costs little else. The variants' pixels are
made once, before anything is measured: turning, converting, resampling and everything around it count as nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyvips

from benchmarks.engine import darkroom_itself
from darkroom.imaging.encode import encode

_PIXELS: dict[tuple[int, bytes, int], dict[str, pyvips.Image]] = {}


def versions() -> Mapping[str, str]:
    """As Darkroom's."""
    return darkroom_itself.versions()


def run(original: bytes, variants: list[dict[str, Any]], encoding: dict[str, Any]) -> dict[str, bytes]:
    """The variants' bytes by name."""
    middle = len(original) // 2
    key = len(original), original[middle : middle + 64], len(variants)
    if key not in _PIXELS:
        made = darkroom_itself.run(original, variants, encoding)
        _PIXELS[key] = {name: pyvips.Image.new_from_buffer(body, "").copy_memory() for name, body in made.items()}
    pixels = _PIXELS[key]
    pyvips.Image.jpegload_buffer(original, shrink=8, access="sequential").copy_memory()
    quality = {"jpeg": encoding["jpeg_quality"], "webp": encoding["webp_quality"]}
    return {
        variant["name"]: encode(
            pixels[variant["name"]], variant["format"], quality=quality[variant["format"]], effort="balanced"
        )
        for variant in variants
    }
