"""The routes of images in the one table of the API's routes: handlers are registered by it, requests are checked by
it, openapi.json is made from it."""

from __future__ import annotations

from collections.abc import Iterable
from http import HTTPStatus
from typing import Annotated, Any, NotRequired, TypedDict

from pydantic import ConfigDict, Field

from darkroom.domain.announcement import UNKNOWN_MEDIA_TYPE
from darkroom.domain.fetch import MAX_SOURCE_URL_LENGTH
from darkroom.domain.listing import LISTED_STATUSES, MAX_PAGE_IMAGES
from darkroom.domain.presets import DEFAULT_PRESET, PRESETS
from darkroom.domain.recipes import VARIANT_NAME_PATTERN, Recipe
from darkroom.domain.schedule import MAX_DELAY_SECONDS
from darkroom.domain.sizes import limit_in_words
from darkroom.domain.usage import MAX_DAYS
from darkroom.http.announcements import (
    MAX_ANNOUNCED_BYTES,
    MEDIA_TYPE_PATTERN,
    SHA256_PATTERN,
)
from darkroom.http.documents import ImageDocument, ImageId, PageDocument, StatusDocument, UploadDocument, WebhookId
from darkroom.http.headers import (
    ENTITY_TAG,
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
from darkroom.http.list_queries import CURSOR_PATTERN, DEFAULT_PAGE_IMAGES, URLS
from darkroom.http.route import Answer, Body, Parameter, Route, one_of
from darkroom.http.timetables import DURATION_PATTERN, INSTANT_PATTERN, MAX_RESCHEDULE_BYTES
from darkroom.http.usage import Day, UsageDocument
from darkroom.http.written_orders import MAX_ORDER_BYTES

_ID = Parameter(name="id", place="path", kind=ImageId, description="The image's id.", example=EXAMPLE_ID)


def _some_of(words: Iterable[str]) -> Any:
    """A list of some of the words, comma-separated in a query."""
    one: Any = {"type": "string", "enum": list(dict.fromkeys(words))}
    return Annotated[list[str], Field(min_length=1, json_schema_extra={"items": one})]


_Instant = Annotated[str, Field(json_schema_extra={"format": "date-time", "pattern": f"^{INSTANT_PATTERN}$"})]
_Duration = Annotated[str, Field(json_schema_extra={"pattern": f"^{DURATION_PATTERN}$"})]

_PresetName: Any = one_of(PRESETS)
_PresetVariants: Any = _some_of(spec.name for preset in PRESETS.values() for spec in preset.variants)

_IDEMPOTENCY_KEY = Parameter(
    name="Idempotency-Key",
    place="header",
    # Spaces around a header's value are not part of it (RFC 9110, section 5.5).
    kind=Annotated[str, Field(pattern=r"^[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$", max_length=255)],
    description="The same key and request always mean the same image, however often they are sent.",
    example="order-17",
)
_IF_NONE_MATCH = Parameter(
    name="If-None-Match",
    place="header",
    kind=str,
    description="The ETag of the client's copy: if it is current, the answer is 304.",
    example='W/"3-5984172"',
)


class Reschedule(TypedDict, total=False):
    """The new time of a scheduled image: `process_at` or `delay`, and `expires_at` if it changes."""

    __pydantic_config__ = ConfigDict(  # type: ignore[misc]
        extra="forbid", json_schema_extra={"oneOf": [{"required": ["process_at"]}, {"required": ["delay"]}]}
    )
    process_at: _Instant
    delay: _Duration
    expires_at: _Instant


class Announcement(TypedDict):
    """A file to come and how to develop it: `preset` with or without `variants`, or `recipe`; and when."""

    __pydantic_config__ = ConfigDict(extra="forbid")  # type: ignore[misc]
    bytes: Annotated[int, Field(ge=1, le=MAX_ANNOUNCED_BYTES, description="Its size; each stack has its own limit.")]
    sha256: Annotated[str, Field(pattern=f"^{SHA256_PATTERN}$", description="In hexadecimal, as sha256sum prints it.")]
    content_type: NotRequired[
        Annotated[
            str,
            Field(
                json_schema_extra={"pattern": f"^{MEDIA_TYPE_PATTERN}$", "default": UNKNOWN_MEDIA_TYPE},
                description="The form's field Content-Type. The file's bytes decide what it is.",
            ),
        ]
    ]
    preset: NotRequired[_PresetName | None]
    variants: NotRequired[_PresetVariants | None]
    recipe: NotRequired[Recipe | None]
    process_at: NotRequired[_Instant | None]
    delay: NotRequired[_Duration | None]
    expires_at: NotRequired[_Instant | None]
    notify: NotRequired[WebhookId | None]


class FetchOrder(TypedDict):
    """An image to fetch and how to develop it: `preset` with or without `variants`, or `recipe`; and when."""

    __pydantic_config__ = ConfigDict(extra="forbid")  # type: ignore[misc]
    url: Annotated[
        str,
        Field(
            json_schema_extra={"format": "uri", "maxLength": MAX_SOURCE_URL_LENGTH},
            description="Where everybody may fetch it by https, without a redirect to anything else.",
        ),
    ]
    preset: NotRequired[_PresetName | None]
    variants: NotRequired[_PresetVariants | None]
    recipe: NotRequired[Recipe | None]
    process_at: NotRequired[_Instant | None]
    delay: NotRequired[_Duration | None]
    expires_at: NotRequired[_Instant | None]
    notify: NotRequired[WebhookId | None]


_IN_SCHEDULE = f"at most {MAX_DELAY_SECONDS // 86_400} days ahead"

_OF_EVERY_ORDER = (
    "unknown_preset",
    "unknown_variants",
    "invalid_recipe",
    "conflicting_parameters",
    "invalid_process_at",
    "invalid_delay",
    "invalid_expires_at",
    "unknown_notify",
    "quota_exceeded",
    "invalid_idempotency_key",
    "idempotency_key_reused",
    "image_deleted",
    "too_many_requests",
    "overloaded",
    "unavailable",
)
"""The problems of every request that asks for an image to be developed, large or small."""


def _as_it_stands(kind: type) -> tuple[Answer, ...]:
    """The answers to a client that asks about an image, perhaps repeatedly."""
    headers = (ENTITY_TAG, RETRY_AFTER_WHILE_UNFINISHED)
    return (
        Answer(status=HTTPStatus.OK, description="The image in its current state.", kind=kind, headers=headers),
        Answer(status=HTTPStatus.NOT_MODIFIED, description="The client's copy is current.", headers=headers),
    )


POST_IMAGE = Route(
    method="POST",
    path="/images",
    name="postImage",
    summary="Upload a photo",
    description=(
        "Accepts a photo, or the URL of one, and promises to develop it. Its bytes decide its format, not its name or "
        "media type; but sent as text (text/*, application/xml) it is damaged on its way, and refused with 415. Send "
        "an Idempotency-Key, so that the request can be repeated safely."
    ),
    parameters=(
        Parameter(
            name="preset",
            place="query",
            kind=_PresetName,
            description=f"A recipe by its name; `{DEFAULT_PRESET}` by default, unless there is a `recipe`.",
            example=DEFAULT_PRESET,
        ),
        Parameter(
            name="variants",
            place="query",
            kind=_PresetVariants,
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
            kind=_Instant,
            description=f"Process the image no earlier than this instant, {_IN_SCHEDULE}; write a plus sign as %2B.",
            example="2027-03-01T09:00:00Z",
        ),
        Parameter(
            name="delay",
            place="query",
            kind=_Duration,
            description=f"Process the image no earlier than this long from now, {_IN_SCHEDULE}, instead of "
            "`process_at`: weeks, days, T, hours, minutes, seconds.",
            example="P2DT12H",
        ),
        Parameter(
            name="expires_at",
            place="query",
            kind=_Instant,
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
        _IDEMPOTENCY_KEY,
    ),
    body=Body(
        description="The file's bytes, at most 4 MiB; or a form with the bytes in its one part, `file`; or JSON with "
        "the URL from which to fetch it, and the parameters beside it instead of in the query.",
        media_types=(
            "image/jpeg",
            "image/png",
            "image/webp",
            "image/gif",
            "application/octet-stream",
            "multipart/form-data",
        ),
        or_kind=FetchOrder,
        examples={"url": {"url": "https://photos.example/harbour.jpg", "preset": DEFAULT_PRESET}},
    ),
    answers=(
        Answer(
            status=HTTPStatus.ACCEPTED,
            description="The photo is accepted and will be developed; the photo of a URL is fetched first.",
            kind=StatusDocument,
            headers=(LOCATION_OF_STATUS, RETRY_AFTER, REPLAYED),
        ),
    ),
    problems=(
        "empty_upload",
        "unreadable_body",
        "invalid_form",
        "invalid_fetch",
        "invalid_url",
        "upload_too_large",
        "unsupported_format",
        *_OF_EVERY_ORDER,
    ),
    is_rate_limited=True,
)

POST_UPLOAD = Route(
    method="POST",
    path="/uploads",
    name="postUpload",
    summary="Announce a large file",
    description=(
        "Announces a file that is too large for a request. It is developed once these bytes, and no others, have been "
        "sent to S3 with the form in the answer. A repetition with the same Idempotency-Key gets a fresh form."
    ),
    parameters=(_IDEMPOTENCY_KEY,),
    body=Body(
        description=f"The announcement, in at most {limit_in_words(MAX_ORDER_BYTES)}.",
        media_types=("application/json",),
        kind=Announcement,
        examples={
            "photo": {"bytes": 18_204_113, "sha256": "9f2c6b7e41d05a83c7be19f4402d6a58e3b0c1f7a94d2e6b85037cfa61d9e824"}
        },
    ),
    answers=(
        Answer(
            status=HTTPStatus.CREATED,
            description="The image awaits its upload.",
            kind=UploadDocument,
            headers=(LOCATION_OF_STATUS, RETRY_AFTER, REPLAYED),
        ),
        Answer(
            status=HTTPStatus.ACCEPTED,
            description="Announced earlier with this key, and no longer awaited.",
            kind=UploadDocument,
            headers=(LOCATION_OF_STATUS, RETRY_AFTER, REPLAYED),
        ),
    ),
    problems=(
        "unreadable_body",
        "unsupported_media_type",
        "invalid_upload",
        "upload_too_large",
        *_OF_EVERY_ORDER,
    ),
    is_rate_limited=True,
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
            kind=_some_of(LISTED_STATUSES),
            description="Only images with these statuses.",
            example=["pending", "processing"],
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
        _IF_NONE_MATCH,
    ),
    answers=(
        Answer(
            status=HTTPStatus.OK,
            description="A page of the list.",
            kind=PageDocument,
            headers=(PAGE_TAG, RETRY_AFTER_OF_PAGE),
        ),
        Answer(
            status=HTTPStatus.NOT_MODIFIED,
            description="The client's copy is current.",
            headers=(PAGE_TAG, RETRY_AFTER_OF_PAGE),
        ),
    ),
    problems=("invalid_limit", "unknown_status", "invalid_cursor", "unknown_urls", "too_many_requests", "unavailable"),
    is_rate_limited=True,
)

GET_IMAGE = Route(
    method="GET",
    path="/images/{id}",
    name="getImage",
    summary="Read an image with the facts of its original",
    description="The status document and `source`.",
    parameters=(_ID, _IF_NONE_MATCH),
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
    parameters=(_ID, _IF_NONE_MATCH),
    answers=_as_it_stands(StatusDocument),
    problems=("unknown_image", "unknown_path", "too_many_requests", "unavailable"),
    is_rate_limited=True,
)

GET_VARIANT = Route(
    method="GET",
    path="/images/{id}/variants/{name}",
    name="getVariant",
    summary="Fetch a variant",
    description="Redirects to the variant's bytes: `curl -L` fetches them. The address is for the same method.",
    parameters=(
        _ID,
        Parameter(
            name="name",
            place="path",
            kind=Annotated[str, Field(pattern=f"^{VARIANT_NAME_PATTERN}$")],
            description="The variant's name.",
            example="thumb",
        ),
    ),
    answers=(
        Answer(
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

GET_USAGE = Route(
    method="GET",
    path="/usage",
    name="getUsage",
    summary="Read what is stored and was used",
    description=(
        "What the tenant stores now, of its quota, and what it used, day by day in UTC. It is some seconds behind."
    ),
    parameters=(
        Parameter(
            name="since",
            place="query",
            kind=Day,
            description="The first day; 30 days before the last one by default.",
            example="2026-11-01",
        ),
        Parameter(
            name="until",
            place="query",
            kind=Day,
            description=f"The last day; today by default. They are at most {MAX_DAYS} days.",
            example="2026-11-30",
        ),
    ),
    answers=(Answer(status=HTTPStatus.OK, description="The usage of these days.", kind=UsageDocument),),
    problems=("invalid_days", "too_many_requests", "unavailable"),
    is_rate_limited=True,
)

PATCH_IMAGE = Route(
    method="PATCH",
    path="/images/{id}",
    name="rescheduleImage",
    summary="Reschedule an image",
    description=f"Gives a scheduled image another time, {_IN_SCHEDULE}, or now. It can be changed any number of times, "
    "to the last second.",
    parameters=(_ID,),
    body=Body(
        description=f"The new time, in at most {limit_in_words(MAX_RESCHEDULE_BYTES)}.",
        media_types=("application/json",),
        kind=Reschedule,
        examples={"instant": {"process_at": "2027-03-01T09:00:00+01:00"}, "delay": {"delay": "PT2H"}},
    ),
    answers=(Answer(status=HTTPStatus.OK, description="The image after the change.", kind=StatusDocument),),
    problems=(
        "unreadable_body",
        "unsupported_media_type",
        "invalid_schedule",
        "invalid_process_at",
        "invalid_delay",
        "invalid_expires_at",
        "conflicting_parameters",
        "unknown_image",
        "unknown_path",
        "not_scheduled",
        "too_many_requests",
        "overloaded",
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
    parameters=(_ID,),
    answers=(Answer(status=HTTPStatus.NO_CONTENT, description="Deleted."),),
    problems=("unknown_image", "unknown_path", "too_many_requests", "unavailable"),
    is_rate_limited=True,
)

GET_OPENAPI = Route(
    method="GET",
    path="/openapi.json",
    name="getOpenapi",
    summary="Read this description of the API",
    description="OpenAPI 3.1, made from the table that the handlers use.",
    answers=(
        Answer(
            status=HTTPStatus.OK,
            description="This document.",
            kind=Annotated[dict[str, Any], Field(json_schema_extra={"required": ["openapi", "info", "paths"]})],
        ),
    ),
    problems=(),
    is_open=True,
)

IMAGE_ROUTES = (
    POST_IMAGE,
    POST_UPLOAD,
    LIST_IMAGES,
    GET_IMAGE,
    GET_STATUS,
    GET_VARIANT,
    GET_USAGE,
    PATCH_IMAGE,
    DELETE_IMAGE,
)
"""Every route of images, in the order in which a client meets them."""


def __getattr__(name: str) -> Any:
    # For one release: the handler of the version before imports the routes of webhooks from here.
    if not name.isupper():
        raise AttributeError(name)
    from darkroom.http import webhook_routes  # noqa: PLC0415

    return getattr(webhook_routes, name)
