"""GET /images…: tells which images there are and where each stands, leads to variants, and describes the API."""

from __future__ import annotations

import functools
import json
from http import HTTPStatus
from typing import Any

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.logging import correlation_paths
from aws_lambda_powertools.utilities.typing import LambdaContext

from darkroom import wiring
from darkroom.domain.listing import cursor_of, read_wish
from darkroom.http.documents import retry_after_seconds, status_document, status_path
from darkroom.http.router import Problem, caller_of, create_app, handles, json_response
from darkroom.http.routes import GET_IMAGE, GET_OPENAPI, GET_STATUS, GET_VARIANT, LIST_IMAGES
from darkroom.operations.list_images import list_images
from darkroom.operations.read_image import UnknownVariant, VariantMissing, VariantNotReady, read_image, variant_url
from darkroom.telemetry import logger, report_unreadable, tracer

ports = wiring.read_image()
app = create_app()


@handles(app, LIST_IMAGES)
def get_images() -> Response[str]:
    caller = caller_of(app)
    query = app.current_event.query_string_parameters
    wish = read_wish(limit=query.get("limit"), status=query.get("status"), cursor=query.get("cursor"))
    page = list_images(wish, tenant_id=caller.tenant_id, images=ports.images)
    if page.cut_short_by is not None:
        logger.warning("page cut short", extra={"cause": str(page.cut_short_by)})
    if page.unreadable:
        report_unreadable(page.unreadable)
    return json_response(
        HTTPStatus.OK,
        {
            "images": [status_document(image, ports.outputs.url_of) for image in page.images],
            "next": None if page.next is None else cursor_of(page.next),
        },
        {"Cache-Control": "no-store"},
    )


@handles(app, GET_STATUS)
def get_status(image_id: str) -> Response[str]:
    return _document(image_id, with_source=False)


@handles(app, GET_IMAGE)
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


@handles(app, GET_VARIANT)
def get_variant(image_id: str, name: str) -> Response[str]:
    caller = caller_of(app)
    try:
        url = variant_url(image_id, name, tenant_id=caller.tenant_id, images=ports.images, outputs=ports.outputs)
    except VariantNotReady as not_ready:
        status = not_ready.image.status
        again = retry_after_seconds(not_ready.image, wiring.clock())
        raise Problem(
            "variant_not_ready",
            f"The image is {status}. See {status_path(image_id)} for why, or ask again when it is done.",
            headers={} if again is None else {"Retry-After": str(again)},
        ) from not_ready
    except UnknownVariant as unknown:
        raise Problem(
            "unknown_variant", f"The image has no such variant. It has: {', '.join(unknown.names)}."
        ) from unknown
    except VariantMissing as missing:
        logger.error("variant missing", extra={"image_id": missing.image.image_id, "key": missing.variant.key})
        raise Problem(
            "variant_missing",
            "The variant was made and is not there any more. Tell the operator the image's id and the correlation id: "
            "it can be made again.",
        ) from missing
    return Response(
        status_code=HTTPStatus.TEMPORARY_REDIRECT.value, headers={"Location": url, "Cache-Control": "no-store"}
    )


@functools.cache
def _description() -> str:
    # Here, so that no other request waits for what describes them all.
    from darkroom.http.openapi import document  # noqa: PLC0415

    return json.dumps(document(app.access.access))


@handles(app, GET_OPENAPI)
def get_openapi() -> Response[str]:
    return Response(
        status_code=HTTPStatus.OK.value,
        content_type="application/json",
        body=_description(),
        headers={"Cache-Control": "private, max-age=300"},
    )


@logger.inject_lambda_context(correlation_id_path=correlation_paths.API_GATEWAY_HTTP, clear_state=True)
@tracer.capture_lambda_handler(capture_response=False)
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    return app.resolve(event, context)
