"""Accepts a URL instead of a photo: writes its row, then the message on which a worker fetches it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from darkroom.domain.images.image import UNKNOWN_SOURCE, Image, Status, message_for
from darkroom.domain.images.order import check_idempotency_key, check_repeats
from darkroom.domain.imports.fetch import FetchOrder, await_fetch
from darkroom.domain.kernel.ids import image_id_for_key, image_id_from_bits
from darkroom.domain.kernel.tenants import NO_QUOTA, Quota, Tier
from darkroom.operations.images.check_order import CheckOrderPorts, check_order
from darkroom.operations.images.enqueue import EnqueuePorts, send_or_mark_due
from darkroom.operations.images.submit_image import Accepted
from darkroom.ports.images import FetchQueue
from darkroom.ports.kernel import Randomness


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What is to be fetched, for which tenant, by which request and key. The tenant's tier decides the lane, and its
    quota how much it may store."""

    fetch: FetchOrder
    tenant_id: str
    correlation_id: str
    tier: Tier = Tier.FREE
    quota: Quota = NO_QUOTA
    idempotency_key: str | None = None


@dataclass(frozen=True, kw_only=True)
class Ports(EnqueuePorts, CheckOrderPorts):
    """What such a request needs, and the largest file that may be fetched. `check_url` raises Rejected (`invalid_url`)
    for a URL to which nothing is ever sent; it does not look up the addresses of its host."""

    fetch_queue: FetchQueue
    check_url: Callable[[str], None]
    randomness: Randomness
    max_bytes: int


def begin_fetch(ports: Ports, wanted: Wanted) -> Accepted:
    """Writes the row of an image that is to be fetched, and sends its message. Nothing is fetched here.

    Raises Rejected (`invalid_url`, `unknown_notify`, `invalid_recipe`, `invalid_idempotency_key`,
    `idempotency_key_reused`, `image_deleted`, and what `appoint` raises), Rejected (`quota_exceeded`) or TurnedAway
    (`overloaded`) while its tenant stores too much or its lane has too much work, unless it repeats an earlier request
    with its key, and Retryable if the table cannot answer.
    """
    order, fingerprint = wanted.fetch.order, wanted.fetch.fingerprint
    check_idempotency_key(wanted.idempotency_key)
    ports.check_url(wanted.fetch.url)
    if wanted.idempotency_key is None:
        image_id = image_id_from_bits(ports.randomness(16))
    else:
        image_id = image_id_for_key(wanted.tenant_id, wanted.idempotency_key)
        earlier = ports.images.get(image_id)
        if earlier is not None:
            return _replay(ports, earlier, fingerprint)

    now = ports.clock()
    accept = check_order(
        ports,
        order,
        wanted.fetch.timetable,
        tenant_id=wanted.tenant_id,
        tier=wanted.tier,
        quota=wanted.quota,
        size_bytes=ports.max_bytes,  # until it is here, nobody knows that it has fewer
        now=now,
    )
    row = await_fetch(
        accept(
            image_id=image_id,
            fingerprint=fingerprint,
            correlation_id=wanted.correlation_id,
            source=UNKNOWN_SOURCE,
        ),
        wanted.fetch.url,
        now=now,
    )
    image = ports.images.create(row)
    if image.correlation_id != row.correlation_id:
        return _replay(ports, image, fingerprint)
    _send(ports, image)
    return Accepted(image=image, replayed=False)


def _replay(ports: Ports, image: Image, fingerprint: str) -> Accepted:
    """Answers a repeated request with the image of the first one, which may have ended before it sent the message."""
    check_repeats(image, fingerprint)
    if image.status is Status.FETCHING and image.attempt == 0:
        _send(ports, image)
    return Accepted(image=image, replayed=True)


def _send(ports: Ports, image: Image) -> None:
    send_or_mark_due(ports, image, lambda: ports.fetch_queue.put(message_for(image)))
