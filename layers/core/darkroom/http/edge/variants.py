"""The answers to the edge that asks for a variant which the store does not have."""

from __future__ import annotations

import json
from base64 import b64encode
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from darkroom.ports.edge import MadeVariant

MAX_BODY_BYTES = 4_400_000
"""The largest file in an answer. Base64 makes it 4/3 as large, and Lambda's payload ends at 6 MB
(https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html)."""

CLIENT_ERROR_SECONDS = 60
"""How long the edge keeps that there is no such variant: a tenant may allow it, or the image be done, soon after."""


def variant_answer(variant: MadeVariant, *, for_head: bool) -> dict[str, Any]:
    """The variant with the headers that its object has. For a large one a redirect to the very path that was asked for:
    its object is there now, so it leads to no other answer of this kind, and nobody keeps it."""
    name = variant.key.rpartition("/")[2]
    if len(variant.body) > MAX_BODY_BYTES:  # guard: on-request-large-redirect
        again = {"Cache-Control": "no-store", "Location": f"/t/{variant.image_id}/{name}"}
        return {"statusCode": HTTPStatus.FOUND.value, "headers": again}
    return {
        "statusCode": HTTPStatus.OK.value,
        "headers": {
            "Cache-Control": f"public, max-age={variant.viewer_seconds}, immutable",
            "x-amz-meta-cache-tag": variant.image_id,  # guard: on-request-answers-tagged
            "Content-Type": variant.media_type,
            "Content-Disposition": f'inline; filename="{name}"',
        },
        "body": "" if for_head else b64encode(variant.body).decode(),
        "isBase64Encoded": True,
    }


def not_served() -> dict[str, Any]:
    """The same for what nobody has allowed, and for what is not there, private or deleted."""
    return refused(
        HTTPStatus.NOT_FOUND,
        "unknown_variant",
        "There is no such variant of a public image. Its instructions are one that its owner allows, such as w_640, or "
        "are signed; each is spelled in one way, w_400-h_300-f_cover.",
    )


def refused(status: HTTPStatus, code: str, detail: str) -> dict[str, Any]:
    """The answer to what the client must ask for otherwise: the edge keeps it for a minute, as it keeps a 400 or 404
    that says so, and no 422 (https://docs.aws.amazon.com/AmazonCloudFront/latest/DeveloperGuide/HTTPStatusCodes.html)."""
    return _problem(status, code, detail, {"Cache-Control": f"public, max-age={CLIENT_ERROR_SECONDS}"})


def postponed(status: HTTPStatus, code: str, detail: str, *, retry_after_seconds: int) -> dict[str, Any]:
    """The answer to what may be asked for again soon: nobody keeps it."""
    headers = {"Cache-Control": "no-store", "Retry-After": str(retry_after_seconds)}  # guard: on-request-outage-unkept
    return _problem(status, code, detail, headers)


def _problem(status: HTTPStatus, code: str, detail: str, headers: dict[str, str]) -> dict[str, Any]:
    document = {"type": f"urn:darkroom:problem:{code}", "status": status.value, "code": code, "detail": detail}
    return {
        "statusCode": status.value,
        "headers": {"Content-Type": "application/problem+json", **headers},
        "body": json.dumps(document),
    }
