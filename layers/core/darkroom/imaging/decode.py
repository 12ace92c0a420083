"""Opening files that strangers send: bounded by the header before a pixel is decoded, upright afterwards."""

from __future__ import annotations

import io
import warnings
from dataclasses import dataclass

from PIL import Image, ImageOps, UnidentifiedImageError

from darkroom.domain.errors import Rejected

FORMATS = ("JPEG", "PNG", "WEBP", "GIF")
"""The decoders that are ever tried: Pillow's others (TIFF, JPEG 2000, PSD, EPS, …) stay shut."""

MAX_PIXELS = 50_000_000
"""The most pixels that are decoded: 4 bytes each, they fit the function's memory with room for the variants."""

MAX_SIDE = 65_500
"""The longest side that is decoded; JPEG itself ends at 65,535 and libjpeg at 65,500."""


@dataclass(frozen=True, kw_only=True)
class Decoded:
    """The first frame, upright, as L, RGB, RGBA or CMYK in the colours of `icc_profile` (None: sRGB)."""

    image: Image.Image
    icc_profile: bytes | None
    notices: tuple[str, ...]


def decode(original: bytes) -> Decoded:
    """The picture in `original`.

    Raises Rejected: `unsupported_format`, `too_many_pixels`, or `undecodable` for damaged and truncated files.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a warning about a file is not a reason to refuse or to log it
            return _decode(original)
    except Rejected:
        raise
    except Exception as error:
        # Decoders raise OSError for truncation, but also SyntaxError, ValueError, struct.error, zlib.error and others
        # for damage, so everything at this boundary is the file's fault. MemoryError is none of them: it is an
        # Exception too, but the header's bounds keep a legal image far below the function's memory.
        if isinstance(error, MemoryError):
            raise
        raise Rejected(
            "undecodable", "The file is damaged or incomplete: it could not be decoded. Send the original file again."
        ) from error


def _decode(original: bytes) -> Decoded:
    try:
        image: Image.Image = Image.open(io.BytesIO(original), formats=FORMATS)
    except Image.DecompressionBombError as error:
        raise _too_many_pixels() from error
    except UnidentifiedImageError as error:
        raise Rejected(
            "unsupported_format", "The bytes are no image that can be developed: send JPEG, PNG, WebP or GIF."
        ) from error
    # Pillow only warns up to twice its own limit, so the header is checked here, before anything is decoded.
    if image.width * image.height > MAX_PIXELS or max(image.size) > MAX_SIDE:
        raise _too_many_pixels()
    notices = []
    if getattr(image, "n_frames", 1) > 1:
        notices.append("The file is animated: only its first frame was developed.")
    icc_profile = image.info.get("icc_profile")
    image.load()
    image = ImageOps.exif_transpose(image)
    return Decoded(image=_plain_mode(image), icc_profile=icc_profile, notices=tuple(notices))


def _too_many_pixels() -> Rejected:
    return Rejected(
        "too_many_pixels",
        f"The image has more than {MAX_PIXELS // 1_000_000} megapixels or a side over {MAX_SIDE} pixels. "
        "Send a smaller version.",
    )


def _plain_mode(image: Image.Image) -> Image.Image:
    """The same picture in one of the four modes that the rest of the pipeline knows."""
    match image.mode:
        case "L" | "RGB" | "RGBA" | "CMYK":
            return image
        case "1":
            return image.convert("L")
        case "I;16" | "I;16B" | "I;16L" | "I;16N" | "I":
            # 16 bits a pixel: the upper eight are kept. convert("L") alone would clip everything above 255 to white.
            return image.convert("I").point(lambda value: value / 256).convert("L")
        case _ if image.has_transparency_data:
            return image.convert("RGBA")
        case _:
            return image.convert("RGB")
