"""What both Pillow engines share: conversion to sRGB, and encoding without metadata."""

from __future__ import annotations

import io
from typing import Any

import PIL
from PIL import Image, ImageCms, UnidentifiedImageError, features

_SRGB = ImageCms.createProfile("sRGB")


def pillow_versions() -> dict[str, str]:
    """The versions of Pillow and of the codecs it brings."""
    codecs = {"libjpeg-turbo": "libjpeg_turbo", "zlib-ng": "zlib_ng", "libwebp": "webp"}
    return {"pillow": PIL.__version__} | {name: str(features.version(feature)) for name, feature in codecs.items()}


def opened(original: bytes) -> Image.Image:
    """The file, by pillow-heif if Pillow does not know it: only then, so that it does not count as Pillow's memory."""
    try:
        return Image.open(io.BytesIO(original))
    except UnidentifiedImageError:
        import pillow_heif  # noqa: PLC0415  as above

        pillow_heif.register_heif_opener()
        return Image.open(io.BytesIO(original))


def to_srgb(image: Image.Image, profile: bytes | None) -> Image.Image:
    """The picture in sRGB. Only RGB pictures of the sources have a profile."""
    if not profile:
        return image
    embedded = ImageCms.ImageCmsProfile(io.BytesIO(profile))
    converted = ImageCms.profileToProfile(image, embedded, _SRGB, outputMode="RGB")
    if converted is None:  # only an in-place conversion returns nothing
        raise ValueError("no converted picture")
    return converted


def encoded(image: Image.Image, variant_format: str, encoding: dict[str, Any]) -> bytes:
    """The variant's bytes. Anything left in `info` would be written to the file."""
    image.info = {}
    file = io.BytesIO()
    match variant_format:
        case "jpeg":
            optimize = encoding["jpeg_optimize"]
            image.save(file, "JPEG", quality=encoding["jpeg_quality"], optimize=optimize, subsampling="4:2:0")
        case "webp":
            image.save(file, "WEBP", quality=encoding["webp_quality"], method=encoding["webp_method"])
        case "avif":
            options = {"speed": encoding["avif_speed"], "max_threads": 1, "autotiling": False}
            image.save(file, "AVIF", quality=encoding["avif_quality"], **options)
        case "png":
            image.save(file, "PNG", compress_level=encoding["png_compression"])
    return file.getvalue()
