"""The one table of problems: every error answer of the API is a row of it (RFC 9457)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Annotated, NotRequired, TypedDict

from pydantic import Field

from darkroom.domain.kernel.stored import Stored
from darkroom.domain.kernel.tenants import UNLIMITED, Quota
from darkroom.http.kernel.headers import (
    ACCEPT,
    ALLOW,
    EXAMPLE_WEBHOOK_ID,
    RETRY_AFTER,
    RETRY_AFTER_WHILE_UNFINISHED,
    WWW_AUTHENTICATE,
    Header,
)


class FieldErrorDocument(TypedDict):
    """What is wrong with one field."""

    field: Annotated[str, Field(description="Its path: `variants.2.width`.")]
    message: str


class StoredDocument(TypedDict):
    """What a tenant stores."""

    bytes: Annotated[int, Field(ge=0, description="Of originals and variants.")]
    images: Annotated[int, Field(ge=0)]


class QuotaDocument(TypedDict):
    """What a tenant may store; null is no limit."""

    bytes: Annotated[int | None, Field(ge=0)]
    images: Annotated[int | None, Field(ge=0)]


def stored_document(stored: Stored) -> StoredDocument:
    """Returns the document."""
    return {"bytes": stored.size_bytes, "images": stored.images}


def quota_document(quota: Quota) -> QuotaDocument:
    """Returns the document."""
    size_bytes, images = (None if limit == UNLIMITED else limit for limit in (quota.stored_bytes, quota.images))
    return {"bytes": size_bytes, "images": images}


@dataclass(frozen=True, kw_only=True)
class Excess:
    """What a tenant stores, of a quota into which another image does not fit."""

    used: Stored
    quota: Quota


@dataclass(frozen=True, kw_only=True)
class ProblemType:
    """One kind of problem. `example` is a possible `detail`; `headers` are the headers it adds to the answer; one with
    `example_errors` names the invalid fields, and one with `example_excess` what is used and allowed."""

    code: str
    status: HTTPStatus
    title: str
    example: str
    headers: tuple[Header, ...] = ()
    example_errors: tuple[FieldErrorDocument, ...] = ()
    example_excess: Excess | None = None

    @property
    def urn(self) -> str:
        """The stable `type` of its documents (RFC 9457, section 3.1.1)."""
        return f"urn:darkroom:problem:{self.code.replace('_', '-')}"


_TABLE = (
    ProblemType(
        code="empty_upload",
        status=HTTPStatus.BAD_REQUEST,
        title="The upload is empty",
        example="The body is empty: there is no photo in it. Send the bytes of an image file.",
    ),
    ProblemType(
        code="unknown_preset",
        status=HTTPStatus.BAD_REQUEST,
        title="Unknown preset",
        example="There is no such preset. Known presets: avatar, standard.",
    ),
    ProblemType(
        code="unknown_variants",
        status=HTTPStatus.BAD_REQUEST,
        title="Unknown variants",
        example="There is no variant 'huge'. Known variants: thumb, medium, large, webp.",
    ),
    ProblemType(
        code="invalid_recipe",
        status=HTTPStatus.BAD_REQUEST,
        title="Invalid recipe",
        example="The recipe is invalid. variants.0.width: must be at most 8192.",
        example_errors=({"field": "variants.0.width", "message": "must be at most 8192"},),
    ),
    ProblemType(
        code="invalid_variants",
        status=HTTPStatus.BAD_REQUEST,
        title="Invalid request for variants",
        example="The request for variants is invalid. sizes: is not a known field. Known fields: preset, variants, "
        "recipe.",
        example_errors=({"field": "sizes", "message": "is not a known field. Known fields: preset, variants, recipe"},),
    ),
    ProblemType(
        code="invalid_edit",
        status=HTTPStatus.BAD_REQUEST,
        title="Invalid edit",
        example="The edit is invalid. rotate: must be 0, 90, 180 or 270.",
        example_errors=({"field": "rotate", "message": "must be 0, 90, 180 or 270"},),
    ),
    ProblemType(
        code="too_many_variants",
        status=HTTPStatus.BAD_REQUEST,
        title="Too many variants",
        example="The image would have 52 variants; at most 48 are possible. Give new variants the names of those that "
        "they may replace, or upload the photo again for them.",
    ),
    ProblemType(
        code="unknown_notify",
        status=HTTPStatus.BAD_REQUEST,
        title="Unknown webhook to notify",
        example="notify is the id of one of your webhooks, and there is none with this id: GET /webhooks lists them.",
    ),
    ProblemType(
        code="unknown_on_duplicate",
        status=HTTPStatus.BAD_REQUEST,
        title="Unknown on_duplicate",
        example="on_duplicate is reuse, or left out.",
    ),
    ProblemType(
        code="unknown_visibility",
        status=HTTPStatus.BAD_REQUEST,
        title="Unknown visibility",
        example="visibility is private, public, signed, or left out.",
    ),
    ProblemType(
        code="invalid_reference",
        status=HTTPStatus.BAD_REQUEST,
        title="Invalid reference",
        example="reference is 1 to 128 characters, without control characters and without a space at either end.",
    ),
    ProblemType(
        code="invalid_tags",
        status=HTTPStatus.BAD_REQUEST,
        title="Invalid tags",
        example="An image has at most 10 tags, each once.",
    ),
    ProblemType(
        code="invalid_metadata",
        status=HTTPStatus.BAD_REQUEST,
        title="Invalid metadata",
        example="metadata is a JSON object of your own: this has 1,180 bytes; at most 1 KiB are allowed.",
    ),
    ProblemType(
        code="conflicting_parameters",
        status=HTTPStatus.BAD_REQUEST,
        title="Conflicting parameters",
        example="process_at names an instant and delay counts from now: send one of them.",
    ),
    ProblemType(
        code="invalid_idempotency_key",
        status=HTTPStatus.BAD_REQUEST,
        title="Invalid Idempotency-Key",
        example="An Idempotency-Key is 1 to 255 printable ASCII characters.",
    ),
    ProblemType(
        code="invalid_process_at",
        status=HTTPStatus.BAD_REQUEST,
        title="Invalid process_at",
        example="process_at must be between now and 364 days from now.",
    ),
    ProblemType(
        code="invalid_delay", status=HTTPStatus.BAD_REQUEST, title="Invalid delay", example="A delay is at most P364D."
    ),
    ProblemType(
        code="invalid_expires_at",
        status=HTTPStatus.BAD_REQUEST,
        title="Invalid expires_at",
        example="expires_at must be after the image's time, by at most 364 days.",
    ),
    ProblemType(
        code="invalid_schedule",
        status=HTTPStatus.BAD_REQUEST,
        title="The body gives no time",
        example="Give a time: process_at with an instant, or delay with a duration.",
    ),
    ProblemType(
        code="invalid_upload",
        status=HTTPStatus.BAD_REQUEST,
        title="Invalid announcement",
        example="The announcement is invalid. sha256: must be the file's SHA-256 in 64 hexadecimal digits.",
        example_errors=({"field": "sha256", "message": "must be the file's SHA-256 in 64 hexadecimal digits"},),
    ),
    ProblemType(
        code="invalid_upload_token",
        status=HTTPStatus.BAD_REQUEST,
        title="Invalid request for an upload token",
        example="The request for an upload token is invalid. expires_in: must be an ISO 8601 duration from PT1S to "
        "P1D, as in PT1H.",
        example_errors=(
            {"field": "expires_in", "message": "must be an ISO 8601 duration from PT1S to P1D, as in PT1H"},
        ),
    ),
    ProblemType(
        code="upload_token_too_long",
        status=HTTPStatus.BAD_REQUEST,
        title="The upload token is too long",
        example="The token would have 5,021 characters, and 4,096 are the most. Use a preset, or a shorter recipe or "
        "metadata.",
    ),
    ProblemType(
        code="invalid_fetch",
        status=HTTPStatus.BAD_REQUEST,
        title="Invalid request to fetch",
        example="The request is invalid. url: is missing.",
        example_errors=({"field": "url", "message": "is missing"},),
    ),
    ProblemType(
        code="invalid_form",
        status=HTTPStatus.BAD_REQUEST,
        title="Invalid form",
        example="It has no part `file`. Send the photo as the one part `file`: curl -F file=@photo.jpg",
    ),
    ProblemType(
        code="invalid_webhook",
        status=HTTPStatus.BAD_REQUEST,
        title="Invalid webhook",
        example="The webhook is invalid. url: is missing.",
        example_errors=({"field": "url", "message": "is missing"},),
    ),
    ProblemType(
        code="invalid_url",
        status=HTTPStatus.BAD_REQUEST,
        title="Invalid URL",
        example="The URL must begin with https://.",
    ),
    ProblemType(
        code="invalid_headers",
        status=HTTPStatus.BAD_REQUEST,
        title="Invalid headers",
        example="The header X-Shop is new: give it a value.",
    ),
    ProblemType(
        code="invalid_since",
        status=HTTPStatus.BAD_REQUEST,
        title="Invalid since",
        example="since is an instant in the past with its zone, as in RFC 3339, or how long ago that was, as an ISO "
        '8601 duration: 2027-03-01T09:00:00+01:00, PT6H, P2D. It is "yesterday".',
    ),
    ProblemType(
        code="invalid_days",
        status=HTTPStatus.BAD_REQUEST,
        title="Invalid days",
        example="since and until are days in UTC, as in 2026-11-23, both included: at most 366 days, the first one "
        "first.",
    ),
    ProblemType(
        code="invalid_limit",
        status=HTTPStatus.BAD_REQUEST,
        title="Invalid limit",
        example="limit is a whole number from 1 to 100.",
    ),
    ProblemType(
        code="unknown_status",
        status=HTTPStatus.BAD_REQUEST,
        title="Unknown status",
        example="status is one or more of these, comma-separated: pending, processing, done.",
    ),
    ProblemType(
        code="unknown_urls",
        status=HTTPStatus.BAD_REQUEST,
        title="Unknown urls",
        example="urls is thumb, or left out.",
    ),
    ProblemType(
        code="invalid_cursor",
        status=HTTPStatus.BAD_REQUEST,
        title="Invalid cursor",
        example="cursor is the `next` of an earlier page, unchanged. Leave it out to start.",
    ),
    ProblemType(
        code="unreadable_body",
        status=HTTPStatus.BAD_REQUEST,
        title="The body cannot be read",
        example="The body is not valid base64, in which the gateway sends it.",
    ),
    ProblemType(
        code="unknown_parameter",
        status=HTTPStatus.BAD_REQUEST,
        title="Unknown parameter",
        example="This route knows only these parameters: cursor, limit, status.",
    ),
    ProblemType(
        code="no_tenant",
        status=HTTPStatus.FORBIDDEN,
        title="The token names no tenant",
        example="The token's claim 'sub' names no tenant: a tenant is 1 to 128 letters, digits and . _ : | @ -.",
    ),
    ProblemType(
        code="insufficient_scope",
        status=HTTPStatus.FORBIDDEN,
        title="The key may not do this",
        example="This key has no scope images:write. Ask the operator for one that has it.",
        headers=(WWW_AUTHENTICATE,),
    ),
    ProblemType(
        code="upload_token_refused",
        status=HTTPStatus.FORBIDDEN,
        title="An upload token does not allow this",
        example="The upload token says how its photos are developed. Leave out: preset.",
    ),
    ProblemType(
        code="upload_token_expired",
        status=HTTPStatus.FORBIDDEN,
        title="The upload token has expired",
        example="This upload token has expired. Ask the server that made it for another.",
    ),
    ProblemType(
        code="upload_token_used_up",
        status=HTTPStatus.FORBIDDEN,
        title="The upload token is used up",
        example="This upload token has been used for as many photos as it allows: 10. Ask the server that made it for "
        "another.",
    ),
    ProblemType(
        code="quota_exceeded",
        status=HTTPStatus.FORBIDDEN,
        title="The quota is exceeded",
        example="This tenant stores 9.9 GB of 10 GB and 3,127 of 20,000 images, and this one "
        "does not fit. Delete images that are no longer needed, which counts within a minute, or ask the operator for "
        "more.",
        example_excess=Excess(
            used=Stored(size_bytes=9_894_124_880, images=3127), quota=Quota(stored_bytes=10_000_000_000, images=20_000)
        ),
    ),
    ProblemType(
        code="unknown_image",
        status=HTTPStatus.NOT_FOUND,
        title="Unknown image",
        example="There is no image with this id.",
    ),
    ProblemType(
        code="unknown_variant",
        status=HTTPStatus.NOT_FOUND,
        title="Unknown variant",
        example="The image has no such variant. It has: thumb, medium, large, webp.",
    ),
    ProblemType(
        code="unknown_webhook",
        status=HTTPStatus.NOT_FOUND,
        title="Unknown webhook",
        example="There is no webhook with this id.",
    ),
    ProblemType(
        code="unknown_batch",
        status=HTTPStatus.NOT_FOUND,
        title="Unknown batch",
        example="There is no batch with this id.",
    ),
    ProblemType(
        code="unknown_delivery",
        status=HTTPStatus.NOT_FOUND,
        title="Unknown delivery",
        example="The webhook has no delivery with this id. Deliveries are kept for 30 days.",
    ),
    ProblemType(
        code="unknown_path", status=HTTPStatus.NOT_FOUND, title="Unknown path", example="There is nothing at this path."
    ),
    ProblemType(
        code="method_not_allowed",
        status=HTTPStatus.METHOD_NOT_ALLOWED,
        title="Method not allowed",
        example="This path allows GET, PATCH, DELETE.",
        headers=(ALLOW,),
    ),
    ProblemType(
        code="not_scheduled",
        status=HTTPStatus.CONFLICT,
        title="The image is not scheduled",
        example="Only a scheduled image can be rescheduled. This one is done.",
    ),
    ProblemType(
        code="not_uploaded",
        status=HTTPStatus.CONFLICT,
        title="The file is not there",
        example="The announced file is not there. Send it with the form that POST /uploads returned, or announce it "
        "again for another form; then confirm it.",
    ),
    ProblemType(
        code="not_done",
        status=HTTPStatus.CONFLICT,
        title="The image is not done",
        example="Variants can be added to an image that is done. This one is pending: ask again when it is.",
        headers=(RETRY_AFTER_WHILE_UNFINISHED,),
    ),
    ProblemType(
        code="work_under_way",
        status=HTTPStatus.CONFLICT,
        title="Other work is under way",
        example="Other work on this image is under way. Send the same request again when it has ended: "
        "/images/{id}/status tells.",
        headers=(RETRY_AFTER,),
    ),
    ProblemType(
        code="variant_not_ready",
        status=HTTPStatus.CONFLICT,
        title="The variant is not ready",
        example="The image is pending. See /images/{id}/status for why, or ask again when it is done.",
        headers=(RETRY_AFTER_WHILE_UNFINISHED,),
    ),
    ProblemType(
        code="invalid_batch",
        status=HTTPStatus.BAD_REQUEST,
        title="Invalid batch",
        example="The batch is invalid. parallelism: must be at least 1.",
        example_errors=({"field": "parallelism", "message": "must be at least 1"},),
    ),
    ProblemType(
        code="invalid_import",
        status=HTTPStatus.BAD_REQUEST,
        title="Invalid import",
        example="The import is invalid. format: is csv or jsonl.",
        example_errors=({"field": "format", "message": "is csv or jsonl"},),
    ),
    ProblemType(
        code="batch_closed",
        status=HTTPStatus.CONFLICT,
        title="The batch is closed",
        example="This batch takes no more images. Make another with POST /batches, or leave batch out.",
    ),
    ProblemType(
        code="webhook_exists",
        status=HTTPStatus.CONFLICT,
        title="A webhook has this URL",
        example=f"The webhook {EXAMPLE_WEBHOOK_ID} has this URL already: change it with PATCH, or rotate its secret if "
        "you have lost it.",
    ),
    ProblemType(
        code="too_many_webhooks",
        status=HTTPStatus.CONFLICT,
        title="Too many webhooks",
        example="There are 10 webhooks already, as many as may be. Delete one that is no longer needed, or let one "
        "receive more types of events.",
    ),
    ProblemType(
        code="too_many_secrets",
        status=HTTPStatus.CONFLICT,
        title="Too many secrets",
        example="5 secrets of this webhook sign at present, each for a day after it was replaced. Try again in 90 "
        "minutes.",
    ),
    ProblemType(
        code="webhook_disabled",
        status=HTTPStatus.CONFLICT,
        title="The webhook is disabled",
        example="This webhook is disabled, and nothing is sent to it. Enable it with PATCH and "
        '{"enabled": true} first.',
    ),
    ProblemType(
        code="image_deleted",
        status=HTTPStatus.GONE,
        title="The image was deleted",
        example="The image of this Idempotency-Key was deleted. Use a new key to upload the photo again.",
    ),
    ProblemType(
        code="upload_too_large",
        status=HTTPStatus.CONTENT_TOO_LARGE,
        title="The upload is too large",
        example="The upload has 5 MiB; at most 4 MiB can be sent in one request.",
    ),
    ProblemType(
        code="unsupported_format",
        status=HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
        title="Unsupported image format",
        example="The bytes are text, whatever the file is called. Send a JPEG, PNG, WebP or GIF image.",
    ),
    ProblemType(
        code="unsupported_media_type",
        status=HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
        title="Unsupported media type",
        example="Send the body as JSON: Content-Type: application/json",
        headers=(ACCEPT,),
    ),
    ProblemType(
        code="idempotency_key_reused",
        status=HTTPStatus.UNPROCESSABLE_CONTENT,
        title="Idempotency-Key reused",
        example="This Idempotency-Key was used with another photo, preset, recipe, time or notify. Use a new key.",
    ),
    ProblemType(
        code="part_not_deployed",
        status=HTTPStatus.UNPROCESSABLE_CONTENT,
        title="The stack has no such part",
        example="This stack does not fetch images. Post the photo itself.",
    ),
    ProblemType(
        code="too_many_requests",
        status=HTTPStatus.TOO_MANY_REQUESTS,
        title="Too many requests",
        example="This tenant may send 10 requests per second, and 50 at once. Send the same request again after 1 "
        "seconds.",
        headers=(RETRY_AFTER,),
    ),
    ProblemType(
        code="too_many_unfinished",
        status=HTTPStatus.TOO_MANY_REQUESTS,
        title="Too many unfinished images",
        example="This tenant may have 500 unfinished images, and has them. Send the same request again after 12 "
        "seconds: some will have ended by then.",
        headers=(RETRY_AFTER,),
    ),
    ProblemType(
        code="overloaded",
        status=HTTPStatus.TOO_MANY_REQUESTS,
        title="Overloaded",
        example="There is more work than can be finished in time. Send the same request again after 300 seconds: the "
        "present backlog will be finished by then.",
        headers=(RETRY_AFTER,),
    ),
    ProblemType(
        code="internal",
        status=HTTPStatus.INTERNAL_SERVER_ERROR,
        title="Internal error",
        example="An unexpected error occurred. Report the correlation id to the operator.",
    ),
    ProblemType(
        code="variant_missing",
        status=HTTPStatus.INTERNAL_SERVER_ERROR,
        title="The variant is missing",
        example="The variant was made, but its file is missing. Report the image's id and the correlation id to the "
        "operator, who can have it made again.",
    ),
    ProblemType(
        code="unavailable",
        status=HTTPStatus.SERVICE_UNAVAILABLE,
        title="Temporarily unavailable",
        example="A required service does not answer at present. Send the same request again.",
        headers=(RETRY_AFTER,),
    ),
)

PROBLEMS = {row.code: row for row in _TABLE}
"""Every problem by its code."""


class Problem(Exception):
    """An error answer: `code` is one of PROBLEMS, `detail` says what to do, `errors` names the invalid fields, if
    any, and `excess` what is used and allowed."""

    def __init__(
        self,
        code: str,
        detail: str,
        *,
        headers: Mapping[str, str] | None = None,
        errors: Sequence[FieldErrorDocument] = (),
        excess: Excess | None = None,
    ) -> None:
        super().__init__(detail)
        self.code = code
        self.status, self.title = PROBLEMS[code].status, PROBLEMS[code].title
        self.detail = detail
        self.headers = dict(headers or {})
        self.errors = errors
        self.excess = excess


class ProblemDocument(TypedDict):
    """An error (RFC 9457)."""

    type: Annotated[str, Field(description="Stable: an URN that ends with the code.")]
    title: str
    status: int
    detail: Annotated[str, Field(description="What to do, for people.")]
    code: Annotated[str, Field(description="Stable: branch on it.")]
    correlation_id: Annotated[str, Field(description="Finds the request in the operator's logs.")]
    errors: NotRequired[list[FieldErrorDocument]]
    used: NotRequired[StoredDocument]
    allowed: NotRequired[QuotaDocument]


def problem_document(problem: Problem, correlation_id: str) -> ProblemDocument:
    """Returns the document that reports `problem` to a client; the correlation id finds the request in the logs."""
    document: ProblemDocument = {
        "type": PROBLEMS[problem.code].urn,
        "title": problem.title,
        "status": problem.status.value,
        "detail": problem.detail,
        "code": problem.code,
        "correlation_id": correlation_id,
    }
    if problem.errors:
        document["errors"] = list(problem.errors)
    if problem.excess is not None:
        document["used"] = stored_document(problem.excess.used)
        document["allowed"] = quota_document(problem.excess.quota)
    return document
