"""Edits of an image after its upload: what they change of the recipes that make its variants."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict

from darkroom.domain.recipes.recipes import WHOLE, Crop, FocalPoint, Recipe, VariantSpec


class Edits(BaseModel):
    """All edits of an image: the next ones take their place, and add nothing to them.

    What is None is as the image's recipes say. `crop`, `rotate` and `flip` are of the whole picture, and `focus` is the
    point that all crops to a variant's shape keep; they hold for added variants, too. `recipe` has other variants in
    the place of those that the image was uploaded for.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    crop: Crop | None = None
    focus: FocalPoint | None = None
    rotate: Annotated[Literal[0, 90, 180, 270], WHOLE] | None = None
    flip: Literal["none", "horizontal", "vertical", "both"] | None = None
    recipe: Recipe | None = None


def edited(recipe: Recipe, edits: Edits | None) -> Recipe:
    """The recipe as the edits of the picture change it."""
    if edits is None:
        return recipe
    changes = {name: value for name in ("crop", "rotate") if (value := getattr(edits, name)) is not None}
    if edits.flip is not None:
        changes["flip"] = None if edits.flip == "none" else edits.flip
    if edits.focus is not None:
        changes["variants"] = tuple(_focused(spec, edits.focus) for spec in recipe.variants)
    return recipe.model_copy(update=changes)


def _focused(spec: VariantSpec, focus: FocalPoint) -> VariantSpec:
    return spec.model_copy(update={"gravity": focus}) if spec.fit == "cover" else spec
