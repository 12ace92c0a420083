"""Encodes a picture as JPEG, PNG, WebP, AVIF or GIF without the original's metadata but, if asked for, its rights."""

from __future__ import annotations

import io
import zlib
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pyvips
from PIL import Image, ImageChops

from darkroom.domain.kernel.lanes import Effort
from darkroom.domain.recipes.recipes import OutputFormat
from darkroom.imaging.strips import strips

if TYPE_CHECKING:
    from darkroom.imaging.rights import Carriers

MEDIA_TYPES: dict[OutputFormat, str] = {
    "jpeg": "image/jpeg",
    "png": "image/png",
    "webp": "image/webp",
    "avif": "image/avif",
    "gif": "image/gif",
}
EXTENSIONS: dict[OutputFormat, str] = {"jpeg": "jpg", "png": "png", "webp": "webp", "avif": "avif", "gif": "gif"}

_QUANT_TABLE = 2
"""The number of mozjpeg's quantisation table that was tuned for MS-SSIM (cjpeg, -quant-table).

Next to the standard's own example (ITU-T T.81, annex K), at the same quality and in the same time, photos have 1 to 14
per cent fewer bytes and mostly a higher score: 3 to 16 per cent fewer at an equal one by SSIMULACRA 2, 4 to 25 by PSNR.
"""

_WEBP_METHOD: dict[Effort, int] = {"fast": 2, "balanced": 4, "small": 6}
_AVIF_SPEED: dict[Effort, int] = {"fast": 8, "balanced": 6, "small": 4}

# zlib's levels: 9 costs much for nothing, and what is filtered gains little above 3.
_PNG_LEVEL: dict[Effort, int] = {"fast": 4, "balanced": 6, "small": 8}
_PNG_FILTERED_LEVEL: dict[Effort, int] = {"fast": 1, "balanced": 3, "small": 6}
_PNG_FILTER: dict[Effort, str] = {"fast": "up", "balanced": "up", "small": "paeth"}
_SAMPLES, _SAMPLE_ROWS = 3, 12


def encode(
    image: pyvips.Image,
    file_format: OutputFormat,
    *,
    quality: float,
    effort: Effort,
    carriers: Carriers | None = None,
) -> bytes:
    """The file's bytes: the same pixels, settings and library versions give the same bytes.

    `image` is in memory, in sRGB with eight bits per channel; for JPEG, which has no alpha, it has been flattened.
    Encoding releases the GIL. Only WebP has fractional qualities.
    """
    match file_format:
        # Progressive files have 3 to 6 per cent fewer bytes, and take four times as long.
        case "jpeg":
            jpeg = bytes(
                image.jpegsave_buffer(
                    Q=round(quality), quant_table=_QUANT_TABLE, interlace=effort == "small", keep="none"
                )
            )
            return jpeg if carriers is None else carriers.in_jpeg(jpeg)
        case "png":
            png = _png(image, effort)
            return png if carriers is None else carriers.in_png(png)
        # Pillow's build of libwebp takes a sixth less time than libvips's for the same bytes.
        case "webp":
            # Method 6 is lossless alpha's slowest search: 24 s for half a megapixel of noise, and a thousandth saved.
            method = min(_WEBP_METHOD[effort], 5) if image.hasalpha() else _WEBP_METHOD[effort]
            return _saved(image, "WEBP", carriers, quality=quality, method=method)
        # One thread and no tiles, so that the bytes do not depend on the machine's cores.
        case "avif":
            options = {"quality": round(quality), "speed": _AVIF_SPEED[effort], "max_threads": 1, "autotiling": False}
            # libaom leaves vector registers' upper halves in use (it lacks a VZEROUPPER), so that libwebp would take a
            # fifth longer in its thread for ever after.
            with ThreadPoolExecutor(1) as pool:
                return pool.submit(_saved, image, "AVIF", carriers, **options).result()  # guard: engine-avif-own-thread
        case "gif":
            from darkroom.imaging.animation import still_gif  # noqa: PLC0415  few recipes need it

            return still_gif(in_colour(image))


def _png(image: pyvips.Image, effort: Effort) -> bytes:
    """The picture as PNG, with or without a filter (PNG specification, 9.2), whichever suits its content.

    With one, photos have 15 to 40 per cent fewer bytes and take less time; screenshots and drawings have fewer bytes
    without.
    """
    if _is_smaller_filtered(image):  # guard: engine-png-filter-choice
        return _deflated(image, _PNG_FILTERED_LEVEL[effort], _PNG_FILTER[effort])
    return _deflated(image, _PNG_LEVEL[effort], "none")


def _is_smaller_filtered(image: pyvips.Image) -> bool:
    """Whether the filter "up", the difference from the row above, makes samples smaller: rows from the top, the middle
    and the bottom, deflated quickly."""
    rows, row_bytes = min(_SAMPLE_ROWS, image.height), image.width * image.bands
    plain, filtered = zlib.compressobj(1), zlib.compressobj(1)
    plain_bytes = filtered_bytes = 0
    region = pyvips.Region.new(image)
    for number in range(_SAMPLES):
        top = number * (image.height - rows) // (_SAMPLES - 1)
        sample = bytes(region.fetch(0, top, image.width, rows))
        above, below = (
            Image.frombuffer("L", (row_bytes, rows - 1), part) for part in (sample[:-row_bytes], sample[row_bytes:])
        )
        plain_bytes += len(plain.compress(sample[row_bytes:]))
        filtered_bytes += len(filtered.compress(ImageChops.subtract_modulo(below, above).tobytes()))
    return filtered_bytes + len(filtered.flush()) < plain_bytes + len(plain.flush())


def _deflated(image: pyvips.Image, level: int, chosen: str) -> bytes:
    return bytes(image.pngsave_buffer(compression=level, filter=chosen, keep="none"))


_MODES = {1: "L", 2: "LA", 3: "RGB", 4: "RGBA"}


def _saved(image: pyvips.Image, file_format: str, carriers: Carriers | None, **options: object) -> bytes:
    file = io.BytesIO()
    if carriers is not None:
        options |= {"xmp": carriers.xmp, "exif": carriers.exif}
    _for_pillow(image).save(file, file_format, **options)
    return file.getvalue()


def in_colour(image: pyvips.Image) -> Image.Image:
    """The picture in Pillow's RGB, or RGBA if it has alpha."""
    return _for_pillow(image).convert("RGBA" if image.hasalpha() else "RGB")


def _for_pillow(image: pyvips.Image) -> Image.Image:
    mode = _MODES[image.bands]
    picture = Image.new(mode, (image.width, image.height))
    for top, rows, strip in strips(image):
        picture.paste(Image.frombuffer(mode, (image.width, rows), strip, "raw", mode, 0, 1), (0, top))
    return picture
