"""Darkroom's engine as the product calls it, placeholder included."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyvips

from darkroom.domain.images.limits import Limits
from darkroom.domain.recipes.recipes import Recipe, VariantSpec
from darkroom.imaging import develop

_LIMITS = Limits(input_formats=frozenset({"jpeg", "png", "webp", "heic"}))


def versions() -> Mapping[str, str]:
    """The versions of the libraries that the engine uses."""
    from benchmarks.engine.pillow_files import pillow_versions  # noqa: PLC0415  not part of the engine's memory

    libvips = ".".join(str(pyvips.version(part)) for part in range(3))
    return pillow_versions() | {"pyvips": pyvips.__version__, "libvips": libvips}


def run(original: bytes, variants: list[dict[str, Any]], encoding: dict[str, Any]) -> dict[str, bytes]:
    """The variants' bytes by name. Only the quality is requested: all other settings are the product's own."""
    developed = develop(original, recipe_of(variants, encoding), limits=_LIMITS)
    return {rendered.name: rendered.body for rendered in developed.variants}


def recipe_of(variants: list[dict[str, Any]], encoding: dict[str, Any]) -> Recipe:
    """The recipe with which a user would request these variants."""
    qualities = {name: {"quality": encoding[f"{name}_quality"]} for name in ("jpeg", "webp", "avif")}
    return Recipe(
        variants=tuple(
            VariantSpec(
                name=variant["name"],
                width=variant["side"],
                height=variant["side"],
                format=variant["format"],
                **qualities.get(variant["format"], {}),
            )
            for variant in variants
        )
    )
