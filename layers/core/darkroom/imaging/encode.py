"""Encodes a picture as JPEG, PNG, WebP or AVIF without any of the original's metadata."""

from __future__ import annotations

import io

import pyvips
from PIL import Image

from darkroom.domain.recipes import Effort, OutputFormat
from darkroom.imaging.strips import strips

MEDIA_TYPES: dict[OutputFormat, str] = {
    "jpeg": "image/jpeg",
    "png": "image/png",
    "webp": "image/webp",
    "avif": "image/avif",
}
EXTENSIONS: dict[OutputFormat, str] = {"jpeg": "jpg", "png": "png", "webp": "webp", "avif": "avif"}

_WEBP_METHOD: dict[Effort, int] = {"fast": 2, "balanced": 4, "small": 6}
_AVIF_SPEED: dict[Effort, int] = {"fast": 8, "balanced": 6, "small": 4}
_PNG_COMPRESSION: dict[Effort, int] = {"fast": 4, "balanced": 6, "small": 8}  # zlib's level 9 costs much for nothing


def encode(image: pyvips.Image, file_format: OutputFormat, *, quality: float, effort: Effort) -> bytes:
    """The file's bytes: the same pixels, settings and library versions give the same bytes.

    `image` is in memory, in sRGB with eight bits per channel; for JPEG, which has no alpha, it has been flattened.
    Encoding releases the GIL. Only WebP has fractional qualities.
    """
    match file_format:
        # Optimised Huffman tables take half as long again and save under one per cent of the bytes.
        case "jpeg":
            return bytes(image.jpegsave_buffer(Q=round(quality), optimize_coding=effort == "small", keep="none"))
        case "png":
            filters = "all" if effort == "small" else "none"
            return bytes(image.pngsave_buffer(compression=_PNG_COMPRESSION[effort], filter=filters, keep="none"))
        # Pillow's build of libwebp takes a sixth less time than libvips's for the same bytes.
        case "webp":
            # Method 6 is lossless alpha's slowest search: 24 s for half a megapixel of noise, and a thousandth saved.
            method = min(_WEBP_METHOD[effort], 5) if image.hasalpha() else _WEBP_METHOD[effort]
            return _saved(image, "WEBP", quality=quality, method=method)
        # One thread and no tiles, so that the bytes do not depend on the machine's cores.
        case "avif":
            return _saved(
                image, "AVIF", quality=round(quality), speed=_AVIF_SPEED[effort], max_threads=1, autotiling=False
            )


_MODES = {1: "L", 2: "LA", 3: "RGB", 4: "RGBA"}


def _saved(image: pyvips.Image, file_format: str, **options: object) -> bytes:
    file = io.BytesIO()
    _for_pillow(image).save(file, file_format, **options)
    return file.getvalue()


def _for_pillow(image: pyvips.Image) -> Image.Image:
    mode = _MODES[image.bands]
    picture = Image.new(mode, (image.width, image.height))
    for top, rows, strip in strips(image):
        picture.paste(Image.frombuffer(mode, (image.width, rows), strip, "raw", mode, 0, 1), (0, top))
    return picture
