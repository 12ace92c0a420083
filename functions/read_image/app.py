"""GET /images…: tells which images there are and where each stands, and leads to variants."""

from __future__ import annotations

import re
from http import HTTPStatus
from typing import Any

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.logging import correlation_paths
from aws_lambda_powertools.utilities.typing import LambdaContext

from darkroom import wiring
from darkroom.api import Problem, caller_of, create_app, json_response
from darkroom.domain.listing import cursor_of, read_wish
from darkroom.domain.status_document import retry_after_seconds, status_document, status_path
from darkroom.operations.list_images import list_images
from darkroom.operations.read_image import UnknownVariant, VariantNotReady, read_image, variant_url
from darkroom.telemetry import logger, tracer

ports = wiring.read_image()
app = create_app()


@app.get("/images")
def get_images() -> Response[str]:
    caller = caller_of(app)
    query = app.current_event.query_string_parameters
    wish = read_wish(limit=query.get("limit"), status=query.get("status"), cursor=query.get("cursor"))
    page = list_images(wish, tenant_id=caller.tenant_id, images=ports.images)
    return json_response(
        HTTPStatus.OK,
        {
            "images": [status_document(image, ports.outputs.url_of) for image in page.images],
            "next": None if page.next is None else cursor_of(page.next),
        },
        {"Cache-Control": "no-store"},
    )


@app.get("/images/<image_id>/status")
def get_status(image_id: str) -> Response[str]:
    return _document(image_id, with_source=False)


@app.get("/images/<image_id>")
def get_image(image_id: str) -> Response[str]:
    return _document(image_id, with_source=True)


def _document(image_id: str, *, with_source: bool) -> Response[str]:
    answer = read_image(
        image_id,
        tenant_id=caller_of(app).tenant_id,
        if_none_match=app.current_event.headers.get("if-none-match"),
        with_source=with_source,
        images=ports.images,
        outputs=ports.outputs,
        clock=wiring.clock,
    )
    # `no-cache` lets a client keep the document but asks it to revalidate, so that the entity tag is of use.
    headers = {"ETag": answer.entity_tag, "Cache-Control": "private, no-cache"}
    if answer.retry_after_seconds is not None:
        headers["Retry-After"] = str(answer.retry_after_seconds)
    if answer.document is None:
        return Response(status_code=HTTPStatus.NOT_MODIFIED.value, headers=dict(headers))
    return json_response(HTTPStatus.OK, answer.document, headers)


@app.get("/images/<image_id>/variants/<name>")
def get_variant(image_id: str, name: str) -> Response[str]:
    caller = caller_of(app)
    try:
        url = variant_url(image_id, name, tenant_id=caller.tenant_id, images=ports.images, outputs=ports.outputs)
    except VariantNotReady as not_ready:
        status = not_ready.image.status
        again = retry_after_seconds(not_ready.image, wiring.clock())
        raise Problem(
            status=HTTPStatus.CONFLICT,
            code="variant_not_ready",
            detail=f"The image is {status}. See {status_path(image_id)} for why, or ask again when it is done.",
            headers={} if again is None else {"Retry-After": str(again)},
        ) from not_ready
    except UnknownVariant as unknown:
        raise Problem(
            status=HTTPStatus.NOT_FOUND,
            code="unknown_variant",
            detail=f"The image has no such variant. It has: {', '.join(unknown.names)}.",
        ) from unknown
    return Response(
        status_code=HTTPStatus.TEMPORARY_REDIRECT.value, headers={"Location": url, "Cache-Control": "no-store"}
    )


# Whatever no route takes comes here too, so that an unknown path and a wrong method are problems like any other error.
_METHODS = (
    (re.compile(r"/images"), "POST, GET"),
    (re.compile(r"/uploads"), "POST"),
    (re.compile(r"/images/[^/]+"), "GET, PATCH, DELETE"),
    (re.compile(r"/images/[^/]+(/status|/variants/[^/]+)"), "GET"),
)


@app.not_found
def no_route(_: Exception) -> Response[str]:
    path = app.current_event.path
    for pattern, methods in _METHODS:
        if pattern.fullmatch(path):
            raise Problem(
                status=HTTPStatus.METHOD_NOT_ALLOWED,
                code="method_not_allowed",
                detail=f"This path takes {methods}.",
                headers={"Allow": methods},
            )
    raise Problem(
        status=HTTPStatus.NOT_FOUND,
        code="unknown_path",
        detail="There is nothing at this path. Photos are sent with POST /images, large ones with POST /uploads.",
    )


@logger.inject_lambda_context(correlation_id_path=correlation_paths.API_GATEWAY_HTTP, clear_state=True)
@tracer.capture_lambda_handler(capture_response=False)
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    return app.resolve(event, context)
