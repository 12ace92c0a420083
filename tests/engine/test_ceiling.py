"""Files under a ceiling of bytes: first a lower quality, then a smaller picture, and a notice for either."""

import random

import pytest
import pyvips
from PIL import Image

from darkroom.imaging.ceiling import LOWEST_QUALITY, encode_under
from darkroom.imaging.encode import encode
from tests.support.fakes.pictures import opened


def noise(width: int = 160, height: int = 120, bands: int = 3) -> pyvips.Image:
    pixels = random.Random(1).randbytes(width * height * bands)
    image = Image.frombytes({3: "RGB", 4: "RGBA"}[bands], (width, height), pixels)
    return pyvips.Image.new_from_memory(image.tobytes(), width, height, bands, "uchar").copy(interpretation="srgb")


@pytest.mark.parametrize("file_format", ["jpeg", "webp", "png"])
def test_without_a_ceiling_nothing_is_given_up(file_format: str) -> None:
    encoded = encode_under(noise(), file_format, quality=80, effort="fast", ceiling_bytes=None)  # type: ignore[arg-type]
    assert (encoded.width, encoded.height, encoded.notice) == (160, 120, None)


@pytest.mark.parametrize("file_format", ["jpeg", "webp", "avif"])
def test_the_highest_quality_that_fits_is_found(file_format: str) -> None:
    image = noise()
    wanted = 57
    ceiling = len(encode(image, file_format, quality=wanted, effort="fast"))  # type: ignore[arg-type]
    encoded = encode_under(image, file_format, quality=90, effort="fast", ceiling_bytes=ceiling)  # type: ignore[arg-type]
    assert len(encoded.body) <= ceiling
    assert (encoded.width, encoded.height) == (160, 120)
    assert encoded.notice is not None and "instead of 90" in encoded.notice
    highest = int(encoded.notice.split()[1])
    assert highest >= wanted
    assert len(encode(image, file_format, quality=highest + 1, effort="fast")) > ceiling  # type: ignore[arg-type]


@pytest.mark.parametrize("file_format", ["jpeg", "webp", "png", "avif"])
def test_where_quality_is_not_enough_the_picture_becomes_smaller(file_format: str) -> None:
    encoded = encode_under(noise(bands=3), file_format, quality=80, effort="fast", ceiling_bytes=1500)  # type: ignore[arg-type]
    assert len(encoded.body) <= 1500
    assert encoded.width < 160 and abs(encoded.width / encoded.height - 4 / 3) < 0.1
    assert opened(encoded.body).size == (encoded.width, encoded.height)
    assert encoded.notice is not None and f"{encoded.width}×{encoded.height} instead of 160×120" in encoded.notice
    assert ("quality" in encoded.notice) == (file_format != "png")


def test_a_quality_that_is_low_already_is_not_raised() -> None:
    encoded = encode_under(noise(), "jpeg", quality=10, effort="fast", ceiling_bytes=1500)
    assert encoded.notice is not None and "quality 10" in encoded.notice
    assert LOWEST_QUALITY > 10


def test_transparency_survives_the_scaling() -> None:
    encoded = encode_under(noise(bands=4), "png", quality=0, effort="fast", ceiling_bytes=1500)
    assert opened(encoded.body).mode == "RGBA"
