"""The routes of uploads that are announced, and of the tokens with which browsers upload."""

from __future__ import annotations

from http import HTTPStatus

from darkroom.domain.kernel.sizes import limit_in_words
from darkroom.http.images.documents import StatusDocument, UploadDocument
from darkroom.http.images.order_fields import IDEMPOTENCY_KEY, OF_EVERY_ORDER
from darkroom.http.images.request_models import MAX_ORDER_BYTES
from darkroom.http.images.routes import ID
from darkroom.http.kernel.headers import (
    EXAMPLE_WEBHOOK_ID,
    LOCATION_OF_STATUS,
    REPLAYED,
    RETRY_AFTER,
    RETRY_AFTER_WHILE_UNFINISHED,
)
from darkroom.http.kernel.route import Body, Route, RouteAnswer
from darkroom.http.uploads.announcements import Announcement
from darkroom.http.uploads.upload_tokens import TokenRequest, UploadTokenDocument

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
        RouteAnswer(
            status=HTTPStatus.CREATED,
            description="The image awaits its upload.",
            kind=UploadDocument,
            headers=(LOCATION_OF_STATUS, RETRY_AFTER, REPLAYED),
        ),
        RouteAnswer(
            status=HTTPStatus.ACCEPTED,
            description="Announced earlier with this key, or there already for `on_duplicate`, and not awaited.",
            kind=UploadDocument,
            headers=(LOCATION_OF_STATUS, RETRY_AFTER, REPLAYED),
        ),
    ),
    problems=(
        "unreadable_body",
        "unsupported_media_type",
        "invalid_upload",
        "upload_too_large",
        "unknown_on_duplicate",
        *OF_EVERY_ORDER,
    ),
    is_rate_limited=True,
    takes_upload_tokens=True,
)

POST_UPLOAD_DONE = Route(
    method="POST",
    path="/uploads/{id}/done",
    name="confirmUpload",
    summary="Confirm an upload",
    description=(
        "Says that the announced file was sent, which S3 says too, but sometimes a minute later. Whichever comes first "
        "starts the work, once; after that, the answer is the image as it is."
    ),
    parameters=(ID,),
    answers=(
        RouteAnswer(
            status=HTTPStatus.OK,
            description="The file is there. The image in its current state.",
            kind=StatusDocument,
            headers=(RETRY_AFTER_WHILE_UNFINISHED,),
        ),
    ),
    problems=("unknown_image", "unknown_path", "not_uploaded", "too_many_requests", "unavailable"),
    is_rate_limited=True,
    takes_upload_tokens=True,
)

POST_UPLOAD_TOKEN = Route(
    method="POST",
    path="/upload-tokens",
    name="postUploadToken",
    summary="Make an upload token",
    description=(
        "Makes a token with which a browser may upload some images, developed as the token says, and ask for their "
        "status, and nothing else. It ends with the API key that it was made with. Who has it can read what it says."
    ),
    body=Body(
        description=f"What it is for, in at most {limit_in_words(MAX_ORDER_BYTES)}.",
        media_types=("application/json",),
        kind=TokenRequest,
        examples={
            "avatar": {"expires_in": "PT15M", "max_bytes": 10_000_000, "preset": "avatar"},
            "album": {"count": 20, "origins": ["https://shop.example.com"], "notify": EXAMPLE_WEBHOOK_ID},
        },
    ),
    answers=(RouteAnswer(status=HTTPStatus.CREATED, description="The token.", kind=UploadTokenDocument),),
    problems=(
        "unreadable_body",
        "unsupported_media_type",
        "invalid_upload_token",
        "upload_token_too_long",
        "unknown_preset",
        "unknown_variants",
        "invalid_recipe",
        "conflicting_parameters",
        "unknown_notify",
        "invalid_reference",
        "invalid_tags",
        "invalid_metadata",
        "part_not_deployed",
        "too_many_requests",
        "unavailable",
    ),
    is_rate_limited=True,
)
