"""/webhooks…: a tenant's webhooks, their secrets and their deliveries."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from darkroom.domain.kernel.errors import Rejected
from darkroom.domain.kernel.paths import webhook_path
from darkroom.domain.tenants.rate_limits import Policy, cost_of
from darkroom.domain.webhooks.delivery import Delivery, DeliveryQuery
from darkroom.http.api import create_app, handles
from darkroom.http.kernel.callers import caller_of
from darkroom.http.kernel.requests import json_body
from darkroom.http.kernel.responses import NOT_STORED, json_response
from darkroom.http.kernel.router import Response, Router
from darkroom.http.tenants.protection import Price, protected
from darkroom.http.webhooks.routes import (
    DELETE_WEBHOOK,
    GET_WEBHOOK,
    LIST_DELIVERIES,
    LIST_WEBHOOKS,
    PATCH_WEBHOOK,
    PING_WEBHOOK,
    POST_WEBHOOK,
    RECOVER_WEBHOOK,
    RESEND_DELIVERY,
    ROTATE_SECRET,
)
from darkroom.http.webhooks.webhooks import (
    EVERYTHING,
    asked_headers,
    delivery_document,
    new_webhook_document,
    read_delivery_query,
    read_new_webhook,
    read_recovery,
    read_webhook_change,
    webhook_document,
)
from darkroom.operations.webhooks.manage_webhooks import (
    Change,
    change_webhook,
    create_webhook,
    list_deliveries,
    list_webhooks,
    ping_webhook,
    read_webhook,
    recover_webhook,
    remove_webhook,
    resend_delivery,
    rotate_secret,
)
from darkroom.ports.kernel import UnreadableRow
from darkroom.telemetry import entry_point, logger, report_unreadable
from darkroom.wiring.kernel.runtime import answering
from darkroom.wiring.webhooks.manage_webhooks import wire

ports, rate_limit = wire()
app = create_app(within=answering)
read, write = protected(rate_limit, price=Price(policy=Policy.READS)), protected(rate_limit)


@handles(app, POST_WEBHOOK, write)
def post_webhook() -> Response:
    asked = read_new_webhook(json_body(app))
    endpoint, secret = create_webhook(
        ports,
        caller_of(app).tenant_id,
        url=asked["url"],
        events=asked.get("events", EVERYTHING),
        description=asked.get("description"),
        headers=asked_headers(asked.get("headers", ())),
    )
    logger.info("webhook created", extra={"webhook_id": endpoint.endpoint_id})
    headers = {"Location": webhook_path(endpoint.endpoint_id), **NOT_STORED}
    return json_response(HTTPStatus.CREATED, new_webhook_document(endpoint, secret, now=ports.clock()), headers)


@handles(app, LIST_WEBHOOKS, read)
def get_webhooks() -> Response:
    (endpoints, unreadable), now = list_webhooks(ports, caller_of(app).tenant_id), ports.clock()
    report_unreadable(unreadable)
    return json_response(HTTPStatus.OK, {"webhooks": [webhook_document(endpoint, now=now) for endpoint in endpoints]})


@handles(app, GET_WEBHOOK, read)
def get_webhook(webhook_id: str) -> Response:
    endpoint = read_webhook(ports, caller_of(app).tenant_id, webhook_id)
    return json_response(HTTPStatus.OK, webhook_document(endpoint, now=ports.clock()))


@handles(app, PATCH_WEBHOOK, write)
def patch_webhook(webhook_id: str) -> Response:
    asked = read_webhook_change(json_body(app))
    change = Change(
        url=asked.get("url"),
        events=asked.get("events"),
        description=asked["description"] or "" if "description" in asked else None,
        headers=asked_headers(asked["headers"]) if "headers" in asked else None,
        is_enabled=asked.get("enabled"),
    )
    endpoint = change_webhook(ports, caller_of(app).tenant_id, webhook_id, change)
    logger.info("webhook changed", extra={"webhook_id": webhook_id, "fields": sorted(asked)})
    return json_response(HTTPStatus.OK, webhook_document(endpoint, now=ports.clock()))


@handles(app, DELETE_WEBHOOK, write)
def delete_webhook(webhook_id: str) -> Response:
    remove_webhook(ports, caller_of(app).tenant_id, webhook_id)
    logger.info("webhook deleted", extra={"webhook_id": webhook_id})
    return Response(status_code=HTTPStatus.NO_CONTENT.value, headers=dict(NOT_STORED))


@handles(app, ROTATE_SECRET, write)
def post_rotate(webhook_id: str) -> Response:
    endpoint, secret = rotate_secret(ports, caller_of(app).tenant_id, webhook_id)
    logger.info("secret rotated", extra={"webhook_id": webhook_id})
    return json_response(HTTPStatus.OK, new_webhook_document(endpoint, secret, now=ports.clock()))


@handles(app, PING_WEBHOOK, write)
def post_ping(webhook_id: str) -> Response:
    delivery = ping_webhook(ports, caller_of(app).tenant_id, webhook_id)
    logger.info("webhook pinged", extra={"webhook_id": webhook_id, "delivery_id": delivery.delivery_id})
    return json_response(HTTPStatus.ACCEPTED, delivery_document(delivery))


@handles(app, RECOVER_WEBHOOK, write)
def post_recover(webhook_id: str) -> Response:
    now = ports.clock()
    since = read_recovery(json_body(app), now=now)
    endpoint = recover_webhook(ports, caller_of(app).tenant_id, webhook_id, since=since)
    logger.info("recovery begun", extra={"webhook_id": webhook_id, "since": since})
    return json_response(HTTPStatus.ACCEPTED, webhook_document(endpoint, now=now))


@handles(app, RESEND_DELIVERY, write)
def post_resend(webhook_id: str, delivery_id: str) -> Response:
    delivery = resend_delivery(ports, caller_of(app).tenant_id, webhook_id, delivery_id)
    logger.info("delivery resent", extra={"webhook_id": webhook_id, "delivery_id": delivery_id})
    return json_response(HTTPStatus.ACCEPTED, delivery_document(delivery))


def cost_of_page(app: Router) -> int:
    """What the page that is asked for may cost at most; a query that makes no sense costs what every request does."""
    try:
        return cost_of(app.read_once(_delivery_query).read_units)
    except Rejected:
        return 1


def _delivery_query(app: Router) -> DeliveryQuery:
    query = app.current_event.query_string_parameters
    return read_delivery_query(limit=query.get("limit"), status=query.get("status"), cursor=query.get("cursor"))


@handles(app, LIST_DELIVERIES, protected(rate_limit, price=Price(policy=Policy.READS, cost=cost_of_page)))
def get_deliveries(webhook_id: str) -> Response:
    query = app.read_once(_delivery_query)
    page = list_deliveries(
        ports, caller_of(app).tenant_id, webhook_id, limit=query.limit, after=query.after, status=query.status
    )
    report_unreadable([row for row in page.deliveries if isinstance(row, UnreadableRow)])
    return json_response(
        HTTPStatus.OK,
        {
            "deliveries": [delivery_document(row) for row in page.deliveries if isinstance(row, Delivery)],
            "next": page.next,
        },
    )


@entry_point(of_gateway=True, has_metrics=False)
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    return app.resolve(event, context)
