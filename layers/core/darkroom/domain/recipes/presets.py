"""The presets: recipes with a name. An edited preset takes effect, once deployed, for images submitted from then on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from darkroom.domain.kernel.errors import Rejected
from darkroom.domain.recipes.recipes import Recipe
from darkroom.domain.recipes.written_recipes import InvalidRecipe, recipe_from_data

DEFAULT_PRESET = "standard"

_FACE = {"x": 0.5, "y": 0.4}  # in most portraits the face is a little above the middle

_PRESETS: dict[str, dict[str, Any]] = {
    "standard": {
        "variants": [
            {"name": "thumb", "width": 256, "height": 256},
            {"name": "medium", "width": 800, "height": 800},
            {"name": "large", "width": 1920, "height": 1920},
            {"name": "webp", "width": 1920, "height": 1920, "format": "webp"},
        ],
    },
    "avatar": {
        "variants": [
            {"name": "small", "width": 96, "height": 96, "fit": "cover", "gravity": _FACE},
            {"name": "large", "width": 512, "height": 512, "fit": "cover", "gravity": _FACE},
            {"name": "avif", "width": 512, "height": 512, "fit": "cover", "gravity": _FACE, "format": "avif"},
        ],
    },
}
"""Each is a whole recipe: `Recipe` and `VariantSpec` explain each field and its default. `version` is 1 by default:
whoever changes what a preset makes raises it, so that images of an earlier one can be found and made again."""


class InvalidPreset(ValueError):
    """A preset is not a valid recipe: nothing starts until it is corrected. The message names the preset and the
    field."""


def presets_from(written: Mapping[str, Mapping[str, Any]]) -> dict[str, Recipe]:
    """The presets in plain data: the recipe of each name. Raises InvalidPreset."""
    presets = {}
    for name, recipe in written.items():
        try:
            presets[name] = recipe_from_data({field: value for field, value in recipe.items() if field != "version"})
        except InvalidRecipe as error:
            problems = "; ".join(f"{name}.{problem}" for problem in error.problems)
            raise InvalidPreset(f"domain/recipes/presets.py: {problems}") from error
        if presets[name].overlay_images:  # guard: overlays-none-in-presets
            message = "overlays are images of one tenant, and presets are for all: they belong in a recipe of its own"
            raise InvalidPreset(f"domain/recipes/presets.py: {name}.variants: {message}")
    return presets


def versions_from(written: Mapping[str, Mapping[str, Any]]) -> dict[str, int]:
    """The versions of the presets in plain data. Raises InvalidPreset."""
    versions = {name: preset.get("version", 1) for name, preset in written.items()}
    for name, version in versions.items():
        if type(version) is not int or version < 1:
            raise InvalidPreset(f"domain/recipes/presets.py: {name}.version: must be a whole number, at least 1")
    return versions


PRESETS: dict[str, Recipe] = presets_from(_PRESETS)
VERSIONS: dict[str, int] = versions_from(_PRESETS)


def preset_named(name: str) -> Recipe:
    """The recipe of the preset `name`. Raises Rejected (`unknown_preset`), naming the known ones."""
    try:
        return PRESETS[name]
    except KeyError:
        known = ", ".join(sorted(PRESETS))
        raise Rejected("unknown_preset", f"There is no such preset. Known presets: {known}.") from None
