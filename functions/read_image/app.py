"""GET /images… and /usage: lists images, reports their status, redirects to variants, and tells what is used; and
describes the API."""

from __future__ import annotations

import functools
import json
from http import HTTPStatus
from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from darkroom.domain.images.listing import ListQuery
from darkroom.domain.kernel.errors import Rejected
from darkroom.domain.kernel.paths import status_path
from darkroom.domain.tenants.rate_limits import Policy, cost_of
from darkroom.http.api import create_app, handles
from darkroom.http.images.documents import retry_after_seconds
from darkroom.http.images.list_queries import read_list_query
from darkroom.http.images.responses import image_response, page_response
from darkroom.http.images.routes import GET_IMAGE, GET_STATUS, GET_VARIANT, LIST_IMAGES
from darkroom.http.kernel.callers import caller_of
from darkroom.http.kernel.openapi_route import GET_OPENAPI
from darkroom.http.kernel.parts import UsageRoute
from darkroom.http.kernel.problems import Problem
from darkroom.http.kernel.responses import NOT_STORED
from darkroom.http.kernel.router import Response, Router
from darkroom.http.tenants.protection import Price, protected
from darkroom.http.tenants.upload_tokens import upload_token_of
from darkroom.operations.images.list_images import list_images
from darkroom.operations.images.read_image import (
    UnknownVariant,
    VariantMissing,
    VariantNotReady,
    edge_urls,
    read_image,
    variant_url,
)
from darkroom.telemetry import entry_point, logger, report_unreadable
from darkroom.wiring.images.read_image import wire
from darkroom.wiring.kernel.parts import load_part
from darkroom.wiring.kernel.runtime import answering

readings = wire()
ports, rate_limit = readings.images, readings.rate_limit
app = create_app(within=answering, parts=readings.parts)
read = protected(rate_limit, price=Price(policy=Policy.READS))


def cost_of_page(app: Router) -> int:
    """What the page that is asked for may cost at most; a query that makes no sense costs what every request does."""
    try:
        query = app.read_once(_list_query)
        return cost_of(query.read_units + query.signing_units)  # guard: allowances-page-cost-by-rows, list-signing-cost
    except Rejected:
        return 1


def _list_query(app: Router) -> ListQuery:
    query = app.current_event.query_string_parameters
    return read_list_query(**{name: query.get(name) for name in LIST_IMAGES.query})


@handles(app, LIST_IMAGES, protected(rate_limit, price=Price(policy=Policy.READS, cost=cost_of_page)))
def get_images() -> Response:
    query = app.read_once(_list_query)
    page = list_images(ports, query, tenant_id=caller_of(app).tenant_id)
    if page.cut_short_by is not None:
        logger.warning("page cut short", extra={"cause": str(page.cut_short_by)})
    if page.unreadable:
        report_unreadable(page.unreadable)
    return page_response(
        page,
        ports.estimator.outlook,
        thumb_url_of=ports.outputs.url_of if query.with_thumbs else None,
        if_none_match=app.current_event.headers.get("if-none-match"),
        now=ports.clock(),
        edge=ports.edge,
    )


@handles(app, GET_STATUS, read)
def get_status(image_id: str) -> Response:
    return _answer(image_id, with_source=False)


@handles(app, GET_IMAGE, read)
def get_image(image_id: str) -> Response:
    return _answer(image_id, with_source=True)


def _answer(image_id: str, *, with_source: bool) -> Response:
    token = app.read_once(upload_token_of)
    image = read_image(
        ports,
        image_id,
        tenant_id=caller_of(app).tenant_id,
        upload_token=None if token is None else token.token_id,
    )
    if_none_match = app.current_event.headers.get("if-none-match")
    return image_response(
        image,
        ports.outputs.url_of,
        with_source=with_source,
        if_none_match=if_none_match,
        now=ports.clock(),
        outlook=ports.estimator.outlook(image),
        edge=lambda: edge_urls(ports, image),
    )


@handles(app, GET_VARIANT, read)
def get_variant(image_id: str, name: str) -> Response:
    caller, for_head = caller_of(app), app.current_event.http_method == "HEAD"  # guard: api-variant-signed-for-head
    try:
        url = variant_url(ports, image_id, name, tenant_id=caller.tenant_id, for_head=for_head)
    except VariantNotReady as not_ready:
        status = not_ready.image.status
        again = retry_after_seconds(not_ready.image, ports.clock())
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
        logger.error("variant missing", extra={"key": missing.variant.key})
        raise Problem(
            "variant_missing",
            "The variant was made, but its file is missing. Report the image's id and the correlation id to the "
            "operator, who can have it made again.",
        ) from missing
    return Response(status_code=HTTPStatus.TEMPORARY_REDIRECT.value, headers={"Location": url, **NOT_STORED})


if readings.usage is not None:
    usage: UsageRoute = load_part("http.usage.for_core")
    usage.add_route(app, read, readings.usage)


@functools.cache
def _description() -> str:
    from darkroom.http.description import description  # noqa: PLC0415 -- seldom needed

    return json.dumps(description(app.access.access, readings.parts))


@handles(app, GET_OPENAPI)
def get_openapi() -> Response:
    return Response(
        status_code=HTTPStatus.OK.value,
        content_type="application/json",
        body=_description(),
        headers={"Cache-Control": "private, max-age=300"},
    )


@entry_point(of_gateway=True, has_metrics=False)
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    return app.resolve(event, context)
