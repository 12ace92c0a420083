"""The presets, and what happens with a wrong one."""

import pytest

from darkroom.domain.kernel.errors import Rejected
from darkroom.domain.recipes.presets import (
    DEFAULT_PRESET,
    PRESETS,
    VERSIONS,
    InvalidPreset,
    preset_named,
    presets_from,
    versions_from,
)
from darkroom.domain.recipes.recipes import FocalPoint


def test_the_standard_preset_has_the_four_variants_of_the_api_page() -> None:
    assert [
        (spec.name, spec.box, spec.fit, spec.format, spec.quality) for spec in preset_named("standard").variants
    ] == [
        ("thumb", (256, 256), "inside", "auto", None),
        ("medium", (800, 800), "inside", "auto", None),
        ("large", (1920, 1920), "inside", "auto", None),
        ("webp", (1920, 1920), "inside", "webp", None),
    ]
    assert DEFAULT_PRESET in PRESETS


def test_avatars_are_squares_around_the_face() -> None:
    assert [(spec.name, spec.box, spec.fit, spec.gravity) for spec in preset_named("avatar").variants] == [
        ("small", (96, 96), "cover", FocalPoint(x=0.5, y=0.4)),
        ("large", (512, 512), "cover", FocalPoint(x=0.5, y=0.4)),
        ("avif", (512, 512), "cover", FocalPoint(x=0.5, y=0.4)),
    ]


def test_an_unknown_preset_is_refused_with_the_known_ones() -> None:
    with pytest.raises(Rejected, match="avatar, standard") as refusal:
        preset_named("no-such")
    assert refusal.value.code == "unknown_preset"


def test_a_wrong_preset_is_named_with_the_field_that_is_wrong() -> None:
    sound = {"name": "thumb", "width": 256}
    wrong = {"name": "large", "width": 0, "fit": "fill"}
    with pytest.raises(InvalidPreset) as error:
        presets_from({"sound": {"variants": [sound]}, "holiday": {"variants": [sound, wrong]}})
    assert str(error.value) == (
        "domain/recipes/presets.py: holiday.variants.1.width: must be at least 1; "
        "holiday.variants.1.fit: must be 'inside', 'cover', 'contain' or 'exact'"
    )


PRESENT = {
    "avatar": (1, "6867f66db204f3ed"),
    "standard": (1, "1d25bebf4c8ab551"),
}
"""The version of each preset, and the beginning of the digest of what it makes."""


def test_a_preset_that_makes_something_else_has_another_version() -> None:
    present = {name: (VERSIONS[name], recipe.digest()[:16]) for name, recipe in PRESETS.items()}
    assert present == PRESENT, "raise the version of what has changed, and write both here"


@pytest.mark.parametrize("version", [0, 1.5, "2", True, None])
def test_a_version_is_a_whole_number_and_the_first_if_none_is_written(version: object) -> None:
    sound = {"variants": [{"name": "thumb", "width": 256}]}
    assert versions_from({"first": sound, "third": sound | {"version": 3}}) == {"first": 1, "third": 3}
    assert presets_from({"third": sound | {"version": 3}}) == presets_from({"third": sound})
    with pytest.raises(InvalidPreset, match=r"holiday\.version: must be a whole number, at least 1"):
        versions_from({"holiday": sound | {"version": version}})


def test_a_preset_is_held_to_the_cost_of_a_recipe() -> None:
    with pytest.raises(InvalidPreset, match=r"holiday\.variants: add up to 33\.6 megapixels of work"):
        presets_from({"holiday": {"variants": [{"name": "all", "width": 4096, "height": 4096, "format": "avif"}]}})
