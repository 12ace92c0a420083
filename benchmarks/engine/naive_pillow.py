"""Pillow, used naively: decode, turn and convert the whole picture, then resize a copy per variant."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from PIL import Image, ImageOps

from benchmarks.engine.jobs import fitted_inside
from benchmarks.engine.pillow_files import encoded, opened, pillow_versions, to_srgb


def versions() -> Mapping[str, str]:
    """The versions of Pillow and of the codecs it brings."""
    return pillow_versions()


def run(original: bytes, variants: list[dict[str, Any]], encoding: dict[str, Any]) -> dict[str, bytes]:
    """The variants' bytes by name."""
    image: Image.Image = ImageOps.exif_transpose(opened(original))
    image = to_srgb(image, image.info.get("icc_profile"))
    made = {}
    for variant in variants:
        copy = image.copy()
        small = copy.resize(fitted_inside(*copy.size, variant["side"]), Image.Resampling.LANCZOS)
        made[variant["name"]] = encoded(small, variant["format"], encoding)
    return made
