"""Formats `best` and `negotiated`: JPEG, WebP and AVIF at qualities that look alike, byte for byte as if asked for."""

import io
import random
from dataclasses import replace
from itertools import pairwise
from typing import Any, Literal

import pytest
from PIL import Image, ImageFilter

from darkroom.domain.recipes.recipes import Recipe, VariantSpec
from darkroom.imaging import Rendered, develop
from darkroom.imaging.best import EQUAL_QUALITIES, HIGHEST_COMPARED, equal_qualities, looking_like
from tests.support.fakes.pictures import encoded


def noise(blur: float, mode: str = "RGB", side: int = 96) -> bytes:
    pixels = random.Random(1).randbytes(side * side * len(mode))
    return encoded(Image.frombytes(mode, (side, side), pixels).filter(ImageFilter.GaussianBlur(blur)), "PNG")


def encoded_as(
    original: bytes, metadata: Literal["none", "copyright"] = "none", **fields: object
) -> tuple[Rendered, tuple[str, ...]]:
    spec = VariantSpec.model_validate({"name": "a", "width": 96, "height": 96, **fields})
    developed = develop(original, Recipe(variants=(spec,), metadata=metadata))
    return developed.variants[0], developed.notices


PICTURES = {
    "blurred": noise(3),
    "noise": noise(0),
    "flat": encoded(Image.new("L", (96, 96), 90), "PNG"),
}


@pytest.mark.guards("best-smallest-file")
@pytest.mark.parametrize("quality", [None, 1, 55, 86, 97])
@pytest.mark.parametrize("picture", PICTURES)
def test_the_smallest_of_equal_qualities_wins(picture: str, quality: int | None) -> None:
    best, _ = encoded_as(PICTURES[picture], format="best", quality=quality)
    qualities = equal_qualities(quality or 80, is_transparent=False)
    files = [encoded_as(PICTURES[picture], format=name, quality=equal)[0] for name, equal in qualities.items()]
    assert best == min(files, key=lambda file: len(file.body))


@pytest.mark.guards("best-no-transparent-jpeg")
def test_what_is_transparent_is_never_a_jpeg() -> None:
    original = noise(0, "RGBA", 8)
    best, _ = encoded_as(original, format="best", quality=95)
    qualities = equal_qualities(95, is_transparent=True)
    assert "jpeg" not in qualities
    assert best in [encoded_as(original, format=name, quality=equal)[0] for name, equal in qualities.items()]
    with Image.open(io.BytesIO(best.body)) as shown:
        assert shown.has_transparency_data


@pytest.mark.guards("best-smallest-under-ceiling")
def test_only_the_smallest_is_made_to_fit_under_a_ceiling() -> None:
    free, _ = encoded_as(PICTURES["noise"], format="best")
    assert encoded_as(PICTURES["noise"], format="best", max_bytes=len(free.body)) == (free, ())
    best, notices = encoded_as(PICTURES["noise"], format="best", max_bytes=len(free.body) // 2)
    quality = equal_qualities(80, is_transparent=False)[free.format]
    alone = encoded_as(PICTURES["noise"], format=free.format, quality=quality, max_bytes=len(free.body) // 2)
    assert (best, notices) == alone
    assert notices and best.format == free.format


def test_the_rights_in_a_file_count() -> None:
    exif = Image.Exif()
    exif[0x013B] = "Zoë Müller " * 30  # Artist; a JPEG has it thrice, as EXIF, IPTC and XMP
    original = encoded(Image.new("RGB", (8, 8), "#7a8b5c"), "PNG", exif=exif)
    qualities = equal_qualities(80, is_transparent=False)
    files = [encoded_as(original, "copyright", format=name, quality=quality)[0] for name, quality in qualities.items()]
    assert encoded_as(original, "copyright", format="best")[0] == min(files, key=lambda file: len(file.body))


def test_of_equal_files_the_most_widely_understood_wins() -> None:
    assert [*equal_qualities(80, is_transparent=False)] == ["jpeg", "webp", "avif"]
    assert [*equal_qualities(80, is_transparent=True)] == ["webp", "avif"]


@pytest.mark.guards("best-high-quality-jpeg-only", "best-low-quality-floor")
def test_a_table_of_qualities_is_monotone_and_straight_between_its_lines() -> None:
    ladder = [equal_qualities(quality, is_transparent=True) for quality in range(1, 101)]
    for low, high in pairwise(ladder):
        assert all(1 <= low[name] <= high[name] <= 100 for name in low)
    assert {quality: ladder[quality - 1] for quality in EQUAL_QUALITIES} == EQUAL_QUALITIES
    (first, here), (second, following) = [*EQUAL_QUALITIES.items()][:2]
    middle = equal_qualities((first + second) // 2, is_transparent=True)
    assert all(abs(middle[name] - (here[name] + following[name]) / 2) <= 1 for name in middle)
    assert equal_qualities(1, is_transparent=False) == {"jpeg": 1, **here}
    assert len(equal_qualities(HIGHEST_COMPARED, is_transparent=False)) == 3
    assert equal_qualities(HIGHEST_COMPARED + 1, is_transparent=False) == {"jpeg": HIGHEST_COMPARED + 1}


def negotiated(specs: list[dict[str, Any]], **edits: Any) -> Recipe:
    return Recipe.model_validate({"variants": [{"width": 60, "height": 40, **spec} for spec in specs], **edits})


@pytest.mark.parametrize(
    "fields",
    [
        {"quality": 95, "fit": "cover"},
        {"fit": "contain", "background": "#ff000080", "effort": "fast"},
        {"max_bytes": 1024, "sharpen": 1},
        {"blur": 2, "background": "#123456"},
    ],
)
@pytest.mark.parametrize("picture", ["noise", "transparent"])
def test_each_file_is_as_if_it_had_been_asked_for_alone(picture: str, fields: dict[str, Any]) -> None:
    original = noise(0, "RGBA", 96) if picture == "transparent" else PICTURES[picture]
    quality = fields.get("quality", 80)
    qualities = {"jpeg": quality, **looking_like(quality)}
    together = develop(original, negotiated([{"name": "a", "format": "negotiated", **fields}], metadata="copyright"))
    assert [variant.name for variant in together.variants] == ["a", "a.webp", "a.avif"]
    for variant in together.variants:
        spec = {"name": "a", **fields, "format": variant.format, "quality": qualities[variant.format]}
        alone = develop(original, negotiated([spec], metadata="copyright"))
        assert replace(variant, name="a") == alone.variants[0]
        assert alone.placeholder == together.placeholder
