"""Format `negotiated`: three files of one picture, byte for byte as if each had been asked for."""

from dataclasses import replace
from typing import Any

import pytest

from darkroom.domain.recipes.recipes import Recipe
from darkroom.imaging import develop
from darkroom.imaging.best import looking_like
from tests.engine.test_best import PICTURES, noise


def recipe(specs: list[dict[str, Any]], **edits: Any) -> Recipe:
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
    together = develop(original, recipe([{"name": "a", "format": "negotiated", **fields}], metadata="copyright"))
    assert [variant.name for variant in together.variants] == ["a", "a.webp", "a.avif"]
    for variant in together.variants:
        spec = {"name": "a", **fields, "format": variant.format, "quality": qualities[variant.format]}
        alone = develop(original, recipe([spec], metadata="copyright"))
        assert replace(variant, name="a") == alone.variants[0]
        assert alone.placeholder == together.placeholder
