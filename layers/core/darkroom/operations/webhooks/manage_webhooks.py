"""What a tenant may do with its endpoints: make, read, change, remove, try, and recover what was not delivered."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from darkroom.bookkeeping import bookkeeping
from darkroom.domain.events.event import written_event
from darkroom.domain.kernel.errors import Rejected, Retryable
from darkroom.domain.kernel.instants import Milliseconds
from darkroom.domain.webhooks.custom_headers import AskedHeader
from darkroom.domain.webhooks.delivery import (
    PING,
    Delivery,
    DeliveryStatus,
    is_delivery_id,
    message_for,
    new_delivery,
    resend,
)
from darkroom.domain.webhooks.endpoint import (
    LOOK_SECONDS,
    MAX_SECRETS,
    QUIET_SECONDS,
    SECOND,
    DisabledBy,
    Endpoint,
    as_seen,
    at_one_host,
    disable,
    enable,
    is_held,
    recover,
    reserve_slot,
    rotate,
    signing_secrets,
    wake,
)
from darkroom.domain.webhooks.endpoint_ids import MAX_ENDPOINTS, RANDOM_BYTES, endpoint_id_from, place_of
from darkroom.domain.webhooks.errors import UnknownDelivery, UnknownWebhook
from darkroom.domain.webhooks.webhook_signature import secret_of, secret_text
from darkroom.operations.webhooks.change_endpoint import TRIES, change_endpoint, end_rest_of_host
from darkroom.operations.webhooks.read_host import read_host
from darkroom.operations.webhooks.set_headers import require_same_host, set_headers
from darkroom.ports.kernel import Clock, Fenced, Randomness, Secret, UnreadableRow
from darkroom.ports.webhooks import Deliveries, DeliveryPage, DeliveryQueue, Endpoints


@dataclass(frozen=True, kw_only=True)
class ManageWebhooksPorts:
    """What managing endpoints needs; `check_url` raises UrlRefused for a URL to which nothing is ever sent, and
    `source` names the stack in events."""

    endpoints: Endpoints
    deliveries: Deliveries
    delivery_queue: DeliveryQueue
    master_secret: Secret
    check_url: Callable[[str], None]
    source: str
    clock: Clock
    randomness: Randomness


@dataclass(frozen=True, kw_only=True)
class Change:
    """What a client changes of an endpoint; None leaves it is. An empty `description` removes it."""

    url: str | None = None
    events: tuple[str, ...] | None = None
    description: str | None = None
    headers: tuple[AskedHeader, ...] | None = None
    is_enabled: bool | None = None


def create_webhook(
    ports: ManageWebhooksPorts,
    tenant_id: str,
    *,
    url: str,
    events: tuple[str, ...],
    description: str | None,
    headers: tuple[AskedHeader, ...] = (),
) -> tuple[Endpoint, str]:
    """A new endpoint of the tenant, and its secret, which nothing tells again.

    Raises UrlRefused, and Rejected with the code `too_many_webhooks`, `webhook_exists` or `invalid_headers`.
    """
    ports.check_url(url)  # guard: webhook-url-checked-first
    master = ports.master_secret.current().text.encode()
    for _ in range(TRIES):
        existing = ports.endpoints.of_tenant(tenant_id)
        _require_new(existing, url)
        taken = {place_of(row.row_id if isinstance(row, UnreadableRow) else row.endpoint_id) for row in existing}
        place = next((place for place in range(MAX_ENDPOINTS) if place not in taken), None)
        if place is None:
            raise Rejected(
                "too_many_webhooks",
                f"There are {MAX_ENDPOINTS} webhooks already, as many as may be. Delete one that is no longer needed, "
                "or let one receive more types of events.",
            )
        endpoint = Endpoint(
            tenant_id=tenant_id,
            endpoint_id=endpoint_id_from(place, ports.randomness(RANDOM_BYTES)),
            url=url,
            events=events,
            description=description or None,
            created_at=ports.clock(),
            # guard: unreadable-endpoint-hourly-look
            due_at=ports.clock() + QUIET_SECONDS * SECOND,  # as every enabled one has it
        )
        endpoint = set_headers(endpoint, headers, before=endpoint, master=master, randomness=ports.randomness)
        if ports.endpoints.create(endpoint):
            return endpoint, _secret(master, endpoint)
    raise Retryable("other webhooks are being made at the same time")


def _require_new(existing: Sequence[Endpoint | UnreadableRow], url: str, but: str | None = None) -> None:
    for endpoint in existing:
        if isinstance(endpoint, Endpoint) and endpoint.url == url and endpoint.endpoint_id != but:
            raise Rejected(
                "webhook_exists",
                f"The webhook {endpoint.endpoint_id} has this URL already: change it with PATCH, or rotate its secret "
                "if you have lost it.",
            )


def _secret(master: bytes, endpoint: Endpoint) -> str:
    newest = endpoint.secrets[0].generation
    return secret_text(
        secret_of(master, tenant_id=endpoint.tenant_id, endpoint_id=endpoint.endpoint_id, generation=newest)
    )


def list_webhooks(ports: ManageWebhooksPorts, tenant_id: str) -> tuple[Sequence[Endpoint], Sequence[UnreadableRow]]:
    """All endpoints of the tenant, the oldest first, and those that cannot be read."""
    rows = ports.endpoints.of_tenant(tenant_id)
    seen = [as_seen(at_one_host(row, rows)) for row in rows if isinstance(row, Endpoint)]
    return sorted(seen, key=lambda endpoint: endpoint.created_at), [
        row for row in rows if isinstance(row, UnreadableRow)
    ]


def read_webhook(ports: ManageWebhooksPorts, tenant_id: str, endpoint_id: str) -> Endpoint:
    """The tenant's endpoint as it is seen: if its host rests, it does. Raises UnknownWebhook."""
    return as_seen(_host(ports, tenant_id, endpoint_id))


def _host(ports: ManageWebhooksPorts, tenant_id: str, endpoint_id: str) -> tuple[Endpoint, ...]:
    host = read_host(ports.endpoints, tenant_id, endpoint_id)
    if not host:
        raise UnknownWebhook
    return host


def change_webhook(ports: ManageWebhooksPorts, tenant_id: str, endpoint_id: str, change: Change) -> Endpoint:
    """The endpoint as changed. Raises UnknownWebhook, UrlRefused, and Rejected with the code `webhook_exists` or
    `invalid_headers`."""
    if change.url is not None:
        ports.check_url(change.url)
        _require_new(ports.endpoints.of_tenant(tenant_id), change.url, but=endpoint_id)
    master = b"" if change.headers is None else ports.master_secret.current().text.encode()

    def decide(endpoint: Endpoint) -> Endpoint:
        after = endpoint
        if change.url is not None:
            # guard: webhook-new-url-no-points
            after = replace(after, url=change.url, quick=0)  # of another receiver nothing is known
        if change.events is not None:
            after = replace(after, events=change.events)
        if change.description is not None:
            after = replace(after, description=change.description or None)
        if change.headers is not None:
            after = set_headers(after, change.headers, before=endpoint, master=master, randomness=ports.randomness)
        for header in after.headers if change.headers is None else ():
            require_same_host(endpoint, after, header)
        if change.is_enabled is True:
            after = enable(after, now=ports.clock())
        elif change.is_enabled is False:
            after = disable(after, DisabledBy.CLIENT, now=ports.clock())
        return after

    changed = _change(ports, tenant_id, endpoint_id, decide)
    if change.is_enabled is True:
        end_rest_of_host(ports.endpoints, changed, ports.clock)
    return changed


def remove_webhook(ports: ManageWebhooksPorts, tenant_id: str, endpoint_id: str) -> None:
    """Removes the endpoint; nothing is sent to it any more, but what is on its way at this moment. Raises
    UnknownWebhook."""
    ports.endpoints.remove(tenant_id, read_webhook(ports, tenant_id, endpoint_id).endpoint_id)


def rotate_secret(ports: ManageWebhooksPorts, tenant_id: str, endpoint_id: str) -> tuple[Endpoint, str]:
    """The endpoint with a new secret, and that secret, which nothing tells again. The earlier one signs, too, for a
    day. Raises UnknownWebhook, and Rejected with the code `too_many_secrets`."""
    master = ports.master_secret.current().text.encode()

    def decide(endpoint: Endpoint) -> Endpoint:
        rotated = rotate(endpoint, now=ports.clock())
        if rotated is None:
            first = min(secret.until for secret in signing_secrets(endpoint, now=ports.clock()) if secret.until)
            raise Rejected(
                "too_many_secrets",
                f"{MAX_SECRETS} secrets of this webhook sign at present, each for a day after it was replaced. Try "
                f"again in {max(1, (first - ports.clock()) // 60_000)} minutes.",
            )
        return rotated

    endpoint = _change(ports, tenant_id, endpoint_id, decide)
    return endpoint, _secret(master, endpoint)


def recover_webhook(ports: ManageWebhooksPorts, tenant_id: str, endpoint_id: str, *, since: Milliseconds) -> Endpoint:
    """The endpoint, enabled; deliveries of events since then that have failed are tried again, slowly at first. Raises
    UnknownWebhook."""
    changed = _change(ports, tenant_id, endpoint_id, lambda row: recover(row, since=since, now=ports.clock()))
    end_rest_of_host(ports.endpoints, changed, ports.clock)
    return changed


def ping_webhook(ports: ManageWebhooksPorts, tenant_id: str, endpoint_id: str) -> Delivery:
    """A delivery of an event that only says hello. It is sent even if the endpoint rests, so that its owner need not
    wait to see that it works again. Raises UnknownWebhook, and Rejected with the code `webhook_disabled`."""
    now = ports.clock()
    host = _host(ports, tenant_id, endpoint_id)
    _require_enabled(host[0])
    event_id = f"ping-{ports.randomness(8).hex()}"
    body = written_event(
        event_id=event_id,
        event_type=PING,
        source=ports.source,
        subject=endpoint_id,
        time=now,
        data={"tenant_id": tenant_id, "webhook_id": endpoint_id},
    )
    delivery = ports.deliveries.create(
        new_delivery(
            endpoint_id=endpoint_id,
            tenant_id=tenant_id,
            event_id=event_id,
            event_type=PING,
            time=now,
            body=body,
            now=now,
        )
    )

    def decide(current: Endpoint) -> Endpoint:
        woken = wake(current, now + LOOK_SECONDS * SECOND, now=now)
        if woken.rests_until is not None:
            woken = replace(woken, rests_until=now, probe=delivery.delivery_id)
        # guard: webhook-called-tries-resting-host
        return reserve_slot(woken, delivery.delivery_id, now=now) if is_held(host) else woken

    _change(ports, tenant_id, endpoint_id, decide)
    with bookkeeping("message not sent", delivery_id=delivery.delivery_id):  # then the sweeper sends it
        ports.delivery_queue.send(message_for(delivery))
    return delivery


def resend_delivery(ports: ManageWebhooksPorts, tenant_id: str, endpoint_id: str, delivery_id: str) -> Delivery:
    """The delivery, which is sent once more, with the same event id; at once even if the endpoint rests and has room.

    One that is on its way, or was a moment ago, is not sent twice. Raises UnknownWebhook, UnknownDelivery, and Rejected
    with the code `webhook_disabled`.
    """
    host = _host(ports, tenant_id, endpoint_id)
    delivery = _delivery(ports, endpoint_id, delivery_id)
    _require_enabled(host[0])  # guard: resend-disabled-refused
    now = ports.clock()

    def decide(current: Endpoint) -> Endpoint:
        woken = wake(current, now + LOOK_SECONDS * SECOND, now=now)
        # guard: resend-place-while-resting
        return woken if woken.rests_until is None and not is_held(host) else reserve_slot(woken, delivery_id, now=now)

    # First somebody who looks, then something to find: a crash in between leaves nothing that waits for nobody.
    _change(ports, tenant_id, endpoint_id, decide)
    for _ in range(TRIES):
        after = resend(delivery, now=now)
        try:
            resent = delivery if after == delivery else ports.deliveries.change(delivery, after)
        except Fenced:
            delivery = _delivery(ports, endpoint_id, delivery_id)
            continue
        if resent.due_at is not None:
            with bookkeeping("message not sent", delivery_id=resent.delivery_id):  # then the sweeper sends it
                ports.delivery_queue.send(message_for(resent))
        return resent
    raise Retryable("the delivery's row changes too often")


def _delivery(ports: ManageWebhooksPorts, endpoint_id: str, delivery_id: str) -> Delivery:
    delivery = ports.deliveries.get(endpoint_id, delivery_id) if is_delivery_id(delivery_id) else None
    if delivery is None:
        raise UnknownDelivery
    return delivery


def _require_enabled(endpoint: Endpoint) -> None:
    if not endpoint.is_enabled:
        raise Rejected(
            "webhook_disabled",
            'This webhook is disabled, and nothing is sent to it. Enable it with PATCH and {"enabled": true} first.',
        )


def list_deliveries(
    ports: ManageWebhooksPorts,
    tenant_id: str,
    endpoint_id: str,
    *,
    limit: int,
    after: str | None,
    status: DeliveryStatus | None,
) -> DeliveryPage:
    """Up to `limit` deliveries to the endpoint, the newest event first, from after that id on. Raises
    UnknownWebhook."""
    read_webhook(ports, tenant_id, endpoint_id)
    return ports.deliveries.page(endpoint_id, limit=limit, after=after, statuses=() if status is None else (status,))


def _change(
    ports: ManageWebhooksPorts, tenant_id: str, endpoint_id: str, decide: Callable[[Endpoint], Endpoint]
) -> Endpoint:
    changed = change_endpoint(ports.endpoints, _host(ports, tenant_id, endpoint_id)[0], decide)
    if changed is None:
        raise UnknownWebhook
    return changed
