"""Accepts a URL instead of a photo: writes its row, then the message on which a worker fetches it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from darkroom.domain.images.image import UNKNOWN_SOURCE, Image, Status, message_for
from darkroom.domain.images.order import check_repeats
from darkroom.domain.imports.fetch import UrlOrder, await_fetch
from darkroom.operations.images.check_order import Accepted, CheckOrderPorts, ImageRequest, check_order, find_earlier
from darkroom.operations.images.enqueue import EnqueuePorts, send_or_mark_due
from darkroom.ports.images import FetchQueue


@dataclass(frozen=True, kw_only=True)
class Wanted(ImageRequest):
    """What is to be fetched."""

    fetch: UrlOrder


@dataclass(frozen=True, kw_only=True)
class BeginFetchPorts(EnqueuePorts, CheckOrderPorts):
    """What such a request needs, and the largest file that may be fetched. `check_url` raises Rejected (`invalid_url`)
    for a URL to which nothing is ever sent; it does not look up the addresses of its host."""

    fetch_queue: FetchQueue
    check_url: Callable[[str], None]
    max_bytes: int


def begin_fetch(ports: BeginFetchPorts, wanted: Wanted) -> Accepted:
    """Writes the row of an image that is to be fetched, and sends its message. Nothing is fetched here.

    Raises Rejected (`invalid_url`, `unknown_notify`, `invalid_recipe`, `invalid_idempotency_key`,
    `idempotency_key_reused`, `image_deleted`, and what `appoint` raises), Rejected (`quota_exceeded`) or TurnedAway
    (`overloaded`) while its tenant stores too much or its lane has too much work, unless it repeats an earlier request
    with its key, and Retryable if the table cannot answer.
    """
    fetch = wanted.fetch
    ports.check_url(fetch.url)
    image_id, earlier = find_earlier(ports, wanted)
    if earlier is not None:
        return _replay(ports, earlier, fetch.fingerprint)

    # Until it is here, nobody knows that it has fewer bytes.
    checked = check_order(ports, wanted, fetch.order, image_id, size_bytes=ports.max_bytes)
    accepted = checked.row(image_id, fingerprint=fetch.fingerprint, source=UNKNOWN_SOURCE)
    row = await_fetch(accepted, fetch.url, now=checked.now)
    image = ports.images.create(row)
    if image.correlation_id != row.correlation_id:
        return _replay(ports, image, fetch.fingerprint)
    _send(ports, image)
    return Accepted(image=image, replayed=False)


def _replay(ports: BeginFetchPorts, image: Image, fingerprint: str) -> Accepted:
    """Answers a repeated request with the image of the first one, which may have ended before it sent the message."""
    check_repeats(image, fingerprint)
    if image.status is Status.FETCHING and image.attempt == 0:
        _send(ports, image)
    return Accepted(image=image, replayed=True)


def _send(ports: BeginFetchPorts, image: Image) -> None:
    send_or_mark_due(ports, image, lambda: ports.fetch_queue.put(message_for(image)))
