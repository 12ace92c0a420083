"""Encoding: the settings of each effort, and nothing in the file except the picture."""

import io
import random
import zlib
from collections.abc import Callable
from pathlib import Path
from threading import current_thread
from typing import Any
from unittest.mock import patch

import pytest
import pyvips
from PIL import Image, ImageChops, ImageDraw, ImageStat

from darkroom.imaging.encode import encode
from tests.fuzz.handmade import png

PHOTO = Path(__file__).parents[1] / "photos" / "seeding-16mp.jpg"


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


def gradient_with_noise() -> Image.Image:
    """Like a photo: pixels differ little from their neighbours, and are never the same."""
    soft = Image.radial_gradient("L").resize((320, 240))
    noise = Image.frombytes("L", (320, 240), bytes(random.Random(5).choices(range(8), k=320 * 240)))
    return ImageChops.add(soft, noise).convert("RGB")


def text_on_white() -> Image.Image:
    """Like a screenshot: the same letters again and again, which a filter tears apart."""
    page = Image.new("RGB", (320, 240), "white")
    for top in range(0, 240, 12):
        ImageDraw.Draw(page).text((4 + top % 7, top), "pending  done  failed  3,021  image.done", fill="black")
    return page


@pytest.mark.guards("engine-png-filter-choice")
@pytest.mark.parametrize("effort", ["fast", "balanced", "small"])
@pytest.mark.parametrize(("make", "filtered"), [(gradient_with_noise, True), (text_on_white, False)])
def test_a_png_has_the_filter_that_suits_its_content(
    make: Callable[[], Image.Image], filtered: bool, effort: Any
) -> None:
    drawn = make()
    image = pyvips.Image.new_from_memory(drawn.tobytes(), *drawn.size, 3, "uchar").copy(interpretation="srgb")
    body = encode(image, "png", quality=0, effort=effort)
    rows = zlib.decompress(b"".join(body[at : at + length] for name, at, length in png.chunks(body) if name == b"IDAT"))
    filters = {rows[start] for start in range(0, len(rows), 1 + 3 * drawn.width)}
    assert filters - {0} if filtered else filters == {0}
    with Image.open(io.BytesIO(body)) as file:
        assert file.tobytes() == drawn.tobytes()


def test_photos_as_jpegs_have_fewer_bytes_than_with_the_standards_tables() -> None:
    with Image.open(PHOTO) as file:
        file.draft("RGB", (616, 347))
        drawn = file.resize((960, 540))
    image = pyvips.Image.new_from_memory(drawn.tobytes(), *drawn.size, 3, "uchar").copy(interpretation="srgb")
    standard = image.jpegsave_buffer(Q=80, keep="none")
    ours = encode(image, "jpeg", quality=80, effort="balanced")
    assert len(ours) < 0.97 * len(standard)
    assert noise_of(ours, drawn) <= noise_of(standard, drawn)


def noise_of(body: bytes, original: Image.Image) -> float:
    with Image.open(io.BytesIO(body)) as file:
        return sum(ImageStat.Stat(ImageChops.difference(file, original)).sum2)


@pytest.mark.guards("engine-avif-own-thread")
def test_what_encodes_an_avif_is_a_thread_that_ends_with_it() -> None:
    """The registers that it leaves in use are seen on some processors only."""
    threads, save = [], Image.Image.save

    def saved(*arguments: Any, **options: Any) -> None:
        threads.append(current_thread())
        save(*arguments, **options)

    with patch.object(Image.Image, "save", saved):
        encode(picture(3), "avif", quality=60, effort="balanced")
    assert [thread.is_alive() for thread in threads] == [False]


def test_only_the_smallest_jpegs_are_progressive() -> None:
    for effort, progressive in (("fast", False), ("balanced", False), ("small", True)):
        with Image.open(io.BytesIO(encode(picture(3), "jpeg", quality=80, effort=effort))) as file:  # type: ignore[arg-type]
            assert bool(file.info.get("progressive")) == progressive
