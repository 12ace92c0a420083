"""Recipes that people wrote: errors are reported by field, in plain words."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from darkroom.domain.recipes.recipes import VariantSpec
from darkroom.domain.recipes.written_recipes import MAX_RECIPE_BYTES, InvalidRecipe, recipe_from_data, recipe_from_json


def of(*variants: Any) -> str:
    return json.dumps(
        {"variants": [{"name": f"v{index}", "width": 10} | fields for index, fields in enumerate(variants)]}
    )


def problems(text: str) -> dict[str, str]:
    with pytest.raises(InvalidRecipe) as refusal:
        recipe_from_json(text)
    assert refusal.value.code == "invalid_recipe"
    for problem in refusal.value.problems:
        assert str(problem) in refusal.value.message
    return {problem.field: problem.message for problem in refusal.value.problems}


def test_a_recipe_is_read_from_json() -> None:
    (variant,) = recipe_from_json(of({"gravity": {"x": 0.5, "y": 1}, "format": "avif"})).variants
    assert (variant.name, variant.width, variant.height, variant.format) == ("v0", 10, None, "avif")


def test_a_whole_number_is_one_however_it_is_written() -> None:
    integral, written = (recipe_from_json(of({"width": width, "quality": 80})) for width in (3, 3.0))
    assert (written, written.digest()) == (integral, integral.digest())


@pytest.mark.guards("attention-crop-only")
@pytest.mark.parametrize(
    ("change", "field", "message"),
    [
        ({"width": 0}, "width", "must be at least 1"),
        ({"width": 8193}, "width", "must be at most 8192"),
        ({"width": 10**300}, "width", "must be at most 8192"),
        ({"width": 1.5}, "width", "must be a whole number"),
        ({"width": 1e300}, "width", "must be at most 8192"),
        ({"width": True}, "width", "must be a whole number"),
        ({"width": None}, "width", "is missing, and so is height: give one or both"),
        ({"fit": "cover"}, "height", "is missing: fit cover needs a width and a height"),
        ({"fit": "fill"}, "fit", "must be 'inside', 'cover', 'contain' or 'exact'"),
        ({"name": 3}, "name", "must be text"),
        ({"name": "A b"}, "name", "must be 1 to 32 of a-z, 0-9, - and _, starting with a letter"),
        ({"enlarge": "yes"}, "enlarge", "must be true or false"),
        ({"background": "red"}, "background", "must be a colour: #7a8b5c, or #7a8b5cff with alpha; or edge"),
        ({"background": "edge"}, "background", "edge is for fit contain alone: give a colour"),
        ({"blur": 51}, "blur", "must be at most 50"),
        ({"sharpen": 0.4}, "sharpen", "must be at least 0.5"),
        ({"gravity": {"x": -0.1, "y": 0}}, "gravity.x", "must be at least 0"),
        ({"gravity": {"x": "0", "y": 0}}, "gravity.x", "must be a number"),
        ({"gravity": {"x": 0}}, "gravity.y", "is missing"),
        (
            {"gravity": "attention", "fit": "contain", "height": 9},
            "gravity",
            "attention chooses what a crop keeps, and fit contain crops nothing",
        ),
        ({"gravity": "attention"}, "gravity", "attention chooses what a crop keeps, and fit inside crops nothing"),
        ({"gravity": {"x": 0, "y": 0, "z": 0}}, "gravity.z", "is not a known field. Known fields: x, y"),
        ({"max_bytes": 1}, "max_bytes", "must be at least 1024"),
    ],
)
def test_each_wrong_field_is_named_in_plain_words(change: dict[str, Any], field: str, message: str) -> None:
    assert problems(of({}, {}, change)) == {f"variants.2.{field}": message}


def test_an_invalid_gravity_is_reported_with_both_kinds() -> None:
    message_of_gravity = problems(of({"gravity": "up"}))["variants.0.gravity"]
    assert "'northwest', attention, or" in message_of_gravity and '{"x": 0.5, "y": 0.4}' in message_of_gravity


def test_an_unknown_field_is_told_with_the_known_ones() -> None:
    assert "Known fields: name, width, height, fit," in problems(of({"colour": 1}))["variants.0.colour"]
    assert problems('{"variant": []}') == {
        "variants": "is missing",
        "variant": "is not a known field. Known fields: variants, metadata, regions, crop, rotate, flip, trim",
    }


REGION = {"x": 0.1, "y": 0.2, "width": 0.3, "height": 0.4, "effect": "blur"}


@pytest.mark.parametrize(
    ("edits", "field", "message"),
    [
        ({"rotate": 45}, "rotate", "must be 0, 90, 180 or 270"),
        ({"rotate": True}, "rotate", "must be 0, 90, 180 or 270"),
        ({"rotate": False}, "rotate", "must be 0, 90, 180 or 270"),
        ({"flip": "up"}, "flip", "must be 'horizontal', 'vertical' or 'both'"),
        ({"trim": 129}, "trim", "must be at most 128"),
        ({"trim": "10"}, "trim", "must be a whole number"),
        ({"regions": [REGION] * 17}, "regions", "has 17; at most 16 are allowed"),
        ({"regions": [REGION, REGION | {"x": 1}]}, "regions.1.x", "must be less than 1"),
        ({"regions": [REGION | {"height": 0}]}, "regions.0.height", "must be more than 0"),
        ({"regions": [REGION | {"width": 1.1}]}, "regions.0.width", "must be at most 1"),
        ({"regions": [REGION | {"effect": "mosaic"}]}, "regions.0.effect", "must be 'blur', 'pixelate' or 'fill'"),
        (
            {"regions": [REGION | {"colour": 1}]},
            "regions.0.colour",
            "is not a known field. Known fields: x, y, width, height, effect",
        ),
    ],
)
def test_a_wrong_edit_of_the_picture_is_named_in_plain_words(edits: dict[str, Any], field: str, message: str) -> None:
    assert problems(json.dumps({"variants": [{"name": "a", "width": 10}], **edits})) == {field: message}


@pytest.mark.parametrize(
    ("text", "field", "message"),
    [
        ("", "recipe", "is not JSON: EOF"),
        ("{", "recipe", "is not JSON: EOF"),
        ("\ufeff{}", "recipe", "begins with a byte order mark"),
        ("[" * 4000, "recipe", "is not JSON: recursion limit exceeded"),
        ("[]", "recipe", "must be an object"),
        ('{"variants": {}}', "variants", "must be a list"),
        ('{"variants": []}', "variants", "must not be empty"),
        ('{"variants": [1]}', "variants.0", "must be an object"),
        ('{"variants": [{"name": "a", "width": NaN}]}', "variants.0.width", "must be a whole number"),
        (of(*[{}] * 17), "variants", "has 17; at most 16 are allowed"),
        (of({"name": "a"}, {"name": "a"}), "variants.1.name", "two variants share the name a"),
        (" " * (MAX_RECIPE_BYTES + 1), "recipe", "has 4,097 bytes; at most 4 KiB are allowed"),
        ("é" * 2049, "recipe", "has 4,098 bytes"),
        ("\ud800", "recipe", ""),
    ],
)
def test_what_is_no_recipe_at_all_is_told_so(text: str, field: str, message: str) -> None:
    ((told_field, text_of_problem),) = problems(text).items()
    assert told_field == field and text_of_problem.startswith(message)


def test_all_wrong_fields_are_told_at_once_up_to_sixteen() -> None:
    assert list(problems(of({"width": 0}, {"quality": 0}))) == ["variants.0.width", "variants.1.quality"]
    assert len(problems(of({f"f{number}": 0 for number in range(200)}))) == 16


def test_the_largest_recipe_that_says_everything_fits() -> None:
    every_field: dict[str, Any] = {
        "name": "a_name_of_thirty_two_characters0", "width": 1024, "height": 1024, "fit": "contain", "enlarge": True,
        "gravity": {"x": 0.25, "y": 0.75}, "background": "#0a0b0c80", "format": "webp", "quality": 90, "effort": "fast",
    }  # fmt: skip
    variants = [every_field | {"name": f"{every_field['name'][:-2]}{number:02}"} for number in range(16)]
    assert len(recipe_from_json(json.dumps({"variants": variants}, separators=(",", ":"))).variants) == 16


@pytest.mark.parametrize(
    ("variant", "fits"),
    [
        ({"width": 4096, "height": 4096, "format": "webp"}, True),
        ({"width": 4096, "height": 4097, "format": "webp"}, False),
        ({"width": 8192, "height": 8192, "format": "jpeg"}, True),
        ({"width": 8192, "height": 4096, "format": "auto"}, True),
        ({"width": 8192, "height": 4097, "format": "png"}, False),
        ({"width": 1024, "format": "avif"}, True),
        ({"width": 1025, "format": "avif"}, False),
        ({"width": 2048, "height": 2048, "format": "webp", "max_bytes": 5000}, True),
        ({"width": 2048, "height": 2049, "format": "webp", "max_bytes": 5000}, False),
        ({"width": 1024, "height": 2048, "format": "webp", "effort": "small"}, True),
        ({"width": 1024, "height": 2049, "format": "webp", "effort": "small"}, False),
    ],
)
def test_a_recipe_is_held_to_what_developing_it_may_cost(variant: dict[str, Any], fits: bool) -> None:
    if fits:
        recipe_from_json(of(variant))
    else:
        message = problems(of(variant))["variants"]
        assert "at most 16.8 are allowed" in message and "2 for AVIF" in message and "give both sides" in message


def test_the_cost_is_that_of_all_variants_together() -> None:
    variant = {"width": 4096, "height": 4096}  # auto counts half
    recipe_from_json(of(variant, variant))
    assert list(problems(of(variant, variant, {"width": 1, "height": 1}))) == ["variants"]


_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=9)
    | st.sampled_from(["cover", "{x}", "north"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["x", "y", "{"]), inner, max_size=3),
    max_leaves=5,
)
_VARIANTS = st.dictionaries(st.sampled_from([*VariantSpec.model_fields, "{}", ""]), _VALUES, max_size=6)


@settings(max_examples=50, deadline=None)
@given(st.lists(_VARIANTS | _VALUES, max_size=3) | _VALUES)
def test_whatever_is_sent_is_a_recipe_or_told_by_field(variants: Any) -> None:
    try:
        recipe_from_json(json.dumps({"variants": variants}))
    except InvalidRecipe as refusal:
        assert refusal.problems and all(problem.message for problem in refusal.problems)


def test_plain_data_is_checked_in_the_same_way() -> None:
    assert recipe_from_data({"variants": [{"name": "a", "width": 1}]}).variants[0].name == "a"
    with pytest.raises(InvalidRecipe, match=r"variants\.0\.width: must be at least 1"):
        recipe_from_data({"variants": [{"name": "a", "width": 0}]})
