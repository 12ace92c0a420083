"""Whole photographs, up to 16 megapixels: the files of which some mutants are made, because damage far inside a large
picture meets code that no small one reaches."""

from __future__ import annotations

import functools
import io

from PIL import Image

from repository.report import ROOT
from tests.fuzz.corpus import saved

_PHOTO = ROOT / "tests" / "photos" / "seeding-16mp.jpg"


@functools.cache
def photographs() -> dict[str, bytes]:
    """Every file, by a name that begins with its format."""
    original = _PHOTO.read_bytes()
    with Image.open(io.BytesIO(original)) as file:
        picture = file.convert("RGB")
    half = picture.reduce(2)
    return {
        "jpeg-whole": original,
        "jpeg-whole-progressive": saved(picture, "JPEG", quality=88, progressive=True),
        "jpeg-whole-restarts": saved(picture, "JPEG", quality=80, subsampling=0, restart_marker_rows=1),
        "png-half": saved(half, "PNG", compress_level=1),
        "webp-whole": saved(picture, "WEBP", quality=80, method=0),
        "webp-half-lossless": saved(half, "WEBP", lossless=True, method=0, quality=0),
        "gif-half": saved(half.quantize(128), "GIF"),
        "avif-half": saved(half, "AVIF", speed=10),
    }
