"""Weights a picture's colours by its alpha, and undoes that."""

from __future__ import annotations

import pyvips


def premultiplied(image: pyvips.Image) -> pyvips.Image:
    """The picture with its colours weighted by alpha, so that transparent pixels do not bleed into others."""
    return image.premultiply().rint().cast(image.format) if image.hasalpha() else image


def unpremultiplied(image: pyvips.Image) -> pyvips.Image:
    """The inverse of `premultiplied`, as far as rounding allows."""
    return image.unpremultiply().rint().cast(image.format) if image.hasalpha() else image
