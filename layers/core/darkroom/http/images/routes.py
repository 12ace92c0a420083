"""The routes of images: to upload a photo, to read, list and delete."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated

from pydantic import Field

from darkroom.domain.images.listing import LISTED_STATUSES, MAX_PAGE_IMAGES
from darkroom.domain.recipes.presets import DEFAULT_PRESET
from darkroom.domain.recipes.recipes import STORED_NAME_PATTERN, Recipe
from darkroom.http.images.documents import ImageDocument, ImageId, PageDocument, StatusDocument, WebhookId
from darkroom.http.images.list_queries import CURSOR_PATTERN, DEFAULT_PAGE_IMAGES, URLS
from darkroom.http.images.order_fields import (
    IDEMPOTENCY_KEY,
    IN_SCHEDULE,
    OF_EVERY_ORDER,
    BatchId,
    Metadata,
    OnDuplicate,
    PresetName,
    PresetVariants,
    Reference,
    Tag,
    TagsInQuery,
    VisibilityName,
    WrittenDuration,
    WrittenInstant,
    some_of,
)
from darkroom.http.kernel.headers import (
    EDGE_UNTIL,
    ENTITY_TAG,
    EXAMPLE_BATCH_ID,
    EXAMPLE_ID,
    EXAMPLE_WEBHOOK_ID,
    LOCATION_OF_STATUS,
    LOCATION_OF_VARIANT,
    PAGE_TAG,
    REPLAYED,
    RETRY_AFTER,
    RETRY_AFTER_OF_PAGE,
    RETRY_AFTER_WHILE_UNFINISHED,
)
from darkroom.http.kernel.route import Body, Parameter, Route, RouteAnswer, one_of

ID = Parameter(name="id", place="path", kind=ImageId, description="The image's id.", example=EXAMPLE_ID)


IF_NONE_MATCH = Parameter(
    name="If-None-Match",
    place="header",
    kind=str,
    description="The ETag of the client's copy: if it is current, the answer is 304.",
    example='W/"3-5984172"',
)


def _as_it_stands(kind: type) -> tuple[RouteAnswer, ...]:
    """The answers to a client that asks about an image, perhaps repeatedly."""
    headers = (ENTITY_TAG, RETRY_AFTER_WHILE_UNFINISHED)
    return (
        RouteAnswer(status=HTTPStatus.OK, description="The image in its current state.", kind=kind, headers=headers),
        RouteAnswer(status=HTTPStatus.NOT_MODIFIED, description="The client's copy is current.", headers=headers),
    )


PHOTO = Body(
    description="The file's bytes, at most 4 MiB; or a form with the bytes in its one part, `file`.",
    media_types=(
        "image/jpeg",
        "image/png",
        "image/webp",
        "image/gif",
        "application/octet-stream",
        "multipart/form-data",
    ),
)
"""The bytes of a photo."""

PROMISE = (
    "promises to develop it. Its bytes decide its format, not its name or media type; but sent as text (text/*, "
    "application/xml) it is damaged on its way, and refused with 415. Send an Idempotency-Key, so that the request can "
    "be repeated safely."
)
"""What is done with a photo that is accepted."""

POST_IMAGE = Route(
    method="POST",
    path="/images",
    name="postImage",
    summary="Upload a photo",
    description=f"Accepts a photo and {PROMISE}",
    parameters=(
        Parameter(
            name="preset",
            place="query",
            kind=PresetName,
            description=f"A recipe by its name; `{DEFAULT_PRESET}` by default, unless there is a `recipe`.",
            example=DEFAULT_PRESET,
        ),
        Parameter(
            name="variants",
            place="query",
            kind=PresetVariants,
            description="Only these of the preset's variants.",
            example=["thumb", "webp"],
        ),
        Parameter(
            name="recipe",
            place="query",
            kind=Recipe,
            media_type="application/json",
            description="The client's own recipe, in at most 4 KiB, instead of `preset` and `variants`.",
            example={
                "variants": [{"name": "card", "width": 600, "height": 400, "fit": "cover", "format": "webp"}],
                "rotate": 90,
            },
        ),
        Parameter(
            name="process_at",
            place="query",
            kind=WrittenInstant,
            description=f"Process the image no earlier than this instant, {IN_SCHEDULE}; write a plus sign as %2B.",
            example="2027-03-01T09:00:00Z",
        ),
        Parameter(
            name="delay",
            place="query",
            kind=WrittenDuration,
            description=f"Process the image no earlier than this long from now, {IN_SCHEDULE}, instead of "
            "`process_at`: weeks, days, T, hours, minutes, seconds.",
            example="P2DT12H",
        ),
        Parameter(
            name="expires_at",
            place="query",
            kind=WrittenInstant,
            description="An image that no worker has begun by then becomes `expired`.",
            example="2027-03-02T09:00:00Z",
        ),
        Parameter(
            name="notify",
            place="query",
            kind=WebhookId,
            description="The only webhook that gets the events of this image, of the types that it asks for; without "
            "it, all do.",
            example=EXAMPLE_WEBHOOK_ID,
        ),
        Parameter(
            name="batch",
            place="query",
            kind=BatchId,
            description="The batch that the image joins. One with a `parallelism` says when the image begins.",
            example=EXAMPLE_BATCH_ID,
        ),
        Parameter(
            name="on_duplicate",
            place="query",
            kind=OnDuplicate,
            description="`reuse` answers with the image that an upload of the same bytes for the same recipe, with "
            "this parameter too, has made, while it is there; without an `Idempotency-Key`.",
            example="reuse",
        ),
        Parameter(
            name="reference",
            place="query",
            kind=Reference,
            description="The client's own name for the image: status documents and events have it, and lists find it.",
            example="order-17/front",
        ),
        Parameter(
            name="tags",
            place="query",
            kind=TagsInQuery,
            description="The client's own words, comma-separated, by which lists can be filtered.",
            example=["shoes", "summer 2027"],
        ),
        Parameter(
            name="metadata",
            place="query",
            kind=Metadata,
            media_type="application/json",
            description="The client's own JSON object, which status documents give back.",
            example={"shot_by": "Ada", "shelf": 17},
        ),
        Parameter(
            name="visibility",
            place="query",
            kind=VisibilityName,
            description="Whom the edge serves the image to: `private`, nobody; `public`, everybody, at permanent URLs; "
            "`signed`, who has a URL of its status document. Without it, whom the tenant usually wants.",
            example="public",
        ),
        IDEMPOTENCY_KEY,
    ),
    body=PHOTO,
    answers=(
        RouteAnswer(
            status=HTTPStatus.ACCEPTED,
            description="The photo is accepted and will be developed.",
            kind=StatusDocument,
            headers=(LOCATION_OF_STATUS, RETRY_AFTER, REPLAYED),
        ),
    ),
    problems=(
        "empty_upload",
        "unreadable_body",
        "invalid_form",
        "upload_too_large",
        "unsupported_format",
        "unknown_on_duplicate",
        *OF_EVERY_ORDER,
    ),
    is_rate_limited=True,
    takes_upload_tokens=True,
)


LIST_IMAGES = Route(
    method="GET",
    path="/images",
    name="listImages",
    summary="List images",
    description=(
        "All images that were not deleted, newest first; one that was accepted within the last second may still be "
        "missing. A page may have fewer images than `limit`, even none, without being the last: only `next` says so."
    ),
    parameters=(
        Parameter(
            name="limit",
            place="query",
            kind=Annotated[int, Field(ge=1, le=MAX_PAGE_IMAGES)],
            description=f"The most images of a page; {DEFAULT_PAGE_IMAGES} by default.",
            example=50,
        ),
        Parameter(
            name="status",
            place="query",
            kind=some_of(LISTED_STATUSES),
            description="Only images with these statuses.",
            example=["pending", "processing"],
        ),
        Parameter(
            name="reference",
            place="query",
            kind=Reference,
            description="Only images with this reference, however many others there are.",
            example="order-17/front",
        ),
        Parameter(
            name="tag",
            place="query",
            kind=Tag,
            description="Only images with this tag.",
            example="shoes",
        ),
        Parameter(
            name="cursor",
            place="query",
            kind=Annotated[str, Field(pattern=f"^{CURSOR_PATTERN}$")],
            description="The `next` of the previous page.",
            example=f"01a1fd557a80{EXAMPLE_ID}",
        ),
        Parameter(
            name="urls",
            place="query",
            kind=one_of(URLS),
            description="`thumb` gives each image a presigned URL of its smallest variant, as `thumb`.",
            example="thumb",
        ),
        IF_NONE_MATCH,
    ),
    answers=(
        RouteAnswer(
            status=HTTPStatus.OK,
            description="A page of the list.",
            kind=PageDocument,
            headers=(PAGE_TAG, RETRY_AFTER_OF_PAGE),
        ),
        RouteAnswer(
            status=HTTPStatus.NOT_MODIFIED,
            description="The client's copy is current.",
            headers=(PAGE_TAG, RETRY_AFTER_OF_PAGE),
        ),
    ),
    problems=(
        "invalid_limit",
        "unknown_status",
        "invalid_reference",
        "invalid_tags",
        "invalid_cursor",
        "unknown_urls",
        "too_many_requests",
        "unavailable",
    ),
    is_rate_limited=True,
)

GET_IMAGE = Route(
    method="GET",
    path="/images/{id}",
    name="getImage",
    summary="Read an image with the facts of its original",
    description="The status document and `source`.",
    parameters=(ID, IF_NONE_MATCH),
    answers=_as_it_stands(ImageDocument),
    problems=("unknown_image", "unknown_path", "too_many_requests", "unavailable"),
    is_rate_limited=True,
)

GET_STATUS = Route(
    method="GET",
    path="/images/{id}/status",
    name="getImageStatus",
    summary="Read an image's status",
    description="The status document. Ask again after `Retry-After` seconds until there is none.",
    parameters=(ID, IF_NONE_MATCH),
    answers=_as_it_stands(StatusDocument),
    problems=("unknown_image", "unknown_path", "too_many_requests", "unavailable"),
    is_rate_limited=True,
    takes_upload_tokens=True,
)

GET_VARIANT = Route(
    method="GET",
    path="/images/{id}/variants/{name}",
    name="getVariant",
    summary="Fetch a variant",
    description="Redirects to the variant's bytes: `curl -L` fetches them. The address is for the same method.",
    parameters=(
        ID,
        Parameter(
            name="name",
            place="path",
            kind=Annotated[str, Field(pattern=f"^{STORED_NAME_PATTERN}$")],
            description="The variant's name.",
            example="thumb",
        ),
    ),
    answers=(
        RouteAnswer(
            status=HTTPStatus.TEMPORARY_REDIRECT,
            description="The variant is at `Location`.",
            headers=(LOCATION_OF_VARIANT,),
        ),
    ),
    problems=(
        "unknown_image",
        "unknown_variant",
        "unknown_path",
        "variant_not_ready",
        "variant_missing",
        "too_many_requests",
        "unavailable",
    ),
    is_rate_limited=True,
)


DELETE_IMAGE = Route(
    method="DELETE",
    path="/images/{id}",
    name="deleteImage",
    summary="Delete an image",
    description=(
        "Cancels an unfinished image; the original, all variants and whatever else describes the picture are removed "
        "within minutes. The image is unknown from then on, and a repetition of its upload with the same "
        "Idempotency-Key is answered 410. A repetition of this request answers 204 again."
    ),
    parameters=(ID,),
    answers=(RouteAnswer(status=HTTPStatus.NO_CONTENT, description="Deleted.", headers=(EDGE_UNTIL,)),),
    problems=("unknown_image", "unknown_path", "too_many_requests", "unavailable"),
    is_rate_limited=True,
)
