"""The answers of the API's functions: JSON, and problems."""

from __future__ import annotations

import json
from collections.abc import Mapping
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from aws_lambda_powertools.event_handler import Response

from darkroom.domain.paths import status_path
from darkroom.http.documents import (
    RETRY_AFTER_SECONDS,
    image_document,
    retry_after_seconds,
    status_document,
)
from darkroom.http.entity_tags import entity_tag, matches_entity_tag
from darkroom.http.problems import Problem, problem_document

if TYPE_CHECKING:
    from collections.abc import Callable

    from darkroom.domain.image import Image, Variant
    from darkroom.domain.instants import Milliseconds

NOT_STORED = {"Cache-Control": "no-store"}


def json_response(
    status: HTTPStatus, document: Mapping[str, Any], headers: Mapping[str, str] = NOT_STORED
) -> Response[str]:
    """A JSON answer."""
    return Response(
        status_code=status.value, content_type="application/json", body=json.dumps(document), headers=dict(headers)
    )


def problem_response(problem: Problem, correlation_id: str) -> Response[str]:
    """The answer for `problem`, as `application/problem+json`."""
    return Response(
        status_code=problem.status.value,
        content_type="application/problem+json",
        body=json.dumps(problem_document(problem, correlation_id)),
        headers={**NOT_STORED, **problem.headers},
    )


def headers_of_accepted(image: Image, *, replayed: bool, now: Milliseconds) -> dict[str, str]:
    """The headers of an answer to a request that made an image, or that repeats one with the same Idempotency-Key
    (`replayed`)."""
    return {
        "Location": status_path(image.image_id),
        "Retry-After": str(retry_after_seconds(image, now) or RETRY_AFTER_SECONDS),
        **NOT_STORED,
        **({"Idempotent-Replayed": "true"} if replayed else {}),
    }


def image_response(
    image: Image,
    url_of: Callable[[Variant], str],
    *,
    with_source: bool,
    if_none_match: str | None,
    now: Milliseconds,
) -> Response[str]:
    """The image in its current state, with the facts of its original if `with_source`; without a document if the
    client's copy is current."""
    tag, again = entity_tag(image, now), retry_after_seconds(image, now)
    # `no-cache` lets a client keep the document but makes it revalidate, so that the entity tag is useful.
    headers = {"ETag": tag, "Cache-Control": "private, no-cache"}
    if again is not None:
        headers["Retry-After"] = str(again)
    if matches_entity_tag(if_none_match, tag):
        return Response(status_code=HTTPStatus.NOT_MODIFIED.value, headers=dict(headers))
    return json_response(HTTPStatus.OK, (image_document if with_source else status_document)(image, url_of), headers)
