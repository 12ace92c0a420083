"""The route of uploads that are announced."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated, NotRequired, TypedDict

from pydantic import ConfigDict, Field

from darkroom.domain.kernel.sizes import limit_in_words
from darkroom.domain.recipes.recipes import Recipe
from darkroom.domain.uploads.announcement import UNKNOWN_MEDIA_TYPE
from darkroom.http.images.documents import UploadDocument, WebhookId
from darkroom.http.images.order_fields import (
    IDEMPOTENCY_KEY,
    OF_EVERY_ORDER,
    PresetName,
    PresetVariants,
    WrittenDuration,
    WrittenInstant,
)
from darkroom.http.images.written_orders import MAX_ORDER_BYTES
from darkroom.http.kernel.headers import LOCATION_OF_STATUS, REPLAYED, RETRY_AFTER
from darkroom.http.kernel.route import Answer, Body, Route
from darkroom.http.uploads.announcements import MAX_ANNOUNCED_BYTES, MEDIA_TYPE_PATTERN, SHA256_PATTERN


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
    preset: NotRequired[PresetName | None]
    variants: NotRequired[PresetVariants | None]
    recipe: NotRequired[Recipe | None]
    process_at: NotRequired[WrittenInstant | None]
    delay: NotRequired[WrittenDuration | None]
    expires_at: NotRequired[WrittenInstant | None]
    notify: NotRequired[WebhookId | None]


POST_UPLOAD = Route(
    method="POST",
    path="/uploads",
    name="postUpload",
    summary="Announce a large file",
    description=(
        "Announces a file that is too large for a request. It is developed once these bytes, and no others, have been "
        "sent to S3 with the form in the answer. A repetition with the same Idempotency-Key gets a fresh form."
    ),
    parameters=(IDEMPOTENCY_KEY,),
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
        *OF_EVERY_ORDER,
    ),
    is_rate_limited=True,
)
