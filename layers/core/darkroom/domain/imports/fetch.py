"""How an image is fetched whose client gave a URL instead of bytes: how often, when again, and what ends it.

Fetching has claims, leases and a fence like developing. It ends when the original is here: from then on the image is as
if it had been uploaded, and nothing of its row tells where it came from but what its source said of it.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace

from darkroom.domain.images.claim import REMEMBERED_ATTEMPTS, Claim, Expire, Lease, NothingToDo
from darkroom.domain.images.image import (
    UNKNOWN_SOURCE,
    Cause,
    Image,
    Provenance,
    Source,
    Status,
    has_expired,
    lease_lapsed,
)
from darkroom.domain.images.order import Order, fingerprint_of
from darkroom.domain.images.transitions import (
    MAX_FETCH_CLAIMS,
    arrive,
    before_expiry,
    ended_attempts,
    expire,
    fail_fetch,
    reject,
    transition,
)
from darkroom.domain.kernel.errors import FETCH_FAILED
from darkroom.domain.kernel.instants import Milliseconds
from darkroom.domain.kernel.message import Message
from darkroom.domain.kernel.retry import FETCHES

MAX_SOURCE_URL_LENGTH = 8192
"""Characters of a source's URL: a presigned one has a session token of some thousand, and a server takes about as many
in a request's first line."""

MAX_FETCHES = 5
"""How often a source is asked that does not answer, or not well."""

LEASE_SECONDS = 120
"""How long one attempt may have its image: its function runs 90 seconds at most."""

LONGEST_RETRY_AFTER_SECONDS = 3600
"""A source that asks for a longer pause is not asked again."""

FIRST_LOOK_SECONDS = 120
"""When the sweeper first looks at an image that is to be fetched at once."""

REFUSED, NOT_FOUND, TOO_LARGE = "fetch_refused", "fetch_not_found", "fetch_too_large"
TIMEOUT, FAILED = "fetch_timeout", FETCH_FAILED
_OF_THE_SOURCE = frozenset({REFUSED, NOT_FOUND, TOO_LARGE, TIMEOUT, FAILED})


@dataclass(frozen=True, kw_only=True)
class UrlOrder:
    """An image to fetch, and how and when to develop it."""

    url: str
    order: Order

    @property
    def fingerprint(self) -> str:
        """What makes two requests under one key the same: the URL and what was asked for. It differs from every
        upload's, and the URL cannot be told from it."""
        digest = hashlib.sha256(self.url.encode()).hexdigest()
        return fingerprint_of(digest, f"fetch\0{self.order.request_signature}")


@dataclass(frozen=True, kw_only=True)
class Fetched:
    """What a source sent, and what it said of it: the whole file, or its first bytes if they begin no picture."""

    body: bytes
    provenance: Provenance


@dataclass(frozen=True, kw_only=True)
class Unfetched:
    """Why nothing was fetched: a code, and a sentence for the image's owner, which does not name the URL. If it
    `may_pass`, it is tried again, not before `retry_after_seconds`, as the source asks."""

    code: str
    message: str
    may_pass: bool = False
    retry_after_seconds: int = 0


def await_fetch(accepted: Image, url: str, *, now: Milliseconds) -> Image:
    """The row of an image that is yet to be fetched: at once, also if its time is far ahead."""
    return replace(
        accepted,
        status=Status.FETCHING,
        source=UNKNOWN_SOURCE,
        url=url,
        accepted_at=None,
        accepted_version=None,
        waiting_since=None,
        enqueued_at=now,
        due_at=before_expiry(now + FIRST_LOOK_SECONDS * 1000, accepted.expires_at),
    )


def fetch_lease(*, claimed_by: str, request_id: str, now: Milliseconds) -> Lease:
    """What a worker asks for that is about to fetch: the sweeper looks when its time is over."""
    lease_until = now + LEASE_SECONDS * 1000
    return Lease(
        claimed_by=claimed_by,
        request_id=request_id,
        now=now,
        lease_until=lease_until,
        not_before=lease_until,
        due_at=lease_until + 1,
    )


def claim_fetch(image: Image, message: Message, lease: Lease) -> Claim | Expire | NothingToDo:
    """Decides what a delivery of `message` may do with the current row: fetch it, let it expire, or leave it alone. One
    that was begun too often is left to the sweeper, who gives it up."""
    if (message.tenant_id, message.lane, message.run) != (image.tenant_id, image.lane, image.run):
        return NothingToDo(reason="stale")
    if image.status is not Status.FETCHING:
        return NothingToDo(reason="terminal" if image.status.is_terminal else "arrived")
    if not lease_lapsed(image, lease.now):  # guard: fetch-live-lease
        return NothingToDo(reason="leased")
    if has_expired(image, lease.now):
        return Expire(image=expire(image, now=lease.now))
    if image.attempt >= MAX_FETCH_CLAIMS:
        return NothingToDo(reason="begun_too_often")
    if image.not_before is not None and image.not_before > lease.now:  # guard: fetch-not-before-time
        return NothingToDo(reason="backing_off")
    return Claim(
        image=transition(
            image,
            Status.FETCHING,
            **lease.fields(image.attempt + 1),
            attempts=(*image.attempts, lease.attempt(image.run, image.attempt + 1))[-REMEMBERED_ATTEMPTS:],
        )
    )


def fetched(image: Image, source: Source, provenance: Provenance, *, now: Milliseconds) -> Image:
    """The claimed image with its original, as if it had been uploaded now: no attempt at developing it was made."""
    return replace(
        arrive(image, source, now=now),
        url=None,  # guard: fetch-url-forgotten-on-arrival
        fetched=provenance,
        attempt=0,
        attempts=(),
        lease_until=None,
        not_before=None,
        claimed_by=None,
    )


def not_fetched(image: Image, why: Unfetched, *, unit_random: float, now: Milliseconds) -> Image:
    """The claimed image after its source sent nothing usable: to be tried again, or `failed`."""
    if not why.may_pass:
        return reject(image, code=why.code, message=why.message, now=now)
    if why.retry_after_seconds > LONGEST_RETRY_AFTER_SECONDS:  # guard: fetch-longest-retry-after
        message = f"{why.message} The server asks to come back in more than an hour: send the URL again then."
        return fail_fetch(image, why.code, message, now=now)
    # guard: fetch-tries-of-source-only
    asked = 1 + sum(
        attempt.cause is not None and attempt.cause.error_type in _OF_THE_SOURCE for attempt in image.attempts
    )
    if asked >= MAX_FETCHES:
        return fail_fetch(image, why.code, f"{why.message} It was tried {asked} times.", now=now)
    delay_seconds = max(FETCHES.delay_seconds(asked, unit_random), why.retry_after_seconds)
    cause = Cause(error_type=why.code, message=why.message, stack="")
    return fetch_later(image, delay_seconds=delay_seconds, cause=cause, now=now)


def fetch_later(image: Image, *, delay_seconds: int, cause: Cause, now: Milliseconds) -> Image:
    """The claimed image to be fetched again after the delay: then the sweeper sends a message for it."""
    again_at = now + delay_seconds * 1000
    return transition(
        image,
        Status.FETCHING,
        lease_until=None,
        not_before=again_at,
        claimed_by=None,
        enqueued_at=None,
        attempts=ended_attempts(image, now, cause),
        due_at=before_expiry(again_at, image.expires_at),
    )


def is_given_up_fetch(image: Image) -> bool:
    """Whether it was begun too often and given up, as long as its row is looked at once more: it has no dead letter,
    because its URL is forgotten and no replay could fetch it."""
    failure = image.error
    # guard: dlq-list-own-fetch-failures
    is_ours = failure is not None and failure.code == FAILED and image.attempt >= MAX_FETCH_CLAIMS
    return is_ours and image.status is Status.FAILED and image.source == UNKNOWN_SOURCE and not image.is_deleted
