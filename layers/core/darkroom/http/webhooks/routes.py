"""The routes of webhooks and their deliveries, in the one table of the API's routes."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated

from pydantic import Field

from darkroom.domain.kernel.sizes import limit_in_words
from darkroom.domain.webhooks.delivery import DELIVERY_ID_PATTERN, MAX_PAGE_DELIVERIES, DeliveryStatus
from darkroom.domain.webhooks.endpoint_ids import MAX_ENDPOINTS
from darkroom.http.images.documents import WebhookId
from darkroom.http.kernel.headers import EXAMPLE_ID, EXAMPLE_WEBHOOK_ID, Header
from darkroom.http.kernel.route import Body, Parameter, Route, RouteAnswer, one_of
from darkroom.http.webhooks.webhooks import (
    DEFAULT_PAGE_DELIVERIES,
    MAX_RECOVERY_BYTES,
    MAX_WEBHOOK_BYTES,
    DeliveriesDocument,
    DeliveryDocument,
    NewWebhook,
    NewWebhookDocument,
    Recovery,
    WebhookChange,
    WebhookDocument,
    WebhooksDocument,
)

EXAMPLE_URL = "https://shop.example.com/hooks/darkroom"
"""The URL of the webhook in all examples."""

LOCATION_OF_WEBHOOK = Header(
    "Location", str, "The webhook, relative to the API's root.", f"/webhooks/{EXAMPLE_WEBHOOK_ID}"
)

JSON_TYPE = ("application/json",)

IN_JSON = ("unreadable_body", "unsupported_media_type")
"""The problems of every request that sends JSON."""

_WEBHOOK_ID = Parameter(
    name="id", place="path", kind=WebhookId, description="The webhook's id.", example=EXAMPLE_WEBHOOK_ID
)

_OF_A_WEBHOOK = ("unknown_webhook", "unknown_path", "too_many_requests", "unavailable")
"""The problems of every request about one webhook."""

POST_WEBHOOK = Route(
    method="POST",
    path="/webhooks",
    name="postWebhook",
    summary="Make a webhook",
    description=(
        f"Has events delivered to a URL, at most {MAX_ENDPOINTS} for a tenant. Each is signed with the secret in the "
        "answer, as Standard Webhooks says. `webhooks` in this document describes what is sent."
    ),
    body=Body(
        description=f"The webhook, in at most {limit_in_words(MAX_WEBHOOK_BYTES)}.",
        media_types=JSON_TYPE,
        kind=NewWebhook,
        examples={
            "some": {"url": EXAMPLE_URL, "events": ["image.done", "image.failed"], "description": "the shop"},
            "headers": {"url": EXAMPLE_URL, "headers": [{"name": "Authorization", "value": "Bearer 0b6jkzmw1xb0eztz"}]},
        },
    ),
    answers=(
        RouteAnswer(
            status=HTTPStatus.CREATED,
            description="The webhook, with its secret, which no other answer shows.",
            kind=NewWebhookDocument,
            headers=(LOCATION_OF_WEBHOOK,),
        ),
    ),
    problems=(
        *IN_JSON,
        "invalid_webhook",
        "invalid_url",
        "invalid_headers",
        "webhook_exists",
        "too_many_webhooks",
        "too_many_requests",
        "unavailable",
    ),
    is_rate_limited=True,
)

LIST_WEBHOOKS = Route(
    method="GET",
    path="/webhooks",
    name="listWebhooks",
    summary="List webhooks",
    description="All webhooks, the oldest first.",
    answers=(RouteAnswer(status=HTTPStatus.OK, description="All of them.", kind=WebhooksDocument),),
    problems=("too_many_requests", "unavailable"),
    is_rate_limited=True,
)

GET_WEBHOOK = Route(
    method="GET",
    path="/webhooks/{id}",
    name="getWebhook",
    summary="Read a webhook",
    description="Whether it is enabled, fails or rests, and since when.",
    parameters=(_WEBHOOK_ID,),
    answers=(RouteAnswer(status=HTTPStatus.OK, description="The webhook as it is now.", kind=WebhookDocument),),
    problems=_OF_A_WEBHOOK,
    is_rate_limited=True,
)

PATCH_WEBHOOK = Route(
    method="PATCH",
    path="/webhooks/{id}",
    name="changeWebhook",
    summary="Change a webhook",
    description="Changes its URL, events, description or headers, or disables or enables it. Its secret stays.",
    parameters=(_WEBHOOK_ID,),
    body=Body(
        description=f"The change, in at most {limit_in_words(MAX_WEBHOOK_BYTES)}.",
        media_types=JSON_TYPE,
        kind=WebhookChange,
        examples={"events": {"events": ["image.*"]}, "enable": {"enabled": True}},
    ),
    answers=(RouteAnswer(status=HTTPStatus.OK, description="The webhook after the change.", kind=WebhookDocument),),
    problems=(*IN_JSON, "invalid_webhook", "invalid_url", "invalid_headers", "webhook_exists", *_OF_A_WEBHOOK),
    is_rate_limited=True,
)

DELETE_WEBHOOK = Route(
    method="DELETE",
    path="/webhooks/{id}",
    name="deleteWebhook",
    summary="Delete a webhook",
    description="Nothing is sent to it any more, besides what is on its way at this moment.",
    parameters=(_WEBHOOK_ID,),
    answers=(RouteAnswer(status=HTTPStatus.NO_CONTENT, description="Deleted."),),
    problems=_OF_A_WEBHOOK,
    is_rate_limited=True,
)

ROTATE_SECRET = Route(
    method="POST",
    path="/webhooks/{id}/rotate",
    name="rotateSecret",
    summary="Replace a webhook's secret",
    description="Makes a new secret, with which everything is signed from now on. For a day, those before it sign too.",
    parameters=(_WEBHOOK_ID,),
    answers=(
        RouteAnswer(
            status=HTTPStatus.OK,
            description="The webhook, with its new secret, which no other answer shows.",
            kind=NewWebhookDocument,
        ),
    ),
    problems=("too_many_secrets", *_OF_A_WEBHOOK),
    is_rate_limited=True,
)

PING_WEBHOOK = Route(
    method="POST",
    path="/webhooks/{id}/ping",
    name="pingWebhook",
    summary="Try a webhook",
    description=(
        "Sends an event `webhook.ping`, at once even to a webhook that rests. Its deliveries show what came of it."
    ),
    parameters=(_WEBHOOK_ID,),
    answers=(
        RouteAnswer(status=HTTPStatus.ACCEPTED, description="The delivery that was begun.", kind=DeliveryDocument),
    ),
    problems=("webhook_disabled", *_OF_A_WEBHOOK),
    is_rate_limited=True,
)

RECOVER_WEBHOOK = Route(
    method="POST",
    path="/webhooks/{id}/recover",
    name="recoverWebhook",
    summary="Try failed deliveries again",
    description=(
        "Enables the webhook, and tries again what was not delivered, slowly at first; what was delivered is not sent "
        "again. Deliveries are kept for 30 days."
    ),
    parameters=(_WEBHOOK_ID,),
    body=Body(
        description=f"Since when, in at most {limit_in_words(MAX_RECOVERY_BYTES)}.",
        media_types=JSON_TYPE,
        kind=Recovery,
        is_required=False,
        examples={"instant": {"since": "2026-11-20T09:00:00Z"}, "duration": {"since": "P2D"}},
    ),
    answers=(
        RouteAnswer(
            status=HTTPStatus.ACCEPTED, description="The webhook, whose recovery has begun.", kind=WebhookDocument
        ),
    ),
    problems=(*IN_JSON, "invalid_since", *_OF_A_WEBHOOK),
    is_rate_limited=True,
)

LIST_DELIVERIES = Route(
    method="GET",
    path="/webhooks/{id}/deliveries",
    name="listDeliveries",
    summary="List a webhook's deliveries",
    description=(
        "What was sent or waits, the newest event first, each with its latest attempts; for 30 days. A page may have "
        "fewer deliveries than `limit`, even none, without being the last: only `next` says so."
    ),
    parameters=(
        _WEBHOOK_ID,
        Parameter(
            name="limit",
            place="query",
            kind=Annotated[int, Field(ge=1, le=MAX_PAGE_DELIVERIES)],
            description=f"The most deliveries of a page; {DEFAULT_PAGE_DELIVERIES} by default.",
            example=20,
        ),
        Parameter(
            name="status",
            place="query",
            kind=one_of(DeliveryStatus),
            description="Only deliveries with this status.",
            example="failed",
        ),
        Parameter(
            name="cursor",
            place="query",
            kind=Annotated[str, Field(pattern=f"^{DELIVERY_ID_PATTERN}$")],
            description="The `next` of the previous page.",
            example=f"01795251601300-{EXAMPLE_ID}-3",
        ),
    ),
    answers=(RouteAnswer(status=HTTPStatus.OK, description="A page of the list.", kind=DeliveriesDocument),),
    problems=("invalid_limit", "unknown_status", "invalid_cursor", *_OF_A_WEBHOOK),
    is_rate_limited=True,
)

RESEND_DELIVERY = Route(
    method="POST",
    path="/webhooks/{id}/deliveries/{delivery_id}/resend",
    name="resendDelivery",
    summary="Send a delivery again",
    description=(
        "Sends the same event once more, with the same id, whatever became of the delivery: at once, and if it fails, "
        "as often as a new one. One that is on its way, or was in the last seconds, is not sent twice."
    ),
    parameters=(
        _WEBHOOK_ID,
        Parameter(
            name="delivery_id",
            place="path",
            kind=Annotated[str, Field(pattern=f"^{DELIVERY_ID_PATTERN}$")],
            description="The delivery's id.",
            example=f"01795251601300-{EXAMPLE_ID}-3",
        ),
    ),
    answers=(RouteAnswer(status=HTTPStatus.ACCEPTED, description="The delivery as it is now.", kind=DeliveryDocument),),
    problems=("webhook_disabled", "unknown_delivery", *_OF_A_WEBHOOK),
    is_rate_limited=True,
)

WEBHOOK_ROUTES = (
    POST_WEBHOOK,
    LIST_WEBHOOKS,
    GET_WEBHOOK,
    PATCH_WEBHOOK,
    DELETE_WEBHOOK,
    ROTATE_SECRET,
    PING_WEBHOOK,
    RECOVER_WEBHOOK,
    LIST_DELIVERIES,
    RESEND_DELIVERY,
)
"""Every route of webhooks, in the order in which a client meets them."""
