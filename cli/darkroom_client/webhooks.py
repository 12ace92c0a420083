"""A tenant's webhooks, through the client of an API."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any
from urllib.parse import urlencode

import httpx
from pydantic import TypeAdapter, ValidationError

from darkroom.domain.kernel.paths import deliveries_path, webhook_path
from darkroom.domain.webhooks.delivery import DELIVERY_ID_PATTERN, MAX_PAGE_DELIVERIES
from darkroom.http.webhooks.webhooks import (
    DeliveriesDocument,
    DeliveryDocument,
    NewWebhookDocument,
    WebhookDocument,
    WebhooksDocument,
)
from darkroom_client.client import Api, Refused

_CURSOR = re.compile(DELIVERY_ID_PATTERN)


class WebhooksClient:
    """The requests about webhooks. All raise ApiError.

    A request whose answer is lost is sent again. A webhook that was made by then is refused as one that exists, whose
    secret can be replaced; one that was removed is refused as unknown. A secret may be replaced twice, and then all
    three sign for a day. A second ping is one more event. All else has the same effect twice as once.
    """

    def __init__(self, api: Api) -> None:
        self._api = api

    def all(self) -> WebhooksDocument:
        """All webhooks of the tenant, the oldest first."""
        listed: WebhooksDocument = self._checked(WebhooksDocument, self._api.ask("GET", "/webhooks"))
        return listed

    def create(
        self,
        url: str,
        *,
        events: Sequence[str] | None,
        description: str | None,
        headers: Sequence[Mapping[str, Any]] | None = None,
    ) -> NewWebhookDocument:
        """A new webhook, with its secret. Without `events` it gets all."""
        stated = {"url": url, "events": events, "description": description, "headers": headers or None}
        body = {name: value for name, value in stated.items() if value is not None}
        answer = self._api.ask("POST", "/webhooks", body=body, answered_by=httpx.codes.CREATED)
        made: NewWebhookDocument = self._checked(NewWebhookDocument, answer)
        return made

    def get(self, webhook_id: str) -> WebhookDocument:
        """The webhook as it is now."""
        return self._webhook(webhook_id, "GET", webhook_path(webhook_id))

    def set_enabled(self, webhook_id: str, enabled: bool) -> WebhookDocument:
        """The webhook, enabled or disabled."""
        return self._webhook(webhook_id, "PATCH", webhook_path(webhook_id), body={"enabled": enabled})

    def change(self, webhook_id: str, changed: Mapping[str, Any]) -> WebhookDocument:
        """The webhook, of which these fields are changed."""
        return self._webhook(webhook_id, "PATCH", webhook_path(webhook_id), body=changed)

    def delete(self, webhook_id: str) -> None:
        """Deletes the webhook."""
        self._api.ask("DELETE", webhook_path(webhook_id), answered_by=httpx.codes.NO_CONTENT)

    def rotate(self, webhook_id: str) -> NewWebhookDocument:
        """The webhook with a new secret."""
        answer = self._api.ask("POST", f"{webhook_path(webhook_id)}/rotate")
        rotated: NewWebhookDocument = self._checked(NewWebhookDocument, answer, webhook_id)
        return rotated

    def ping(self, webhook_id: str) -> DeliveryDocument:
        """A delivery that was begun, of an event that only says hello."""
        answer = self._api.ask("POST", f"{webhook_path(webhook_id)}/ping", answered_by=httpx.codes.ACCEPTED)
        begun: DeliveryDocument = self._checked(DeliveryDocument, answer)
        return begun

    def resend(self, webhook_id: str, delivery_id: str) -> DeliveryDocument:
        """A delivery that is sent again."""
        path = f"{webhook_path(webhook_id)}/deliveries/{delivery_id}/resend"
        resent: DeliveryDocument = self._checked(
            DeliveryDocument, self._api.ask("POST", path, answered_by=httpx.codes.ACCEPTED)
        )
        return resent

    def recover(self, webhook_id: str, *, since: str | None) -> WebhookDocument:
        """The webhook, enabled; what failed of events since then (in the API's terms; None: all) is tried again."""
        body = {} if since is None else {"since": since}
        path = f"{webhook_path(webhook_id)}/recover"
        return self._webhook(webhook_id, "POST", path, body=body, answered_by=httpx.codes.ACCEPTED)

    def deliveries(self, webhook_id: str, *, limit: int, status: str | None, after: str | None) -> DeliveriesDocument:
        """A page of the webhook's deliveries, the newest event first, from after that id on: up to `limit`, and never
        more than the API gives at once."""
        asked = {"limit": min(limit, MAX_PAGE_DELIVERIES), "status": status, "cursor": after}
        query = urlencode({name: value for name, value in asked.items() if value is not None})
        answer = self._api.ask("GET", f"{deliveries_path(webhook_id)}?{query}")
        page: DeliveriesDocument = self._checked(DeliveriesDocument, answer)
        # guard: cli-delivery-cursor-checked
        if page["next"] is not None and _CURSOR.fullmatch(page["next"]) is None:
            raise self._unlike("an invalid next")
        return page

    def _webhook(self, webhook_id: str, method: str, path: str, **request: Any) -> WebhookDocument:
        document: WebhookDocument = self._checked(WebhookDocument, self._api.ask(method, path, **request), webhook_id)
        return document

    def _checked(self, kind: Any, document: dict[str, Any], asked_for: str | None = None) -> Any:
        """The document, if it is of that kind and about the webhook that was asked for: people paste what is shown of
        it into a shell, so a server may not say just anything. It keeps the keys that this version does not know."""
        listed = document.get("webhooks")
        for webhook in listed if isinstance(listed, list) else [document]:
            if isinstance(webhook, dict) and "events" in webhook:
                webhook.setdefault("headers", [])  # a stack of an earlier version has no such key
        try:
            _adapter(kind).validate_python(document, strict=True)  # guard: cli-webhook-answer-checked
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False, include_context=False)[0]
            raise self._unlike(f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from error
        if asked_for not in (None, document.get("id")):  # guard: cli-webhook-id-matches
            raise self._unlike("an invalid id")
        return document

    def _unlike(self, reason: str) -> Refused:
        return Refused(
            f"{self._api.url} did not answer as asked about webhooks ({reason}). Is this the address of a Darkroom "
            "API?",
            status_code=httpx.codes.OK,
        )


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)
