"""Recipes: which variants an image is developed into, and the limits of a request."""

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

from darkroom.domain.kernel.errors import Rejected
from darkroom.domain.kernel.ids import IMAGE_ID_PATTERN
from darkroom.domain.kernel.lanes import Effort

type OutputFormat = Literal["jpeg", "png", "webp", "avif", "gif"]

type Animation = Literal["keep", "first", "poster"]
"""What becomes of an animation: it stays one, or a picture of its first frame, or of the first that is not one
colour."""

DEFAULT_QUALITY: dict[OutputFormat, int] = {"jpeg": 80, "webp": 80, "avif": 60}
"""The quality of a variant that states none, on each encoder's own scale; PNG and GIF have no quality."""

MAX_VARIANTS = 16

MAX_SIDE_PIXELS = 8192
"""The longest side of a variant. WebP itself ends at 16383 (RFC 9649)."""

MAX_WORK_PIXELS = 4096 * 4096
"""The most work of one recipe's variants, each counted by `VariantSpec.work_pixels`: one WebP of 4096 a side.

The worker has 60 s and 1769 MB. Measured on one core, with the most work that is allowed: a photo takes 2 to 5 s in
every format and effort; noise under a noisy alpha, the worst possible picture, takes at most 25 s (AVIF) and 1.1 GB
(WebP, and GIF, whose pixels are cheap but of which there may be twice as many).
"""

WORK_OF_FORMAT: dict[str, float] = {
    "jpeg": 0.25,
    "auto": 0.5,
    "png": 0.5,
    "gif": 0.5,  # guard: recipes-gif-memory-cost
    "webp": 1,
    "avif": 2,
    "best": 3.25,  # guard: recipes-best-format-cost
    "negotiated": 3.25,  # guard: recipes-negotiated-format-cost
}
"""The cost of a pixel in each format compared with WebP, in the worst case; `auto` may be PNG, `best` and `negotiated`
are all of JPEG, WebP and AVIF."""

_WORK_OF_SMALL = 8
"""Noise takes AVIF eight times as long at speed 4 as at speed 6."""

_WORK_OF_CEILING = 4
"""Up to eight encodings, each coarser or smaller than the previous one and so less work."""

COUNTED_AS = (
    f"A variant's work is width times height (a missing side counts as {MAX_SIDE_PIXELS}), times a quarter for JPEG, "
    "a half for PNG, GIF and auto, 1 for WebP, 2 for AVIF, 3.25 for best and negotiated; "
    f"effort small multiplies it by {_WORK_OF_SMALL}, max_bytes by {_WORK_OF_CEILING}. "
    "Sharpen and blur add an eighth of the pixels each, and each overlay a half times its scale, or times 1 with tile; "
    "trim or crop adds 2 megapixels, and so do regions, with half a megapixel for each, and each image that is an "
    "overlay."
)
"""How `VariantSpec.work_pixels` counts, in words for a client that asked for too much."""

ATTENTION: Literal["attention"] = "attention"
"""The gravity whose point is found in the picture, where it stands out (`darkroom.imaging.attention`)."""

POINT_STEPS = 10_000
"""How finely a point that was found is told: in ten-thousandths of a side."""

VARIANT_NAME_PATTERN = "[a-z][a-z0-9_-]{0,31}"
"""The pattern of a name in a recipe."""

STORED_NAME_PATTERN = rf"{VARIANT_NAME_PATTERN}(\.(webp|avif))?"
"""The pattern of the name of a variant that is there: one of format `negotiated` is three (`VariantSpec.made`)."""

MAX_REGIONS = 16

_WORK_OF_FILTER = 0.125
"""What sharpening or blurring a pixel costs: 0.3 s for 4096 a side with alpha, an eighth of what WebP takes."""

_WORK_OF_PASS = 2_000_000
"""What a trim or a crop costs, and what regions do: they may decode the original once more, up to 2 s for the slowest
PNG. So may an image that is an overlay."""

_WORK_OF_REGION = 500_000
"""What each region costs besides: 0.6 s for one that covers 52 megapixels."""

MAX_OVERLAYS = 4
"""How many overlays a variant may have, and how many images the overlays of a recipe may be."""

WORK_OF_OVERLAY = 0.5
"""What laying a picture over a pixel costs: 1.1 to 1.6 s for 4096 a side with alpha, half of what WebP takes."""

EDGE = "edge"
"""The background that takes the colour of the picture's edge."""

_BACKGROUND_PATTERN = f"({EDGE}|#([0-9a-fA-F]{{6}}|[0-9a-fA-F]{{8}}))"

FIELD_PROBLEM = "field_problem"
"""The type of an error about a whole model; its context names the `field` that is to blame."""


def _field_problem(field: str, message: str) -> PydanticCustomError:
    return PydanticCustomError(FIELD_PROBLEM, "{field}: {message}", {"field": field, "message": message})


def _matching(pattern: str, otherwise: str) -> AfterValidator:
    """Accepts text, in lower case, that matches `pattern`; `otherwise` says in words what it must be."""
    compiled = re.compile(pattern)

    def checked(text: str) -> str:
        if compiled.fullmatch(text) is None:
            raise PydanticCustomError("pattern", "{otherwise}", {"otherwise": otherwise})
        return text.lower()

    return AfterValidator(checked)


def _kind_of_gravity(value: Any) -> str:
    if value == ATTENTION:
        return ATTENTION
    return "focal point" if isinstance(value, FocalPoint | dict) else "compass point"


def _as_int(value: Any) -> Any:
    if isinstance(value, bool):
        return str(value)  # to Python it is 0 or 1, and to JSON no number
    return int(value) if isinstance(value, float) and value.is_integer() else value


WHOLE = BeforeValidator(_as_int)
"""Takes 3.0 for 3: JSON has one kind of number, and to JSON Schema both are integers
(https://json-schema.org/draft/2020-12/json-schema-core#section-4.2.3)."""


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class FocalPoint(_Model):
    """The point of the picture that matters, in fractions of its width and height from the top left corner.

    For a crop it is a point of the upright picture before any edit, and edits move it along.
    """

    x: Annotated[float, Strict(), Field(ge=0, le=1)]
    y: Annotated[float, Strict(), Field(ge=0, le=1)]


class Crop(_Model):
    """The part of the picture that all outputs show, in fractions of the upright picture before any other edit.

    It is rounded outwards to whole pixels, and what reaches beyond the picture is cut off.
    """

    x: Annotated[float, Strict(), Field(ge=0, lt=1)]
    y: Annotated[float, Strict(), Field(ge=0, lt=1)]
    width: Annotated[float, Strict(), Field(gt=0, le=1)]
    height: Annotated[float, Strict(), Field(gt=0, le=1)]


class Region(_Model):
    """A part of the picture that no output shows, in fractions of the upright picture before any other edit.

    It is rounded outwards to whole pixels, and what reaches beyond the picture is cut off. `pixelate` and `blur` leave
    at most 8 by 8 mean colours of it, as squares or smoothed, each of at least 8 by 8 pixels: a smaller region is
    widened to that. `fill` leaves nothing: it is black.
    """

    x: Annotated[float, Strict(), Field(ge=0, lt=1)]
    y: Annotated[float, Strict(), Field(ge=0, lt=1)]
    width: Annotated[float, Strict(), Field(gt=0, le=1)]
    height: Annotated[float, Strict(), Field(gt=0, le=1)]
    effect: Literal["blur", "pixelate", "fill"]


type Compass = Literal["centre", "north", "northeast", "east", "southeast", "south", "southwest", "west", "northwest"]

type Gravity = Annotated[
    Annotated[Compass, Tag("compass point")]
    | Annotated[Literal["attention"], Tag(ATTENTION)]
    | Annotated[FocalPoint, Tag("focal point")],
    Discriminator(_kind_of_gravity),
]
type Side = Annotated[int, Strict(), Field(ge=1, le=MAX_SIDE_PIXELS), WHOLE]


class Overlay(_Model):
    """Another image of the same tenant, laid over a variant: a watermark, a logo.

    `scale` is its share of the variant's width, in its own shape; it is enlarged if need be, and never higher than the
    variant. `margin` is its distance from the side or corner that `gravity` names, and between the tiles of `tile`, as
    a share of the variant's shorter side. `tile` repeats it over the whole variant, from where it stands alone.
    `opacity` multiplies its alpha.
    """

    image: Annotated[
        str,
        _matching(IMAGE_ID_PATTERN, "must be the id of an image"),
        Field(json_schema_extra={"pattern": f"^{IMAGE_ID_PATTERN}$"}),
    ]
    gravity: Compass = "southeast"
    margin: Annotated[float, Strict(), Field(ge=0, le=0.5)] = 0.03
    scale: Annotated[float, Strict(), Field(ge=0.01, le=1)] = 0.25
    opacity: Annotated[float, Strict(), Field(ge=0, le=1)] = 1.0
    tile: Annotated[bool, Strict()] = False


def _sides(*names: str) -> dict[str, Any]:
    """JSON Schema that requires these sides."""
    return {"required": list(names), "properties": {name: {"type": "integer"} for name in names}}


_MOVING = ("auto", "webp", "gif")
"""The formats of a variant that keeps an animation."""


class VariantSpec(_Model):
    """One variant: a box, how the picture fits it, and the output file.

    A missing side is free, up to 8192 pixels. What `fit` does, and its limits without `enlarge`:

    - `inside`: the whole picture, in its own shape, as large as the box allows; never larger than the source.
    - `cover`: fills the box and crops the excess; the box shrinks in its own shape until nothing is enlarged.
    - `contain`: the whole picture in a box of exactly that size, the rest filled with `background`; the picture is not
      enlarged, the box keeps its size.
    - `exact`: stretched to the box; the box shrinks in its own shape until nothing is enlarged.

    `gravity` says which part of the picture stays (`cover`) or where it sits (`contain`); `attention`, for `cover`
    alone, is the point that stands out, which is found in the picture. `background` also shows
    through transparency if the format has none; `edge` is the median colour of the picture's sides that meet the fill.
    `blur` and `sharpen` are the standard deviations, in the variant's pixels, of a Gaussian blur and of the one that an
    unsharp mask takes away; the picture is blurred first, and the fill never. `overlays` are laid over all that, each
    over those before it. `format` `auto` is PNG if something in the whole picture or its fill is transparent, otherwise
    JPEG; `best` is the smallest of JPEG, WebP and AVIF that look alike, without JPEG where `auto` is PNG; `negotiated`
    is all three, as three variants: `name`, `name.webp` and `name.avif`. `quality` is on the encoder's own scale, and
    on JPEG's for `best` and `negotiated`; null means its default (`DEFAULT_QUALITY`); PNG and GIF ignore it. `effort`
    null means the lane's. `max_bytes` is a ceiling: the quality is lowered until the file is under it,
    then the size.

    `animation` says what becomes of an animated GIF, WebP or PNG: `first` is its first frame, `poster` its first frame
    that is not one colour, `keep` an animation, for which `auto` is WebP. A still is the same with each of them.
    """

    # The rule that `_has_the_sides_that_it_needs` checks.
    model_config = ConfigDict(
        json_schema_extra={
            "anyOf": [_sides("width"), _sides("height")],
            "if": {"properties": {"fit": {"const": "inside"}}},
            "else": _sides("width", "height"),
            # The rules that `_crops_by_attention`, `_has_an_edge_to_fill_from` and `_can_move` check.
            "allOf": [
                {
                    "if": {"properties": {"gravity": {"const": "attention"}}, "required": ["gravity"]},
                    "then": {"properties": {"fit": {"const": "cover"}}, "required": ["fit"]},
                },
                {
                    "if": {"properties": {"background": {"const": EDGE}}, "required": ["background"]},
                    "then": {"properties": {"fit": {"const": "contain"}}, "required": ["fit"]},
                },
                {
                    "if": {"properties": {"animation": {"const": "keep"}}, "required": ["animation"]},
                    "then": {"properties": {"format": {"enum": [*_MOVING]}, "max_bytes": {"type": "null"}}},
                    "else": {"properties": {"format": {"not": {"const": "gif"}}}},
                },
            ],
        }
    )
    name: Annotated[
        str,
        _matching(VARIANT_NAME_PATTERN, "must be 1 to 32 of a-z, 0-9, - and _, starting with a letter"),
        Field(json_schema_extra={"pattern": f"^{VARIANT_NAME_PATTERN}$"}),
    ]
    width: Side | None = None
    height: Side | None = None
    fit: Literal["inside", "cover", "contain", "exact"] = "inside"
    gravity: Gravity = "centre"
    enlarge: Annotated[bool, Strict()] = False
    background: Annotated[
        str,
        _matching(_BACKGROUND_PATTERN, f"must be a colour: #7a8b5c, or #7a8b5cff with alpha; or {EDGE}"),
        Field(json_schema_extra={"pattern": f"^{_BACKGROUND_PATTERN}$"}),
    ] = "#ffffff"
    format: Literal["auto", "jpeg", "png", "webp", "avif", "gif", "best", "negotiated"] = "auto"
    quality: Annotated[int, Strict(), Field(ge=1, le=100), WHOLE] | None = None
    effort: Effort | None = None
    max_bytes: Annotated[int, Strict(), Field(ge=1024), WHOLE] | None = None
    blur: Annotated[float, Strict(), Field(ge=0.5, le=50)] | None = None
    sharpen: Annotated[float, Strict(), Field(ge=0.5, le=10)] | None = None
    animation: Animation = "first"
    overlays: Annotated[tuple[Overlay, ...], Field(max_length=MAX_OVERLAYS)] = ()

    @model_validator(mode="after")
    def _has_the_sides_that_it_needs(self) -> Self:
        if self.width is None and self.height is None:
            raise _field_problem("width", "is missing, and so is height: give one or both")
        if self.fit != "inside" and (self.width is None or self.height is None):
            missing = "width" if self.width is None else "height"
            raise _field_problem(missing, f"is missing: fit {self.fit} needs a width and a height")
        return self

    @model_validator(mode="after")
    def _crops_by_attention(self) -> Self:
        if self.gravity == ATTENTION and self.fit != "cover":  # guard: attention-crop-only
            raise _field_problem("gravity", f"attention chooses what a crop keeps, and fit {self.fit} crops nothing")
        return self

    @model_validator(mode="after")
    def _has_an_edge_to_fill_from(self) -> Self:
        if self.background == EDGE and self.fit != "contain":
            raise _field_problem("background", f"{EDGE} is for fit contain alone: give a colour")
        return self

    @model_validator(mode="after")
    def _can_move(self) -> Self:
        if self.animation != "keep":
            if self.format == "gif":
                raise _field_problem("format", "gif needs animation keep: for a still take webp or png")
        elif self.format not in _MOVING:  # guard: animation-still-format-refused
            raise _field_problem("animation", f"cannot be keep with format {self.format}: take auto, webp or gif")
        elif self.max_bytes is not None:
            raise _field_problem("max_bytes", "is not possible with animation keep: lower the size or the quality")
        return self

    @property
    def made(self) -> tuple[VariantSpec, ...]:
        """What becomes of it: itself, or the JPEG of its own name, the WebP and the AVIF of format `negotiated`."""
        if self.format != "negotiated":
            return (self,)
        names: dict[OutputFormat, str] = {
            "jpeg": self.name,
            "webp": f"{self.name}.webp",
            "avif": f"{self.name}.avif",
        }
        return tuple(
            self.model_copy(update={"name": name, "format": file_format}) for file_format, name in names.items()
        )

    @property
    def box(self) -> tuple[int, int]:
        """The most width and height of the variant, whatever the source: a missing side ends at 8192."""
        return self.width or MAX_SIDE_PIXELS, self.height or MAX_SIDE_PIXELS

    @property
    def work_pixels(self) -> int:
        """The most pixels that the variant can have, times the cost of each compared with a pixel of WebP."""
        return self.work_of(*self.box)

    def work_of(self, width: int, height: int) -> int:
        """The same of the variant as a still of that size."""
        work = width * height * WORK_OF_FORMAT[self.format]
        if self.effort == "small":
            work *= _WORK_OF_SMALL
        if self.max_bytes is not None:
            work *= _WORK_OF_CEILING
        work += width * height * _WORK_OF_FILTER * ((self.blur is not None) + (self.sharpen is not None))
        work += width * height * WORK_OF_OVERLAY * self.covered  # guard: overlays-counted-as-work
        return math.ceil(work)

    @property
    def covered(self) -> float:
        """How many times over the overlays cover the variant at most."""
        return sum(1 if overlay.tile else overlay.scale for overlay in self.overlays)


class Recipe(_Model):
    """The variants of one image, each with its own name, and the edits of the whole picture that come before them.

    The order is always the same: the picture is made upright (EXIF), `regions` are hidden, it is cut to `crop`, turned
    clockwise (`rotate`), mirrored (`flip`) and trimmed, then scaled and cropped for each variant. `trim` cuts off the
    border: the rows and columns at the sides in which every pixel differs from the top left one by at most that many of
    255 levels in each channel.

    A row's recipe is read as it was written; `MAX_WORK_PIXELS` only limits new ones (`written_recipes`).
    """

    model_config = ConfigDict(
        json_schema_extra={
            "description": "The variants of one image, each with its own name, and edits of the whole picture: at most "
            f"{MAX_WORK_PIXELS / 1e6:.1f} megapixels of work in all. {COUNTED_AS}"
        }
    )
    variants: Annotated[tuple[VariantSpec, ...], Field(min_length=1, max_length=MAX_VARIANTS)]
    metadata: Annotated[
        Literal["none", "copyright"],
        Field(
            description="What of the original's metadata the variants carry: nothing, or its author, copyright notice, "
            "credit line, source, usage terms and the URLs of its licence, read and written anew."
        ),
    ] = "none"
    regions: Annotated[tuple[Region, ...], Field(max_length=MAX_REGIONS)] = ()
    crop: Crop | None = None
    rotate: Annotated[Literal[0, 90, 180, 270], WHOLE] = 0
    flip: Literal["horizontal", "vertical", "both"] | None = None
    trim: Annotated[int, Strict(), Field(ge=0, le=128), WHOLE] | None = None

    @model_validator(mode="after")
    def _names_differ(self) -> Self:
        seen: set[str] = set()
        for index, variant in enumerate(self.variants):
            if variant.name in seen:
                raise _field_problem(f"variants.{index}.name", f"two variants share the name {variant.name}")
            seen.add(variant.name)
        return self

    @model_validator(mode="after")
    def _has_few_overlay_images(self) -> Self:
        if len(self.overlay_images) > MAX_OVERLAYS:  # guard: overlays-per-recipe-bound
            message = (
                f"the overlays are {len(self.overlay_images)} different images; at most {MAX_OVERLAYS} are allowed"
            )
            raise _field_problem("variants", message)
        return self

    @property
    def made_names(self) -> tuple[str, ...]:
        """The names of the variants that are made, in order."""
        return tuple(made.name for variant in self.variants for made in variant.made)

    @property
    def overlay_images(self) -> tuple[str, ...]:
        """The ids of the images that overlays are, each once, in order."""
        return tuple(dict.fromkeys(overlay.image for variant in self.variants for overlay in variant.overlays))

    @property
    def work_pixels(self) -> int:
        """The total work of all variants and edits."""
        passes = bool(self.regions) + (self.crop is not None or self.trim is not None) + len(self.overlay_images)
        edits = passes * _WORK_OF_PASS + len(self.regions) * _WORK_OF_REGION  # guard: recipes-edits-counted-as-work
        return sum(variant.work_pixels for variant in self.variants) + edits

    def digest(self) -> str:
        """SHA-256 of the recipe in its one JSON form, in hexadecimal: equal recipes have equal digests.

        Fields with their default values are left out, so that a field that a later version adds changes no digest.
        """
        return hashlib.sha256(self.model_dump_json(exclude_defaults=True).encode()).hexdigest()

    def choose(self, names: Iterable[str]) -> Recipe:
        """The recipe with only those variants, in its own order, and everything else that it says.

        Raises Rejected (`unknown_variants`), naming the known ones, if a name is unknown or none is given.
        """
        wanted = set(names)
        known = [variant.name for variant in self.variants]
        unknown = sorted(wanted.difference(known))
        if unknown or not wanted:
            problem = f"There is no variant {unknown[0][:32]!r}" if unknown else "No variant is named"
            raise Rejected("unknown_variants", f"{problem}. Known variants: {', '.join(known)}.")
        chosen = tuple(variant for variant in self.variants if variant.name in wanted)
        return self.model_copy(update={"variants": chosen})  # guard: recipes-edits-kept
