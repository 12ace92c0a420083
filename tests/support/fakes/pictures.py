"""Small pictures for tests, generated when needed."""

from __future__ import annotations

import io
from typing import Any

from PIL import Image


def picture(width: int = 64, height: int = 48, mode: str = "RGB", colour: Any = None) -> Image.Image:
    """A picture with a gradient, so that no two pixels are equal by accident."""
    image = Image.linear_gradient("L").resize((width, height))
    if colour is not None:
        return Image.new(mode, (width, height), colour)
    return image.convert(mode)


def encoded(image: Image.Image, file_format: str, **options: Any) -> bytes:
    """The picture as a file's bytes."""
    file = io.BytesIO()
    image.save(file, file_format, **options)
    return file.getvalue()


def jpeg(width: int = 64, height: int = 48, **options: Any) -> bytes:
    """A JPEG of that size."""
    return encoded(picture(width, height), "JPEG", **options)


def opened(body: bytes) -> Image.Image:
    """The picture that a file's bytes decode to."""
    image = Image.open(io.BytesIO(body))
    image.load()
    return image
