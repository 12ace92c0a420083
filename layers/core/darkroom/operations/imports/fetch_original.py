"""Fetches an image from the URL that its client gave: its bytes become the original, and its processing starts."""

from __future__ import annotations

import hashlib
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from darkroom.domain.images.claim import Claim, Expire, NothingToDo
from darkroom.domain.images.image import Cause, Image, Provenance, Source, Status, has_expired
from darkroom.domain.images.media_types import SNIFF_BYTES, accepted_media_type, input_format_of
from darkroom.domain.images.order import key_reused
from darkroom.domain.images.transitions import expire, reject
from darkroom.domain.imports.bucket_files import check_registered, is_bucket_url
from darkroom.domain.imports.fetch import (
    REFUSED,
    Fetched,
    Unfetched,
    claim_fetch,
    fetch_later,
    fetch_lease,
    fetched,
    not_fetched,
)
from darkroom.domain.kernel.errors import Rejected, Retryable
from darkroom.domain.kernel.fingerprint import calls_of, shortened
from darkroom.domain.kernel.message import Message
from darkroom.domain.kernel.retry import FETCHES
from darkroom.operations.images.enqueue import EnqueueInTimePorts, enqueue_in_time
from darkroom.ports.images import Originals
from darkroom.ports.imports import RemoteImages
from darkroom.ports.kernel import Fenced, Jitter
from darkroom.ports.tenants import Tenants

if TYPE_CHECKING:
    from darkroom.domain.images.limits import InputFormat


@dataclass(frozen=True, kw_only=True)
class Fetching:
    """What a message came to: `accepted`, `put_back` (it is fetched again later), `failed`, `expired`, `fenced` (it was
    deleted, or another worker has it), `gone` (there is no such image), or the reason why there was
    nothing to do. `image` is the row afterwards, `unfetched` what the source did."""

    outcome: str
    image: Image | None
    unfetched: Unfetched | None = None


@dataclass(frozen=True, kw_only=True)
class FetchOriginalPorts(EnqueueInTimePorts):
    """What fetching needs besides the ports of sending the message, which formats are accepted, and the largest file.
    `bucket_images` are those in buckets of others, which the image's tenant must have registered.

    `require_healthy` raises Retryable while S3 or DynamoDB is known not to answer: nothing is begun then.
    """

    remote_images: RemoteImages
    bucket_images: RemoteImages
    tenants: Tenants
    originals: Originals
    require_healthy: Callable[[], None]
    jitter: Jitter
    input_formats: frozenset[InputFormat]
    max_bytes: int


def fetch_original(
    ports: FetchOriginalPorts,
    message: Message,
    *,
    claimed_by: str,
    request_id: str,
    on_row: Callable[[Image], None] = lambda _: None,
) -> Fetching:
    """Claims the message's image, fetches it and stores what came as its original, if the row allows it now.

    The order is that of a photo sent directly: the original, the row, the message. `claimed_by` names this one receipt
    of the message. In every case the row is due: no message has to come again. Raises Retryable if a store or the
    table cannot answer, and what a bug raises.
    """
    ports.require_healthy()
    image = ports.images.get(message.image_id)
    if image is None:
        return Fetching(outcome="gone", image=None)
    on_row(image)
    decision = claim_fetch(image, message, fetch_lease(claimed_by=claimed_by, request_id=request_id, now=ports.clock()))
    match decision:
        case NothingToDo(reason=reason):
            if reason == "arrived" and image.status is not Status.PROCESSING and image.attempt == 0:
                # An earlier worker may have died before it sent the message to the lane.
                enqueue_in_time(ports, image)
            return Fetching(outcome=reason, image=image)
        case Expire(image=after):
            return _change(ports, image, after, "expired")
        case Claim(image=after):
            pass
    try:
        claimed = ports.images.change(image, after)
    except Fenced as lost:
        return Fetching(outcome="fenced", image=lost.current)
    try:
        return _settle(ports, claimed)
    except Retryable:
        raise
    except Exception as bug:
        # Until it is mended, its claims last as long as may be: nobody but its client could fetch it after the last.
        # What the exception says may name the URL.
        with suppress(Exception):
            _put_back(ports, claimed, _cause_of(bug, ""))  # guard: fetch-bug-put-back, fetch-bug-text-dropped
        raise


def _settle(ports: FetchOriginalPorts, claimed: Image) -> Fetching:
    answer = _ask(ports, claimed.url or "", claimed.tenant_id)
    if isinstance(answer, Fetched):
        return _keep(ports, claimed, answer)
    after = not_fetched(claimed, answer, unit_random=ports.jitter(), now=ports.clock())
    outcome = "put_back" if after.status is Status.FETCHING else "failed"
    return _change(ports, claimed, after, outcome, answer)


def _ask(ports: FetchOriginalPorts, url: str, tenant_id: str) -> Fetched | Unfetched:
    source = ports.remote_images
    if is_bucket_url(url):
        source, tenant = ports.bucket_images, ports.tenants.tenant(tenant_id)
        try:
            # What is registered may have changed since.
            check_registered(url, () if tenant is None else tenant.import_from or ())  # guard: fetch-registered-still
        except Rejected as refusal:
            return Unfetched(code=REFUSED, message=refusal.message)
    return source.fetch(
        url,
        max_bytes=ports.max_bytes,
        is_picture=lambda first: input_format_of(first) in ports.input_formats,  # guard: fetch-accepted-formats-only
    )


def _keep(ports: FetchOriginalPorts, claimed: Image, answer: Fetched) -> Fetching:
    """Stores what came, unless it came too late or is nothing that can be developed."""
    if has_expired(claimed, ports.clock()):  # guard: fetch-expired-not-stored
        return _change(ports, claimed, expire(claimed, now=ports.clock()), "expired")
    try:
        # What is stored for an image that has ended meanwhile stays for minutes, until the sweeper looks.
        current = ports.images.get(claimed.image_id)
        # guard: fetch-withdrawn-not-stored
        if current is None or (current.status, current.claimed_by) != (claimed.status, claimed.claimed_by):
            return Fetching(outcome="fenced", image=current)
        source, provenance = _stored(ports, claimed, answer)
    except Rejected as refusal:
        # guard: fetch-refusal-confirmed
        if all(attempt.cause is None or attempt.cause.error_type != refusal.code for attempt in claimed.attempts):
            # One answer may be damaged, or a page that asks for patience: another must agree.
            return _put_back(ports, claimed, Cause(error_type=refusal.code, message=refusal.message, stack=""))
        after = reject(claimed, code=refusal.code, message=refusal.message, now=ports.clock())
        return _change(ports, claimed, after, "failed")
    except Retryable as outage:
        return _put_back(ports, claimed, _cause_of(outage, str(outage)), seconds=outage.retry_after_seconds)
    arrived = _change(ports, claimed, fetched(claimed, source, provenance, now=ports.clock()), "accepted")
    if arrived.outcome == "accepted" and arrived.image is not None:
        enqueue_in_time(ports, arrived.image)
    return arrived


def _cause_of(error: Exception, message: str) -> Cause:
    """Why an attempt failed: where it was raised, and the AWS call if it was one, without what exceptions say."""
    calls = calls_of(error)
    # guard: fetch-bug-stack-kept
    stack = "".join([*traceback.format_tb(error.__traceback__), *(f"{call}\n" for call in calls)])
    message_with_calls = " ".join(filter(None, [message, *(f"[{call}]" for call in calls)]))
    return Cause(error_type=type(error).__name__, message=message_with_calls, stack=shortened(stack))


def _put_back(ports: FetchOriginalPorts, claimed: Image, cause: Cause, *, seconds: int = 0) -> Fetching:
    """Leaves it to the sweeper to have it fetched again, no sooner than after `seconds`."""
    delay_seconds = max(FETCHES.delay_seconds(claimed.attempt, ports.jitter()), seconds)
    after = fetch_later(claimed, delay_seconds=delay_seconds, cause=cause, now=ports.clock())
    return _change(ports, claimed, after, "put_back")


def _stored(ports: FetchOriginalPorts, claimed: Image, answer: Fetched) -> tuple[Source, Provenance]:
    """The original that was fetched, now or by an earlier worker that could not say so, and what its source said of it.
    Raises Rejected if it is no image that can be developed, or if its Idempotency-Key was used before."""
    sha256 = hashlib.sha256(answer.body).hexdigest()
    media_type = accepted_media_type(answer.body[:SNIFF_BYTES], ports.input_formats)
    original = ports.originals.put_if_absent(
        claimed.image_id, answer.body, sha256=sha256, media_type=media_type, made_for=claimed.fingerprint
    )
    is_same = original.sha256 == sha256
    # guard: fetch-earlier-original-counts, fetch-other-photo-refused
    if not is_same and original.made_for != claimed.fingerprint:
        # Only a key can lead to another original under its id: of a photo that was sent with the key and got no row.
        raise key_reused()
    source = Source(
        version_id=original.version_id,
        sha256=original.sha256,
        size_bytes=original.size_bytes,
        media_type=media_type if is_same else original.media_type,
    )
    return source, answer.provenance if is_same else Provenance()


def _change(
    ports: FetchOriginalPorts, before: Image, after: Image, outcome: str, unfetched: Unfetched | None = None
) -> Fetching:
    try:
        return Fetching(outcome=outcome, image=ports.images.change(before, after), unfetched=unfetched)
    except Fenced as lost:
        return Fetching(outcome="fenced", image=lost.current, unfetched=unfetched)
