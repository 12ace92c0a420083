"""Recipes: what a variant may specify, what a recipe may contain, and what it costs."""

from typing import Any

import pytest
from pydantic import ValidationError

from darkroom.domain.kernel.errors import Rejected
from darkroom.domain.recipes.recipes import FocalPoint, Recipe, Region, VariantSpec


def spec(**fields: object) -> VariantSpec:
    return VariantSpec.model_validate({"name": "a", "width": 10, "height": 10, **fields})


def recipe(*names: str, **fields: object) -> Recipe:
    return Recipe(variants=tuple(spec(name=name, **fields) for name in names))


@pytest.mark.guards("animation-still-format-refused")
@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"width": "10"}, "width"),
        ({"height": 8193}, "height"),
        ({"quality": 0}, "quality"),
        ({"quality": 101}, "quality"),
        ({"name": "../x"}, "name"),
        ({"name": "a\n"}, "name"),
        ({"name": "a" * 33}, "name"),
        ({"format": "tiff"}, "format"),
        ({"gravity": "up"}, "gravity"),
        ({"gravity": {"x": 1.01, "y": 0}}, "gravity.*x"),
        ({"gravity": {"x": 0, "y": float("nan")}}, "gravity.*y"),
        ({"enlarge": 1}, "enlarge"),
        ({"background": "#fff"}, "background"),
        ({"effort": "tiny"}, "effort"),
        ({"max_bytes": 1023}, "max_bytes"),
        ({"animation": "loop"}, "animation"),
        ({"format": "gif"}, "format: gif needs animation keep"),
        ({"format": "gif", "animation": "poster"}, "format: gif needs animation keep"),
        ({"format": "jpeg", "animation": "keep"}, "animation: cannot be keep with format jpeg"),
        ({"format": "png", "animation": "keep"}, "animation: cannot be keep with format png"),
        ({"format": "avif", "animation": "keep"}, "animation: cannot be keep with format avif"),
        ({"max_bytes": 9999, "animation": "keep"}, "max_bytes: is not possible with animation keep"),
        ({"colour": "red"}, "colour"),
    ],
)
def test_a_wrong_field_is_named(change: dict[str, object], field: str) -> None:
    with pytest.raises(ValidationError, match=field):
        spec(**change)


@pytest.mark.parametrize("fit", ["cover", "contain", "exact"])
@pytest.mark.parametrize("side", ["width", "height"])
def test_what_fills_a_box_needs_both_of_its_sides(fit: str, side: str) -> None:
    spec(fit=fit)
    with pytest.raises(ValidationError, match=f"{side}: is missing: fit {fit} needs a width and a height"):
        spec(fit=fit, **{side: None})


def test_a_side_that_is_not_given_ends_where_every_side_ends() -> None:
    assert spec(width=300, height=None).box == (300, 8192)
    assert spec(width=None, height=300).box == (8192, 300)
    assert spec(width=300, height=200).box == (300, 200)


def test_a_variant_says_little_unless_told() -> None:
    said = VariantSpec(name="a", width=1)
    assert (said.fit, said.gravity, said.enlarge, said.background, said.format) == (
        "inside",
        "centre",
        False,
        "#ffffff",
        "auto",
    )
    assert (said.quality, said.effort, said.max_bytes) == (None, None, None)


def test_equal_recipes_have_equal_digests_whether_they_say_what_is_so_by_default_and_others_others() -> None:
    first = recipe("a", background="#AABBCC", gravity={"x": 0, "y": 1})
    again = Recipe.model_validate_json(first.model_dump_json())
    assert first == again
    assert first.digest() == again.digest() == recipe("a", background="#aabbcc", gravity=FocalPoint(x=0, y=1)).digest()
    others = [recipe("b"), recipe("a", width=11), recipe("a", "b"), recipe("b", "a"), recipe("a", enlarge=True)]
    assert len({first.digest(), *(other.digest() for other in others)}) == 6
    said = recipe("a", fit="inside", gravity="centre", format="auto", quality=None, background="#FFFFFF")
    assert said.digest() == recipe("a").digest()


def test_a_digest_does_not_change_from_one_version_to_the_next() -> None:
    # Every fingerprint of a request with its own recipe contains it: another digest would turn retries into 422s.
    of_old = Recipe(variants=(VariantSpec(name="card", width=600, height=400, fit="cover", format="webp", quality=70),))
    assert of_old.digest() == "88548667c84ba697b43311de6c9e1bc5b309b23838c28af51ee668a5de9e13e7"


def test_chosen_variants_come_in_the_recipes_own_order() -> None:
    assert [variant.name for variant in recipe("a", "b", "c").choose(["c", "a", "c"]).variants] == ["a", "c"]


def test_the_metadata_to_carry_is_none_unless_asked_for_and_part_of_the_digest() -> None:
    assert recipe("a").metadata == "none"
    said, asked = (
        Recipe.model_validate({"variants": [spec()], "metadata": metadata}) for metadata in ("none", "copyright")
    )
    assert said.digest() == recipe("a").digest() != asked.digest()
    with pytest.raises(ValidationError, match="metadata"):
        Recipe.model_validate({"variants": [spec()], "metadata": "all"})


@pytest.mark.guards("recipes-edits-kept")
def test_a_choice_of_variants_keeps_the_edits_of_the_picture() -> None:
    edited = Recipe(variants=recipe("a", "b").variants, rotate=90, trim=0, metadata="copyright")
    assert edited.choose(["b"]) == edited.model_copy(update={"variants": recipe("b").variants})


def test_an_edit_changes_the_digest_and_one_that_does_nothing_does_not() -> None:
    variants = recipe("a").variants
    hidden = Region(x=0, y=0, width=1, height=1, effect="fill")
    edits: list[dict[str, Any]] = [{"rotate": 90}, {"flip": "both"}, {"trim": 0}, {"regions": (hidden,)}]
    assert len({Recipe(variants=variants, **edit).digest() for edit in ({}, *edits)}) == 5
    plain = Recipe(variants=variants, rotate=0, flip=None, trim=None, regions=())
    assert plain.digest() == recipe("a").digest()


@pytest.mark.guards("recipes-edits-counted-as-work")
def test_regions_and_a_trim_count_as_work() -> None:
    variants, hidden = recipe("a", format="webp").variants, Region(x=0, y=0, width=1, height=1, effect="fill")
    assert Recipe(variants=variants, rotate=90, flip="both").work_pixels == 100
    assert Recipe(variants=variants, trim=0).work_pixels == 2_000_100
    assert Recipe(variants=variants, trim=0, regions=(hidden,) * 3).work_pixels == 5_500_100


@pytest.mark.parametrize(("names", "refusal_text"), [(["a", "x"], "'x'"), ([""], "''"), ([], "No variant is named")])
def test_a_choice_of_variants_that_are_not_there_names_those_that_are(names: list[str], refusal_text: str) -> None:
    with pytest.raises(Rejected, match=refusal_text) as refusal:
        recipe("a", "b").choose(names)
    assert refusal.value.code == "unknown_variants"
    assert "Known variants: a, b." in refusal.value.message


@pytest.mark.guards("recipes-best-format-cost", "recipes-negotiated-format-cost", "recipes-gif-memory-cost")
@pytest.mark.parametrize(
    ("fields", "work_pixels"),
    [
        ({"format": "webp"}, 100),
        ({"format": "png"}, 50),
        ({"format": "auto"}, 50),
        ({"format": "jpeg"}, 25),
        ({"format": "avif"}, 200),
        ({"format": "gif", "animation": "keep"}, 50),
        ({"format": "best"}, 325),
        ({"format": "negotiated"}, 325),
        ({"format": "webp", "effort": "small"}, 800),
        ({"format": "webp", "effort": "fast"}, 100),
        ({"format": "webp", "max_bytes": 9999}, 400),
        ({"format": "avif", "effort": "small", "max_bytes": 9999}, 6400),
        ({"format": "webp", "height": None}, 81_920),
        ({"format": "webp", "blur": 2}, 113),
        ({"format": "webp", "effort": "small", "blur": 2, "sharpen": 1}, 825),
    ],
)
def test_a_variant_counts_by_what_it_costs(fields: dict[str, object], work_pixels: int) -> None:
    assert spec(**fields).work_pixels == work_pixels
    assert recipe("a", "b", **fields).work_pixels == 2 * work_pixels


@pytest.mark.parametrize("file_format", ["auto", "webp", "gif"])
def test_an_animation_can_be_kept_in_the_formats_that_move(file_format: str) -> None:
    assert spec(format=file_format, animation="keep").format == file_format


def test_the_schema_knows_the_formats_that_move() -> None:
    *_, rule = VariantSpec.model_json_schema()["allOf"]
    assert rule["then"]["properties"] == {"format": {"enum": ["auto", "webp", "gif"]}, "max_bytes": {"type": "null"}}
    assert rule["else"]["properties"] == {"format": {"not": {"const": "gif"}}}
