"""Fitting a picture into a box, and its colours into sRGB."""

from __future__ import annotations

import io

from PIL import Image, ImageCms

_SRGB = ImageCms.createProfile("sRGB")

PROFILE_IGNORED = "The embedded colour profile could not be used: the colours were taken as sRGB."


def fit_inside(image: Image.Image, width: int, height: int) -> Image.Image:
    """The picture fitted inside `width` by `height` pixels, its shape kept, never enlarged; at least one pixel a side.

    Lanczos, by Pillow, which weighs transparent pixels by their alpha.
    """
    scale = min(width / image.width, height / image.height, 1)
    size = (max(1, round(image.width * scale)), max(1, round(image.height * scale)))
    return image.copy() if size == image.size else image.resize(size, Image.Resampling.LANCZOS)


def to_srgb(image: Image.Image, icc_profile: bytes | None) -> tuple[Image.Image, str | None]:
    """The picture in sRGB as L, RGB or RGBA, and a notice where its profile could not be used."""
    if icc_profile is None:
        return (image.convert("RGB") if image.mode == "CMYK" else image), None
    try:
        return _by_profile(image, icc_profile), None
    except (ImageCms.PyCMSError, OSError, ValueError):
        # A broken profile costs its owner the exact colours, not the picture.
        return (image.convert("RGB") if image.mode == "CMYK" else image), PROFILE_IGNORED


def _by_profile(image: Image.Image, icc_profile: bytes) -> Image.Image:
    profile = ImageCms.ImageCmsProfile(io.BytesIO(icc_profile))
    alpha = image.getchannel("A") if image.mode == "RGBA" else None
    colours = image.convert("RGB") if alpha is not None else image
    converted = ImageCms.profileToProfile(
        colours, profile, _SRGB, renderingIntent=ImageCms.Intent.RELATIVE_COLORIMETRIC, outputMode="RGB"
    )
    if converted is None:  # only an in-place conversion returns nothing
        raise ValueError("no converted image")
    if alpha is not None:
        converted.putalpha(alpha)
    return converted
