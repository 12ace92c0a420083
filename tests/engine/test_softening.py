"""Shrinking on load: which variants get a higher quality because of it, and by how much."""

import random

import pytest
import pyvips
from PIL import Image, ImageChops, ImageDraw, ImageStat

from darkroom.domain.recipes import Recipe, VariantSpec
from darkroom.imaging import develop
from darkroom.imaging.softening import detail_of, quality_steps
from proof.fakes.pictures import encoded, jpeg, opened


@pytest.mark.parametrize(
    ("share", "detail", "jpeg_steps", "webp_steps"),
    [
        (1.0, 5, 1, 0.5),
        (1.0, 25, 1, 0.5),
        (0.95, 5, 1, 0.5),
        (0.95, 25, 2, 2),
        (0.75, 25, 1, 0.5),
        (0.6, 25, 0, 0),
        (0.4, 5, 0, 0),
    ],
)
def test_only_what_is_nearly_as_large_as_the_decoded_picture_is_raised(
    share: float, detail: float, jpeg_steps: float, webp_steps: float
) -> None:
    assert quality_steps("jpeg", share, detail) == jpeg_steps
    assert quality_steps("webp", share, detail) == webp_steps


def print_of_letters() -> Image.Image:
    """A page of small print, in which all detail is at the limit of what its pixels can show."""
    page, letters = Image.new("L", (2016, 1512), "white"), random.Random(7)
    for top in range(10, 1500, 15):
        text = "".join(letters.choice("abcdefghilmnoprstu   ") for _ in range(330))
        ImageDraw.Draw(page).text((10, top), text, fill="black")
    return page.resize((4032, 3024), Image.Resampling.NEAREST)


@pytest.mark.parametrize("width", [970, 800, 600, 480, 400, 300])
def test_small_print_stays_what_it_is_though_the_decoder_shrinks_it(width: int) -> None:
    page = encoded(print_of_letters(), "JPEG", quality=92)
    recipe = Recipe(variants=(VariantSpec(name="one", width=width, format="png"),))
    shrunk = opened(develop(page, recipe).variants[0].body).convert("L")
    true = opened(page).convert("L").resize(shrunk.size, Image.Resampling.LANCZOS)
    assert ImageStat.Stat(ImageChops.difference(shrunk, true)).mean[0] < 4


def test_detail_is_what_changes_from_pixel_to_pixel() -> None:
    even = pyvips.Image.black(600, 40, bands=3).cast("uchar")
    checks = (pyvips.Image.xyz(600, 40)[0] % 2 * 100).cast("uchar")
    assert detail_of(even) == 0
    assert detail_of(checks.bandjoin([checks, checks])) > 100


def quality_of(body: bytes, width: int) -> bytes:
    """The quantisation tables reveal the quality."""
    recipe = Recipe(variants=(VariantSpec(name="one", width=width, quality=80),))
    return repr(opened(develop(body, recipe).variants[0].body).quantization).encode()  # type: ignore[attr-defined]


def test_a_variant_of_a_shrunk_decode_has_the_raised_quality_and_a_smaller_one_has_not() -> None:
    body = jpeg(800, 600)
    plain = quality_of(body, 700)  # needs the whole picture
    assert quality_of(body, 390) != plain
    assert quality_of(body, 400) != plain
    assert quality_of(body, 240) == plain
