"""The route that edits an image, and what is read of its request's JSON, with every problem reported by field."""

import json
from http import HTTPStatus
from typing import Annotated, Literal, NotRequired, TypedDict

from pydantic import Field

from darkroom.domain.kernel.sizes import limit_in_words
from darkroom.domain.recipes.edits import Edits
from darkroom.domain.recipes.recipes import WHOLE, Crop, FocalPoint
from darkroom.domain.recipes.written_recipes import recipe_from_json
from darkroom.http.images.documents import StatusDocument
from darkroom.http.images.order_fields import IDEMPOTENCY_KEY
from darkroom.http.images.request_models import MAX_ORDER_BYTES, RECIPE, STRICT, RequestReader
from darkroom.http.images.routes import ID
from darkroom.http.kernel.headers import LOCATION_OF_STATUS, REPLAYED, RETRY_AFTER
from darkroom.http.kernel.route import Body, Route, RouteAnswer


class EditFields(TypedDict):
    """All that is to be edited: what is left out, or null, is as the image was uploaded."""

    __pydantic_config__ = STRICT  # type: ignore[misc]
    crop: NotRequired[Crop | None]
    focus: Annotated[
        NotRequired[FocalPoint | None],
        Field(description="What all variants that are crops keep: a point of the upright picture before any edit."),
    ]
    rotate: NotRequired[Annotated[Literal[0, 90, 180, 270], WHOLE] | None]
    flip: NotRequired[Literal["none", "horizontal", "vertical", "both"] | None]
    recipe: Annotated[
        NotRequired[RECIPE | None], Field(description="Other variants in the place of those it was uploaded for.")
    ]


POST_EDIT = Route(
    method="POST",
    path="/images/{id}/edits",
    name="editImage",
    summary="Edit an image",
    description=(
        "Makes all variants of an image again, by these edits in the place of all earlier ones. The edit that was "
        "accepted last is the one that is shown in the end: those before it that are not begun are skipped. The "
        "present variants are served meanwhile. `edit` in its status tells how far the last one is. If it fails, the "
        "image stays as it is."
    ),
    parameters=(ID, IDEMPOTENCY_KEY),
    body=Body(
        description=f"The edits, in at most {limit_in_words(MAX_ORDER_BYTES)}.",
        media_types=("application/json",),
        kind=EditFields,
        examples={
            "crop": {"crop": {"x": 0.1, "y": 0, "width": 0.8, "height": 1}, "rotate": 90},
            "focus": {"focus": {"x": 0.4, "y": 0.3}},
            "none": {},
        },
    ),
    answers=(
        RouteAnswer(
            status=HTTPStatus.ACCEPTED,
            description="The edit has its number, and will be made unless another one overtakes it.",
            kind=StatusDocument,
            headers=(LOCATION_OF_STATUS, RETRY_AFTER, REPLAYED),
        ),
    ),
    problems=(
        "unreadable_body",
        "unsupported_media_type",
        "invalid_edit",
        "invalid_recipe",
        "too_many_variants",
        "unknown_image",
        "unknown_path",
        "not_done",
        "quota_exceeded",
        "invalid_idempotency_key",
        "idempotency_key_reused",
        "too_many_requests",
        "overloaded",
        "unavailable",
    ),
    is_rate_limited=True,
)

_reader = RequestReader(EditFields, code="invalid_edit", sentence="The edit is invalid.")


def read_edits(body: bytes) -> Edits:
    """The edits in a request's JSON. Raises Rejected: `invalid_edit`, by field, or `invalid_recipe`."""
    written = _reader.read(body)
    recipe = written.get("recipe")
    whole = None if recipe is None else recipe_from_json(json.dumps(recipe, separators=(",", ":")))
    return Edits(
        crop=written.get("crop"),
        focus=written.get("focus"),
        rotate=written.get("rotate"),
        flip=written.get("flip"),
        recipe=whole,
    )
