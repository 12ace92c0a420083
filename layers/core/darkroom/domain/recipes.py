"""Recipes: which variants an image is developed into, and the bounds of what one may ask for."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterable
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    Strict,
    Tag,
    model_validator,
)
from pydantic_core import PydanticCustomError

from darkroom.domain.errors import Rejected

type Effort = Literal["fast", "balanced", "small"]
"""How long an encoder may look for a smaller file."""

type OutputFormat = Literal["jpeg", "png", "webp", "avif"]

DEFAULT_QUALITY: dict[OutputFormat, int] = {"jpeg": 80, "webp": 80, "avif": 60}
"""The quality of a variant that names none, on each encoder's own scale; PNG has no quality."""

MAX_VARIANTS = 16

MAX_SIDE_PIXELS = 8192
"""The longest side of a variant. WebP itself ends at 16383 (RFC 9649)."""

MAX_WORK_PIXELS = 4096 * 4096
"""What the variants of one recipe may come to, each counted by `VariantSpec.work_pixels`: one WebP of 4096 a side.

The worker has 60 s and 2 GB. Measured on one core, on the most that the bound allows: a photo takes 2 to 5 s in every
format and effort; noise under a noisy alpha, the worst that a picture can be, at most 25 s (AVIF) and 1.1 GB (WebP).
"""

_WORK_OF_FORMAT: dict[str, float] = {"jpeg": 0.25, "auto": 0.5, "png": 0.5, "webp": 1, "avif": 2}
"""What a pixel costs in each format compared with WebP, in the worst case; `auto` may be PNG."""

_WORK_OF_SMALL = 8
"""Noise takes AVIF eight times as long at speed 4 as at speed 6."""

_WORK_OF_CEILING = 4
"""Up to eight encodings, each coarser or smaller than the one before and so less work."""

COUNTED_AS = (
    f"A variant counts width times height (a side that is not given is {MAX_SIDE_PIXELS}): JPEG a quarter of it, PNG "
    f"and auto half, WebP all, AVIF twice; effort small counts {_WORK_OF_SMALL} times, max_bytes {_WORK_OF_CEILING} "
    "times."
)
"""How `VariantSpec.work_pixels` counts, in words for whoever asked for too much."""

VARIANT_NAME_PATTERN = "[a-z][a-z0-9_-]{0,31}"
"""What the name of a variant matches."""

_COLOUR_PATTERN = "#([0-9a-fA-F]{6}|[0-9a-fA-F]{8})"

FIELD_PROBLEM = "field_problem"
"""The type of an error about a whole model; its context names the `field` that it comes down to."""


def _field_problem(field: str, message: str) -> PydanticCustomError:
    return PydanticCustomError(FIELD_PROBLEM, "{field}: {message}", {"field": field, "message": message})


def _matching(pattern: str, otherwise: str) -> AfterValidator:
    """Lets a text pass, in lower case, that matches `pattern`; `otherwise` says in words what it must be."""
    compiled = re.compile(pattern)

    def checked(text: str) -> str:
        if compiled.fullmatch(text) is None:
            raise PydanticCustomError("pattern", "{otherwise}", {"otherwise": otherwise})
        return text.lower()

    return AfterValidator(checked)


def _kind_of_gravity(value: Any) -> str:
    return "focal point" if isinstance(value, FocalPoint | dict) else "compass point"


def _as_int(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value


WHOLE = BeforeValidator(_as_int)
"""Takes 3.0 for 3: JSON has one kind of number, and to JSON Schema both are integers
(https://json-schema.org/draft/2020-12/json-schema-core#section-4.2.3)."""


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class FocalPoint(_Model):
    """The point of the picture that matters, in shares of its width and height from the top left corner."""

    x: Annotated[float, Strict(), Field(ge=0, le=1)]
    y: Annotated[float, Strict(), Field(ge=0, le=1)]


type Compass = Literal["centre", "north", "northeast", "east", "southeast", "south", "southwest", "west", "northwest"]

type Gravity = Annotated[
    Annotated[Compass, Tag("compass point")] | Annotated[FocalPoint, Tag("focal point")],
    Discriminator(_kind_of_gravity),
]
type Side = Annotated[int, Strict(), Field(ge=1, le=MAX_SIDE_PIXELS), WHOLE]


def _sides(*names: str) -> dict[str, Any]:
    """That these sides are given, in JSON Schema."""
    return {"required": list(names), "properties": {name: {"type": "integer"} for name in names}}


class VariantSpec(_Model):
    """One variant: a box, how the picture meets it, and the file that it becomes.

    A side that is not given is free, up to 8192 pixels. What `fit` does, and how far without `enlarge`:

    - `inside`: the whole picture, its shape kept, as big as the box allows; never larger than the source.
    - `cover`: fills the box, what is too much is cut off; the box shrinks in its own shape until nothing is enlarged.
    - `contain`: the whole picture in a box of exactly that size, the rest filled with `background`; the picture is not
      enlarged, the box stays.
    - `exact`: stretched to the box; the box shrinks in its own shape until nothing is enlarged.

    `gravity` says what stays of the picture (`cover`) or where it sits (`contain`). `background` also shows through
    transparency where the format has none. `format` `auto` is PNG where something in the variant is transparent, JPEG
    elsewhere. `quality` is the encoder's own scale, null its default (`DEFAULT_QUALITY`); PNG ignores it. `effort` null
    is the lane's. `max_bytes` is a ceiling: the quality is lowered until the file is under it, then the size.
    """

    # What `_has_the_sides_that_it_needs` checks.
    model_config = ConfigDict(
        json_schema_extra={
            "anyOf": [_sides("width"), _sides("height")],
            "if": {"properties": {"fit": {"const": "inside"}}},
            "else": _sides("width", "height"),
        }
    )
    name: Annotated[
        str,
        _matching(VARIANT_NAME_PATTERN, "must be 1 to 32 of a-z, 0-9, - and _, beginning with a letter"),
        Field(json_schema_extra={"pattern": f"^{VARIANT_NAME_PATTERN}$"}),
    ]
    width: Side | None = None
    height: Side | None = None
    fit: Literal["inside", "cover", "contain", "exact"] = "inside"
    gravity: Gravity = "centre"
    enlarge: Annotated[bool, Strict()] = False
    background: Annotated[
        str,
        _matching(_COLOUR_PATTERN, "must be a colour: #7a8b5c, or #7a8b5cff with its alpha"),
        Field(json_schema_extra={"pattern": f"^{_COLOUR_PATTERN}$"}),
    ] = "#ffffff"
    format: Literal["auto", "jpeg", "png", "webp", "avif"] = "auto"
    quality: Annotated[int, Strict(), Field(ge=1, le=100), WHOLE] | None = None
    effort: Effort | None = None
    max_bytes: Annotated[int, Strict(), Field(ge=1024), WHOLE] | None = None

    @model_validator(mode="after")
    def _has_the_sides_that_it_needs(self) -> Self:
        if self.width is None and self.height is None:
            raise _field_problem("width", "is missing, and so is height: give one or both")
        if self.fit != "inside" and (self.width is None or self.height is None):
            missing = "width" if self.width is None else "height"
            raise _field_problem(missing, f"is missing: fit {self.fit} needs a width and a height")
        return self

    @property
    def box(self) -> tuple[int, int]:
        """Width and height that the variant keeps to, whatever the source: a side that is not given ends at 8192."""
        return self.width or MAX_SIDE_PIXELS, self.height or MAX_SIDE_PIXELS

    @property
    def work_pixels(self) -> int:
        """The most pixels that the variant can have, times what each costs to make compared with one of a WebP."""
        width, height = self.box
        work = width * height * _WORK_OF_FORMAT[self.format]
        if self.effort == "small":
            work *= _WORK_OF_SMALL
        if self.max_bytes is not None:
            work *= _WORK_OF_CEILING
        return math.ceil(work)


class Recipe(_Model):
    """The variants of one image, each under a name of its own.

    A row's recipe is read as it was written; `MAX_WORK_PIXELS` binds whoever writes a new one (`written_recipes`).
    """

    model_config = ConfigDict(
        json_schema_extra={
            "description": "The variants of one image, each under a name of its own. They may come to "
            f"{MAX_WORK_PIXELS / 1e6:.1f} megapixels of work. {COUNTED_AS}"
        }
    )
    variants: Annotated[tuple[VariantSpec, ...], Field(min_length=1, max_length=MAX_VARIANTS)]

    @model_validator(mode="after")
    def _names_differ(self) -> Self:
        seen: set[str] = set()
        for index, variant in enumerate(self.variants):
            if variant.name in seen:
                raise _field_problem(f"variants.{index}.name", f"two variants share the name {variant.name}")
            seen.add(variant.name)
        return self

    @property
    def work_pixels(self) -> int:
        """What all variants come to."""
        return sum(variant.work_pixels for variant in self.variants)

    def digest(self) -> str:
        """SHA-256 of the recipe in its one JSON form, in hexadecimal: equal recipes have equal digests.

        Fields that are as by default are left out, so that a field that a later version adds changes no digest.
        """
        return hashlib.sha256(self.model_dump_json(exclude_defaults=True).encode()).hexdigest()

    def choose(self, names: Iterable[str]) -> Recipe:
        """The recipe of those variants alone, in its own order.

        Raises Rejected (`unknown_variants`), naming those there are, where a name is unknown or none is given.
        """
        wanted = set(names)
        known = [variant.name for variant in self.variants]
        unknown = sorted(wanted.difference(known))
        if unknown or not wanted:
            told = f"There is no variant {unknown[0][:32]!r}" if unknown else "No variant is named"
            raise Rejected("unknown_variants", f"{told}. Known variants: {', '.join(known)}.")
        return Recipe(variants=tuple(variant for variant in self.variants if variant.name in wanted))
