"""Recipes: which variants an image is developed into."""

from __future__ import annotations

import hashlib
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

VariantName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_-]{0,31}$")]

MAX_SIDE_PIXELS = 8192
"""The longest side that a variant may ask for. WebP itself ends at 16383 (RFC 9649)."""


class VariantSpec(BaseModel):
    """One variant: fitted inside `width` by `height` pixels, never enlarged.

    `format` is the family of the file; `auto` follows the source: JPEG, or PNG where transparency or a palette drawing
    would be lost. `quality` (1-100) is the encoder's own scale for JPEG and WebP; PNG ignores it.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: VariantName
    width: Annotated[int, Field(ge=1, le=MAX_SIDE_PIXELS)]
    height: Annotated[int, Field(ge=1, le=MAX_SIDE_PIXELS)]
    fit: Literal["inside"] = "inside"
    format: Literal["auto", "jpeg", "png", "webp"] = "auto"
    quality: Annotated[int, Field(ge=1, le=100)] = 80


class Recipe(BaseModel):
    """The variants of one image, each under a name of its own."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    variants: Annotated[tuple[VariantSpec, ...], Field(min_length=1, max_length=16)]

    @model_validator(mode="after")
    def _names_differ(self) -> Self:
        names = [variant.name for variant in self.variants]
        if len(set(names)) != len(names):
            raise ValueError(f"two variants share a name: {', '.join(names)}")
        return self

    def digest(self) -> str:
        """SHA-256 of the recipe in its one JSON form, in hexadecimal: equal recipes have equal digests."""
        return hashlib.sha256(self.model_dump_json().encode()).hexdigest()
