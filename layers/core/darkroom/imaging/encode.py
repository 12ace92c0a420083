"""Encoding a picture as JPEG, PNG or WebP with nothing of the original's metadata."""

from __future__ import annotations

import io
from typing import Literal

from PIL import Image

type Family = Literal["jpeg", "png", "webp"]

MEDIA_TYPES: dict[str, str] = {"jpeg": "image/jpeg", "png": "image/png", "webp": "image/webp"}
EXTENSIONS: dict[str, str] = {"jpeg": "jpg", "png": "png", "webp": "webp"}

_BACKGROUND = (255, 255, 255)
"""What shows through transparency in a format that has none."""


def family_of(wanted: Literal["auto", "jpeg", "png", "webp"], image: Image.Image) -> Family:
    """The format to encode in: `auto` is PNG where something is transparent, JPEG otherwise."""
    if wanted != "auto":
        return wanted
    return "png" if _is_transparent_somewhere(image) else "jpeg"


def encode(image: Image.Image, family: Family, *, quality: int) -> bytes:
    """The file's bytes. The same pixels, family, quality and library versions give the same bytes."""
    if image.mode == "RGBA" and (family == "jpeg" or not _is_transparent_somewhere(image)):
        image = _flattened(image)
    # What is left in `info` (an ICC profile, a comment, EXIF) would be written into the file by save().
    image.info = {}
    file = io.BytesIO()
    match family:
        case "jpeg":
            image.save(file, "JPEG", quality=quality)
        case "webp":
            image.save(file, "WEBP", quality=quality, method=4)
        case "png":
            image.save(file, "PNG")
    return file.getvalue()


def _is_transparent_somewhere(image: Image.Image) -> bool:
    if image.mode != "RGBA":
        return False
    lowest, _ = image.getchannel("A").getextrema()
    return isinstance(lowest, (int, float)) and lowest < 255


def _flattened(image: Image.Image) -> Image.Image:
    background = Image.new("RGB", image.size, _BACKGROUND)
    background.paste(image, mask=image.getchannel("A"))
    return background
