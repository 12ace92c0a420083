"""The one table of problems: whatever the API refuses, it refuses by a row of it (RFC 9457)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Annotated, NotRequired, TypedDict

from pydantic import Field

from darkroom.http.headers import ACCEPT, ALLOW, RETRY_AFTER, RETRY_AFTER_WHILE_UNFINISHED, Header


class FieldErrorDocument(TypedDict):
    """What is wrong with one field."""

    field: Annotated[str, Field(description="Its path: `variants.2.width`.")]
    message: str


@dataclass(frozen=True, kw_only=True)
class ProblemType:
    """One kind of problem. `example` is what its `detail` may say; `headers` are what it says beside, in headers; one
    with `example_errors` names the fields that are wrong."""

    code: str
    status: HTTPStatus
    title: str
    example: str
    headers: tuple[Header, ...] = ()
    example_errors: tuple[FieldErrorDocument, ...] = ()

    @property
    def urn(self) -> str:
        """The stable `type` of its documents (RFC 9457, section 3.1.1)."""
        return f"urn:darkroom:problem:{self.code.replace('_', '-')}"


_TABLE = (
    ProblemType(
        code="empty_upload",
        status=HTTPStatus.BAD_REQUEST,
        title="The upload is empty",
        example="The body is empty. Send the file's bytes: curl --data-binary @photo.jpg",
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
        title="The recipe cannot be used",
        example="The recipe cannot be used. variants.0.width: must be at most 8192.",
        example_errors=({"field": "variants.0.width", "message": "must be at most 8192"},),
    ),
    ProblemType(
        code="conflicting_parameters",
        status=HTTPStatus.BAD_REQUEST,
        title="Parameters that exclude each other",
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
        title="Unusable process_at",
        example="process_at must lie between now and 364 days from now.",
    ),
    ProblemType(
        code="invalid_delay", status=HTTPStatus.BAD_REQUEST, title="Unusable delay", example="A delay is at most P364D."
    ),
    ProblemType(
        code="invalid_expires_at",
        status=HTTPStatus.BAD_REQUEST,
        title="Unusable expires_at",
        example="expires_at must lie after the image's time, and at most 364 days after it.",
    ),
    ProblemType(
        code="invalid_schedule",
        status=HTTPStatus.BAD_REQUEST,
        title="The body does not say when",
        example="Say when: process_at with an instant, or delay with a duration.",
    ),
    ProblemType(
        code="invalid_upload",
        status=HTTPStatus.BAD_REQUEST,
        title="The upload cannot be announced so",
        example="The upload cannot be announced so. sha256: must be the file's SHA-256 in 64 hexadecimal digits.",
        example_errors=({"field": "sha256", "message": "must be the file's SHA-256 in 64 hexadecimal digits"},),
    ),
    ProblemType(
        code="invalid_form",
        status=HTTPStatus.BAD_REQUEST,
        title="The form cannot be used",
        example="It has no part `file`. Send the photo as the one part `file`: curl -F file=@photo.jpg",
    ),
    ProblemType(
        code="invalid_limit",
        status=HTTPStatus.BAD_REQUEST,
        title="Unusable limit",
        example="limit is a whole number from 1 to 100.",
    ),
    ProblemType(
        code="unknown_status",
        status=HTTPStatus.BAD_REQUEST,
        title="Unknown status",
        example="status is one or more of these, parted by commas: pending, processing, done.",
    ),
    ProblemType(
        code="invalid_cursor",
        status=HTTPStatus.BAD_REQUEST,
        title="Unusable cursor",
        example="cursor is the `next` of an earlier page, as it was. Leave it out to begin.",
    ),
    ProblemType(
        code="unreadable_body",
        status=HTTPStatus.BAD_REQUEST,
        title="The body cannot be read",
        example="The body is not base64 as the gateway sends it.",
    ),
    ProblemType(
        code="unknown_parameter",
        status=HTTPStatus.BAD_REQUEST,
        title="Unknown parameter",
        example="Only these parameters are known here: cursor, limit, status.",
    ),
    ProblemType(
        code="no_tenant",
        status=HTTPStatus.FORBIDDEN,
        title="The token names no tenant",
        example="The token's claim 'sub' names no tenant: that takes 1 to 128 letters, digits and . _ : | @ -.",
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
        code="unknown_path", status=HTTPStatus.NOT_FOUND, title="Unknown path", example="There is nothing at this path."
    ),
    ProblemType(
        code="method_not_allowed",
        status=HTTPStatus.METHOD_NOT_ALLOWED,
        title="Method not allowed",
        example="This path takes GET, PATCH, DELETE.",
        headers=(ALLOW,),
    ),
    ProblemType(
        code="not_scheduled",
        status=HTTPStatus.CONFLICT,
        title="The image is not scheduled",
        example="Only an image that is scheduled can be rescheduled. This one is done.",
    ),
    ProblemType(
        code="variant_not_ready",
        status=HTTPStatus.CONFLICT,
        title="The variant is not ready",
        example="The image is pending. See /images/{id}/status for why, or ask again when it is done.",
        headers=(RETRY_AFTER_WHILE_UNFINISHED,),
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
        example="The upload has 5242880 bytes; at most 4194304 can be sent in one request.",
    ),
    ProblemType(
        code="unsupported_format",
        status=HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
        title="Not an image that can be developed",
        example="The bytes are text, whatever the file is called. Send a JPEG, PNG, WebP or GIF image.",
    ),
    ProblemType(
        code="unsupported_media_type",
        status=HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
        title="The body is of another media type",
        example="Send the body as JSON: Content-Type: application/json",
        headers=(ACCEPT,),
    ),
    ProblemType(
        code="idempotency_key_reused",
        status=HTTPStatus.UNPROCESSABLE_CONTENT,
        title="Idempotency-Key reused",
        example="This Idempotency-Key was used with another photo, preset or recipe. Use a new key.",
    ),
    ProblemType(
        code="too_many_requests",
        status=HTTPStatus.TOO_MANY_REQUESTS,
        title="Too many requests",
        example="This tenant may send 10 requests a second, and 50 at once. Send the same request again after 1 "
        "seconds.",
        headers=(RETRY_AFTER,),
    ),
    ProblemType(
        code="overloaded",
        status=HTTPStatus.TOO_MANY_REQUESTS,
        title="More to do than can be done in time",
        example="There is more to do than can be done in time. Send the same request again after 300 seconds: by "
        "then what waits now will have been developed.",
        headers=(RETRY_AFTER,),
    ),
    ProblemType(
        code="internal",
        status=HTTPStatus.INTERNAL_SERVER_ERROR,
        title="Internal error",
        example="Something unexpected happened here. Tell the operator the correlation id.",
    ),
    ProblemType(
        code="variant_missing",
        status=HTTPStatus.INTERNAL_SERVER_ERROR,
        title="The variant is missing",
        example="The variant was made and is not there any more. Tell the operator the image's id and the "
        "correlation id: it can be made again.",
    ),
    ProblemType(
        code="unavailable",
        status=HTTPStatus.SERVICE_UNAVAILABLE,
        title="Temporarily unavailable",
        example="A service that this needs does not answer now. Send the same request again.",
        headers=(RETRY_AFTER,),
    ),
)

PROBLEMS = {row.code: row for row in _TABLE}
"""Every problem by its code."""


class Problem(Exception):
    """An error answer: `code` is one of PROBLEMS, `detail` says what to do, `errors` which fields are wrong, if any."""

    def __init__(
        self,
        code: str,
        detail: str,
        *,
        headers: Mapping[str, str] | None = None,
        errors: Sequence[FieldErrorDocument] = (),
    ) -> None:
        super().__init__(detail)
        self.code = code
        self.status, self.title = PROBLEMS[code].status, PROBLEMS[code].title
        self.detail = detail
        self.headers = dict(headers or {})
        self.errors = errors


class ProblemDocument(TypedDict):
    """An error (RFC 9457)."""

    type: Annotated[str, Field(description="Stable: an URN that ends with the code.")]
    title: str
    status: int
    detail: Annotated[str, Field(description="What to do, for people.")]
    code: Annotated[str, Field(description="Stable: branch on it.")]
    correlation_id: Annotated[str, Field(description="Finds the request in the operator's logs.")]
    errors: NotRequired[list[FieldErrorDocument]]


def problem_document(problem: Problem, correlation_id: str) -> ProblemDocument:
    """What a client is reported `problem`; the correlation id finds the request in the logs."""
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
    return document
