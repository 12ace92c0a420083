"""What every request in JSON for an image has: how to develop it, and when. Requests are checked by these types, and
openapi.json describes them by the same."""

import json
from collections.abc import Mapping
from functools import cached_property
from typing import Annotated, Any, NotRequired, TypedDict

from pydantic import ConfigDict, TypeAdapter, ValidationError, ValidatorFunctionWrapHandler, WrapValidator
from pydantic_core import PydanticKnownError

from darkroom.domain.images.annotations import Annotations, metadata_of, reference_of, tags_of
from darkroom.domain.images.order import Order, order_of
from darkroom.domain.kernel.field_problems import FieldProblem, InvalidFields, problems_of
from darkroom.domain.kernel.sizes import excess_in_words
from darkroom.domain.recipes.recipes import Recipe
from darkroom.http.images.documents import WebhookId
from darkroom.http.images.order_fields import (
    BatchId,
    Metadata,
    PresetName,
    PresetVariants,
    Reference,
    Tags,
    VisibilityName,
    WrittenDuration,
    WrittenInstant,
)
from darkroom.http.kernel.timetables import read_timetable

MAX_ORDER_BYTES = 32_768
"""Four times the longest recipe and the longest metadata, so that indented ones fit, and the longest URL beside them,
reference and tags."""


def _text(value: Any, described: ValidatorFunctionWrapHandler) -> str:
    del described
    if not isinstance(value, str):
        raise PydanticKnownError("string_type")
    return value


def _object(value: Any, described: ValidatorFunctionWrapHandler) -> dict[str, Any]:
    del described
    if not isinstance(value, dict):
        raise PydanticKnownError("dict_type")
    return value


def _texts(value: Any, described: ValidatorFunctionWrapHandler) -> Any:
    return described(value) if value != [] else value


# What the domain reads, and refuses in its own words, is only checked for its kind here.
NOTIFY: Any = Annotated[WebhookId, WrapValidator(_text)]
RECIPE: Any = Annotated[Recipe, WrapValidator(_object)]
VARIANTS: Any = Annotated[PresetVariants, WrapValidator(_texts)]

STRICT = ConfigDict(extra="forbid", strict=True)


class OrderFields(TypedDict):
    """How to develop an image, and when."""

    __pydantic_config__ = STRICT  # type: ignore[misc]
    preset: NotRequired[PresetName | None]
    variants: NotRequired[VARIANTS | None]
    recipe: NotRequired[RECIPE | None]
    process_at: NotRequired[WrittenInstant | None]
    delay: NotRequired[WrittenDuration | None]
    expires_at: NotRequired[WrittenInstant | None]
    notify: NotRequired[NOTIFY | None]
    batch: NotRequired[BatchId | None]
    reference: NotRequired[Reference | None]
    tags: NotRequired[Tags | None]
    metadata: NotRequired[Metadata | None]
    visibility: NotRequired[VisibilityName | None]


class RequestReader[Request]:
    """Reads requests of type `kind`, a TypedDict, in a body's JSON. What is wrong with one is refused with `code` and
    `sentence`, by field, where `body` names the whole document; `patterns` say in words what a field's pattern asks
    for."""

    def __init__(
        self, kind: type[Request], *, code: str, sentence: str, patterns: Mapping[str, str] | None = None
    ) -> None:
        self._kind = kind
        self._code, self._sentence, self._patterns = code, sentence, patterns

    @cached_property
    def _adapter(self) -> TypeAdapter[Request]:
        # Made for the first request that needs it: most uploads have no JSON. So the annotations of such types are
        # evaluated where they stand, and their modules have no `from __future__ import annotations`.
        return TypeAdapter(self._kind)

    def read(self, body: bytes) -> Request:
        """The request. Raises InvalidFields."""
        if len(body) > MAX_ORDER_BYTES:
            message = f"has {excess_in_words(len(body), MAX_ORDER_BYTES)} are allowed"
            raise self.refusal(FieldProblem(field="body", message=message))
        try:
            return self._adapter.validate_json(body)
        except ValidationError as error:
            raise self.refusal(
                *problems_of(error, known=tuple(self._kind.__annotations__), patterns=self._patterns)
            ) from error

    def refusal(self, *problems: FieldProblem) -> InvalidFields:
        """The refusal of a request for these problems."""
        return InvalidFields(self._code, self._sentence, problems)


def order_in(parameters: Mapping[str, Any]) -> Order:
    """The order in a request's parameters, as they stand in a query or in JSON. Raises Rejected, as `order_of` and
    `read_timetable` do, and for a client's own words (`invalid_reference`, `invalid_tags`, `invalid_metadata`)."""
    variants, recipe = parameters.get("variants"), parameters.get("recipe")
    return order_of(
        preset=parameters.get("preset"),
        variants=",".join(variants) if isinstance(variants, list) else variants,
        recipe=json.dumps(recipe, separators=(",", ":")) if isinstance(recipe, dict) else recipe,
        notify=parameters.get("notify"),
        batch=parameters.get("batch"),
        on_duplicate=parameters.get("on_duplicate"),
        timetable=read_timetable(**{name: parameters.get(name) for name in ("process_at", "delay", "expires_at")}),
        annotations=_annotations_in(parameters),
        visibility=parameters.get("visibility"),
    )


def _annotations_in(parameters: Mapping[str, Any]) -> Annotations:
    reference, tags, metadata = (parameters.get(name) for name in ("reference", "tags", "metadata"))
    return Annotations(
        reference=None if reference is None else reference_of(reference),
        tags=() if tags is None else tags_of(tags.split(",") if isinstance(tags, str) else tags),
        metadata=None if metadata is None else metadata_of(metadata),
    )
