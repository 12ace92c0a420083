"""Recipes and presets."""

import pytest
from pydantic import ValidationError

from darkroom.domain.errors import Rejected
from darkroom.domain.presets import DEFAULT_PRESET, PRESETS, preset_named
from darkroom.domain.recipes import Recipe, VariantSpec


def test_the_standard_preset_has_the_four_variants_of_the_readme() -> None:
    assert [spec.name for spec in preset_named("standard").variants] == ["thumb", "medium", "large", "webp"]


def test_the_default_preset_exists() -> None:
    assert DEFAULT_PRESET in PRESETS


def test_an_unknown_preset_is_refused_with_the_known_ones() -> None:
    with pytest.raises(Rejected, match="standard") as refusal:
        preset_named("no-such")
    assert refusal.value.code == "unknown_preset"


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"width": 0}, "width"),
        ({"height": 8193}, "height"),
        ({"quality": 101}, "quality"),
        ({"name": "../x"}, "name"),
        ({"name": "A"}, "name"),
        ({"format": "tiff"}, "format"),
        ({"colour": "red"}, "colour"),
    ],
)
def test_a_wrong_field_is_named(change: dict[str, object], field: str) -> None:
    with pytest.raises(ValidationError, match=field):
        VariantSpec.model_validate({"name": "a", "width": 1, "height": 1, **change})


def test_two_variants_of_one_name_are_refused() -> None:
    spec = VariantSpec(name="a", width=1, height=1)
    with pytest.raises(ValidationError, match="share a name"):
        Recipe(variants=(spec, spec))


def test_equal_recipes_have_equal_digests_and_others_others() -> None:
    one = Recipe(variants=(VariantSpec(name="a", width=1, height=1),))
    again = Recipe.model_validate_json(one.model_dump_json())
    other = Recipe(variants=(VariantSpec(name="a", width=2, height=1),))
    assert one.digest() == again.digest() != other.digest()
