"""Pillow alone, used well: shrink-on-load, a cascade, and colours and orientation after the resize."""

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
    image: Image.Image = opened(original)
    profile = image.info.get("icc_profile")
    largest = fitted_inside(*image.size, variants[0]["side"])
    image.draft("RGB", largest)
    image = image.resize(largest, Image.Resampling.LANCZOS)
    image = to_srgb(ImageOps.exif_transpose(image), profile)
    by_side = {variants[0]["side"]: image}
    made = {}
    for variant in variants:
        side = variant["side"]
        if side not in by_side:
            image = image.resize(fitted_inside(*image.size, side), Image.Resampling.LANCZOS)
            by_side[side] = image
        made[variant["name"]] = encoded(by_side[side], variant["format"], encoding)
    return made
