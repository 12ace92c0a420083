"""Recipes as people write them, in a request or as presets: problems are reported by field, in plain words."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from pydantic import ValidationError

from darkroom.domain.kernel.field_problems import FieldProblem, InvalidFields, findings, in_words
from darkroom.domain.kernel.sizes import excess_in_words
from darkroom.domain.recipes.recipes import (
    COUNTED_AS,
    FIELD_PROBLEM,
    MAX_WORK_PIXELS,
    Crop,
    FocalPoint,
    Overlay,
    Recipe,
    Region,
    VariantSpec,
)

MAX_RECIPE_BYTES = 4096
"""The most JSON that a request may send as a recipe: sixteen variants fit, and so does the URL that carries them (API
Gateway takes 10,240 bytes of request line and headers)."""


class InvalidRecipe(InvalidFields):
    """The JSON is not a valid recipe; `recipe` names the whole document."""

    def __init__(self, problems: tuple[FieldProblem, ...]) -> None:
        super().__init__("invalid_recipe", "The recipe is invalid.", problems)


def recipe_from_json(text: str) -> Recipe:
    """The recipe that a client sent, `{"variants": [...]}`. Raises InvalidRecipe."""
    size_bytes = len(text.encode(errors="replace"))
    if size_bytes > MAX_RECIPE_BYTES:
        raise InvalidRecipe(
            (
                FieldProblem(
                    field="recipe",
                    message=f"has {excess_in_words(size_bytes, MAX_RECIPE_BYTES)} are allowed",
                ),
            )
        )
    return _recipe(lambda: Recipe.model_validate_json(text))


def recipe_from_data(data: Any) -> Recipe:
    """The recipe in plain data of the same form. Raises InvalidRecipe."""
    return _recipe(lambda: Recipe.model_validate(data))


def _recipe(read: Callable[[], Recipe]) -> Recipe:
    try:
        recipe = read()
    except ValidationError as error:
        raise InvalidRecipe(_problems_of(error)) from error
    if recipe.work_pixels > MAX_WORK_PIXELS:
        message = (
            f"add up to {recipe.work_pixels / 1e6:.1f} megapixels of work; at most {MAX_WORK_PIXELS / 1e6:.1f} are "
            f"allowed. {COUNTED_AS} Ask for fewer or smaller variants, or give both sides"
        )
        raise InvalidRecipe((FieldProblem(field="variants", message=message),))
    return recipe


type _Location = tuple[int | str, ...]

_GRAVITY_TAGS = frozenset({"compass point", "focal point"})


def _problems_of(error: ValidationError) -> tuple[FieldProblem, ...]:
    problems = []
    for details in findings(error):
        location, context = details["loc"], details.get("ctx", {})
        path = [str(part) for part in location if part not in _GRAVITY_TAGS]
        if details["type"] == FIELD_PROBLEM:
            path.append(context["field"])
            message = context["message"]
        elif details["type"] == "extra_forbidden":
            message = f"is not a known field. Known fields: {', '.join(_fields_beside(location))}"
        elif location[-1:] == ("compass point",):
            message = f'must be {context["expected"]}, attention, or a focal point as in {{"x": 0.5, "y": 0.4}}'
        else:
            message = in_words(details)
        problems.append(FieldProblem(field=".".join(path) or "recipe", message=message))
    return tuple(problems)


def _fields_beside(location: _Location) -> Iterable[str]:
    """The fields of the model that contains the field at `location`."""
    if len(location) == 1:
        return Recipe.model_fields
    if location[0] in ("regions", "crop"):
        return (Region if location[0] == "regions" else Crop).model_fields
    if location[2:3] == ("overlays",):
        return Overlay.model_fields
    return FocalPoint.model_fields if location[-2] in _GRAVITY_TAGS else VariantSpec.model_fields
