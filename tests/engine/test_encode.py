"""Encoding: the settings of each effort, and nothing in the file except the picture."""

import io
import random
from typing import Any

import pytest
import pyvips
from PIL import Image

from darkroom.imaging.encode import encode


def picture(bands: int) -> pyvips.Image:
    pixels = random.Random(3).randbytes(48 * 32 * bands)
    image = pyvips.Image.new_from_memory(pixels, 48, 32, bands, "uchar")
    return image.copy(interpretation="srgb" if bands >= 3 else "b-w")


def saved_by_pillow(image: pyvips.Image, file_format: str, **options: Any) -> bytes:
    mode = {1: "L", 2: "LA", 3: "RGB", 4: "RGBA"}[image.bands]
    file = io.BytesIO()
    Image.frombytes(mode, (image.width, image.height), bytes(image.write_to_memory())).save(
        file, file_format, **options
    )
    return file.getvalue()


@pytest.mark.parametrize(
    ("effort", "bands", "method"),
    [("fast", 3, 2), ("balanced", 3, 4), ("small", 3, 6), ("fast", 4, 2), ("balanced", 4, 4), ("small", 4, 5)],
)
def test_effort_is_webps_method_and_alpha_has_no_sixth(effort: Any, bands: int, method: int) -> None:
    image = picture(bands)
    expected = saved_by_pillow(image, "WEBP", quality=80, method=method)
    assert encode(image, "webp", quality=80, effort=effort) == expected


@pytest.mark.parametrize("bands", [1, 2, 3, 4])
@pytest.mark.parametrize("file_format", ["png", "webp", "avif"])
def test_every_kind_of_picture_can_be_encoded(file_format: Any, bands: int) -> None:
    body = encode(picture(bands), file_format, quality=60, effort="fast")
    with Image.open(io.BytesIO(body)) as file:
        assert file.size == (48, 32)
        assert file.has_transparency_data == (bands in (2, 4))


def test_a_smaller_file_is_what_more_effort_is_for() -> None:
    image = pyvips.Image.new_from_memory(bytes(range(256)) * 384, 256, 128, 3, "uchar").copy(interpretation="srgb")
    for file_format in ("jpeg", "png"):
        balanced, small = (encode(image, file_format, quality=80, effort=effort) for effort in ("balanced", "small"))
        assert len(small) < len(balanced)
