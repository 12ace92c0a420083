"""What to make of the photos (a preset, some of its variants, or a recipe from a file), when, who hears of it, and the
client's own words on them."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from darkroom.domain.images.annotations import metadata_of
from darkroom.domain.kernel.errors import Rejected
from darkroom.domain.kernel.sizes import limit_in_words, size_beside
from darkroom_cli.terminal import display

# Darkroom accepts no longer recipe; the API itself explains what the fields may contain.
_LARGEST_RECIPE_BYTES = 4096


class NoOrder(Exception):
    """The options do not say what to make; `option` is the one to correct, and the message says how."""

    def __init__(self, option: str, message: str) -> None:
        super().__init__(message)
        self.option = option


@dataclass(frozen=True, kw_only=True)
class UploadOrder:
    """What to make; without any of the first three the stack decides. `recipe` is JSON, as short as possible. The
    others say when, which webhook alone hears of it, its batch, what to do if it is there, and the client's own words,
    in the API's terms; the API checks them."""

    preset: str | None = None
    variants: str | None = None
    recipe: str | None = None
    process_at: str | None = None
    delay: str | None = None
    expires_at: str | None = None
    notify: str | None = None
    reference: str | None = None
    tags: str | None = None
    metadata: str | None = None
    visibility: str | None = None
    batch: str | None = None
    on_duplicate: Literal["reuse"] | None = None

    @property
    def parameters(self) -> dict[str, str]:
        """The request's query parameters."""
        return {name: value for name, value in asdict(self).items() if value is not None}

    @property
    def fields(self) -> dict[str, Any]:
        """The same as fields of a JSON document."""
        parameters: dict[str, Any] = dict(self.parameters)
        if self.variants is not None:
            parameters["variants"] = self.variants.split(",")
        if self.tags is not None:
            parameters["tags"] = self.tags.split(",")
        for name, text in (("recipe", self.recipe), ("metadata", self.metadata)):
            if text is not None:
                parameters[name] = json.loads(text)
        return parameters

    @property
    def words(self) -> str:
        """A text that two orders share exactly if they are the same: only the preset if nothing else is given."""
        if not self.parameters.keys() - {"preset"}:
            return self.preset or ""
        return json.dumps(self.parameters, sort_keys=True)


def order_of(preset: str | None, variants: str | None, recipe_file: Path | None) -> UploadOrder:
    """The order that the options describe. Raises NoOrder."""
    names = None
    if variants is not None:
        names = ",".join(sorted({name.strip() for name in variants.split(",")} - {""}))
        if not names:
            raise NoOrder("--variants", "it names no variant. Separate names with commas: --variants thumb,webp")
    if recipe_file is None:
        return UploadOrder(preset=preset, variants=names)
    if preset is not None or names is not None:
        raise NoOrder("--recipe", "a recipe lists all variants itself: leave out --preset and --variants.")
    return UploadOrder(recipe=_recipe_in(recipe_file))


def metadata_in(text: str | None) -> str | None:
    """The metadata in an option, as short as possible. Raises NoOrder."""
    try:
        return None if text is None else metadata_of(text)
    except Rejected as refusal:
        raise NoOrder("--metadata", refusal.message) from refusal


def _recipe_in(file: Path) -> str:
    name = display.printable(str(file))
    try:
        recipe = json.loads(file.read_bytes())
    except OSError as error:
        raise NoOrder("--recipe", f"{name} cannot be read: {error.strerror}.") from error
    except (ValueError, RecursionError) as error:
        raise NoOrder("--recipe", f"{name} is not JSON: {error}.") from error
    if not isinstance(recipe, dict) or not isinstance(recipe.get("variants"), list):
        raise NoOrder(
            "--recipe", f'{name} is not a recipe. A recipe looks like {{"variants": [{{"name": "a", "width": 300}}]}}.'
        )
    text = json.dumps(recipe, separators=(",", ":"), sort_keys=True)
    if len(text) > _LARGEST_RECIPE_BYTES:
        raise NoOrder(
            "--recipe",
            f"{name} has {size_beside(len(text), _LARGEST_RECIPE_BYTES)}, and the limit is "
            f"{limit_in_words(_LARGEST_RECIPE_BYTES)}. "
            "Leave out fields with their default value, or make it a preset of the stack.",
        )
    return text
