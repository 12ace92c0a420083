"""Deliveries: one event on its way to one endpoint, with the attempts that were made and the time of the next.

Every function here is pure: it takes a row and gives the next one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from darkroom.domain.events.event import image_id_of_event, without_details
from darkroom.domain.kernel.instants import Milliseconds

SECOND = 1000

RETRY_SECONDS = (5, 300, 1800, 7200, 18_000, 36_000, 50_400, 72_000, 86_400)
"""The waits between ten attempts: 75 hours and 35 minutes together, the schedule of Standard Webhooks
(https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md#deliverability-and-reliability)."""

MAX_ATTEMPTS = len(RETRY_SECONDS) + 1

JITTER = 0.2
"""Each wait is up to this part shorter or longer, so that what failed together does not come back together."""

OVERLOADED_SECONDS = 60
"""The shortest wait after a 429 and after a receiver that did not answer in time: it needs a pause."""

LEASE_SECONDS = 60
"""How long a delivery belongs to the worker that sends it: longer than its function can last."""

KEPT_SECONDS = 30 * 24 * 3600
"""How long a delivery is kept, whatever became of it."""

RESPONSE_CHARACTERS = 1024
"""How much of a response is kept."""

REMEMBERED_ATTEMPTS = 20
"""How many attempts a row describes: those of the delivery's last two rounds."""

RESEND_SECONDS = 5
"""For how long after an attempt has begun a request to send it again counts as a repetition."""

MESSAGE_SECONDS = 900
"""The longest wait that a message in the queue lasts; for a longer one the sweeper sends another."""

MAX_PAGE_DELIVERIES = 40  # guard: webhook-page-size-bound
"""The most deliveries of a page. If each has all the attempts that it remembers, and each response has control
characters alone, of which one takes seven bytes in JSON inside JSON, the page is still under the 6 MB of a function's
answer
(https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html)."""

LOOKS = 5
"""How many times a page of deliveries in one state reads the table; the page is then short, and the list continues."""

PING = "webhook.ping"
"""The type of the event by which an endpoint's owner tries it."""


class DeliveryStatus(StrEnum):
    """A delivery's state."""

    WAITING = "waiting"
    SENDING = "sending"
    DELIVERED = "delivered"
    FAILED = "failed"


@dataclass(frozen=True, kw_only=True)
class DeliveryAttempt:
    """One attempt: `status` is the response's, None without one; then `error` says why. `response` is the beginning of
    its body."""

    number: int
    started_at: Milliseconds
    milliseconds: int | None = None
    status: int | None = None
    error: str | None = None
    response: str | None = None


@dataclass(frozen=True, kw_only=True)
class Delivery:
    """A delivery's row. `version` counts its writes; a write is allowed on the version that it was decided on.

    `body` is what is sent, the same in every attempt, until its image is deleted. `attempt` counts those of this round;
    another begins when the delivery is recovered after it has failed. `due_at` is the time of its next attempt, or of
    the next look if its worker dies; None once it has ended.
    """

    endpoint_id: str
    delivery_id: str
    tenant_id: str
    event_id: str
    event_type: str
    body: str
    created_at: Milliseconds
    version: int = 1
    status: DeliveryStatus = DeliveryStatus.WAITING
    attempt: int = 0
    attempts: tuple[DeliveryAttempt, ...] = ()
    claimed_by: str | None = None
    lease_until: Milliseconds | None = None
    ended_at: Milliseconds | None = None
    due_at: Milliseconds | None = None

    def is_leased(self, *, now: Milliseconds) -> bool:
        """Whether a worker has it, and nobody else may write it."""
        return self.status is DeliveryStatus.SENDING and (self.lease_until or 0) > now  # guard: webhook-delivery-lease


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What came of an attempt: the `status` of a response and the beginning of its body, or the `error` why there was
    none. `retry_after_seconds` is what the receiver asked for. It `was_unreached` if not even a connection came about:
    then the next path of the host would not do better."""

    milliseconds: int
    status: int | None = None
    body: str = ""
    error: str | None = None
    retry_after_seconds: int | None = None
    was_too_slow: bool = False
    was_unreached: bool = False

    @property
    def is_success(self) -> bool:
        """Whether the receiver has taken it: a redirect is no success (Standard Webhooks)."""
        return self.status is not None and 200 <= self.status < 300

    @property
    def is_gone(self) -> bool:
        """Whether the receiver wants nothing any more (Standard Webhooks)."""
        return self.status == 410


DELIVERY_ID_PATTERN = "[0-9]{14}-[0-9A-Za-z_-]{1,100}"
"""The pattern of every delivery's id. The ids of webhooks and batches have an underscore."""


def is_delivery_id(text: str) -> bool:
    """Whether a delivery may have it."""
    return re.fullmatch(DELIVERY_ID_PATTERN, text) is not None  # guard: resend-id-format


@dataclass(frozen=True, kw_only=True)
class DeliveryQuery:
    """Which deliveries of an endpoint its owner wants to see: at most `limit`, in this state (None: any), that come
    `after` an id (None: from the newest event on)."""

    limit: int
    status: DeliveryStatus | None = None
    after: str | None = None

    @property
    def read_units(self) -> int:
        """The most read units that the page costs, with rows of up to 8 KB."""
        return self.limit * (1 if self.status is None else LOOKS)


def delivery_id_of(event_id: str, time: Milliseconds) -> str:
    """A delivery's id at its endpoint: the time of its event, by which deliveries sort, and the event's id. It is the
    same however often the event comes."""
    return f"{time:014}-{event_id}"


def event_id_of(delivery_id: str) -> str:
    """The id of the event that is delivered."""
    return delivery_id.partition("-")[2]


def time_of_event(delivery: Delivery) -> Milliseconds:
    """When the event happened that is delivered."""
    return int(delivery.delivery_id.partition("-")[0])


def was_unheard(delivery: Delivery) -> bool:
    """Whether nothing was heard of the attempt before the last one: the receiver may have taken it."""
    return any(attempt.milliseconds is None for attempt in delivery.attempts[-2:-1])


def new_delivery(
    *,
    endpoint_id: str,
    tenant_id: str,
    event_id: str,
    event_type: str,
    time: Milliseconds,
    body: str,
    now: Milliseconds,
) -> Delivery:
    """The row of an event that waits for its first attempt."""
    return Delivery(
        endpoint_id=endpoint_id,
        delivery_id=delivery_id_of(event_id, time),
        tenant_id=tenant_id,
        event_id=event_id,
        event_type=event_type,
        body=body,
        created_at=now,
        due_at=now,
    )


def claim(delivery: Delivery, *, claimed_by: str, now: Milliseconds) -> Delivery | Literal["ended", "leased", "early"]:
    """The row that belongs to a worker from now on, or why it does not. An attempt of which nothing was heard counts as
    one that was made."""
    if delivery.status in (DeliveryStatus.DELIVERED, DeliveryStatus.FAILED):
        return "ended"  # guard: webhook-delivery-ended-not-resent
    if delivery.is_leased(now=now):
        return "leased"
    if (delivery.due_at or 0) > now:
        return "early"  # guard: webhook-delivery-not-early
    # guard: webhook-delivery-attempt-limit
    if delivery.attempt >= MAX_ATTEMPTS:  # its last worker died
        return _ended(delivery, DeliveryStatus.FAILED, now)
    number, lease_until = delivery.attempt + 1, now + LEASE_SECONDS * SECOND
    attempt = DeliveryAttempt(number=number, started_at=now)
    return replace(
        delivery,
        status=DeliveryStatus.SENDING,
        attempt=number,
        attempts=(*delivery.attempts, attempt)[-REMEMBERED_ATTEMPTS:],  # guard: webhook-attempts-remembered-bound
        claimed_by=claimed_by,
        lease_until=lease_until,
        due_at=lease_until,
    )


def record(delivery: Delivery, answer: Answer, *, unit_random: float, now: Milliseconds) -> Delivery:
    """The row after its worker has heard what came of the attempt."""
    attempt = replace(
        delivery.attempts[-1],
        milliseconds=answer.milliseconds,
        status=answer.status,
        error=answer.error,
        # guard: erasure-late-answer-not-kept
        response=None if _has_no_details(delivery) else answer.body[:RESPONSE_CHARACTERS] or None,
    )
    described = replace(delivery, attempts=(*delivery.attempts[:-1], attempt), claimed_by=None, lease_until=None)
    if answer.is_success:
        return _ended(described, DeliveryStatus.DELIVERED, now)
    if described.attempt >= MAX_ATTEMPTS:
        return _ended(described, DeliveryStatus.FAILED, now)
    wait = wait_seconds(described.attempt, answer, unit_random)
    return replace(described, status=DeliveryStatus.WAITING, due_at=now + round(wait * SECOND))


def wait_seconds(attempt: int, answer: Answer, unit_random: float) -> float:
    """How long to wait after that attempt has failed. `unit_random` is from 0 to 1.

    What a receiver asks for with Retry-After is granted from the usual wait up to the one after it.
    """
    usual = RETRY_SECONDS[attempt - 1]
    if answer.was_too_slow or answer.status == 429:
        usual = max(usual, OVERLOADED_SECONDS)
    usual_or_asked: float = usual
    if answer.retry_after_seconds is not None:
        longest = RETRY_SECONDS[min(attempt, len(RETRY_SECONDS) - 1)]
        usual_or_asked = min(max(usual, answer.retry_after_seconds), max(usual, longest))
    return usual_or_asked * (1 + JITTER * (2 * unit_random - 1))


def reopen(delivery: Delivery, *, now: Milliseconds) -> Delivery:
    """The row of a failed delivery that is tried again, as often as a new one; or of one that waits, and is due at
    once. Any other is left as it is."""
    if delivery.status is DeliveryStatus.WAITING and (delivery.due_at or 0) > now:
        return replace(delivery, due_at=now)
    if delivery.status is not DeliveryStatus.FAILED:
        return delivery
    # guard: webhook-recovery-new-round
    return replace(delivery, status=DeliveryStatus.WAITING, attempt=0, ended_at=None, due_at=now)


def resend(delivery: Delivery, *, now: Milliseconds) -> Delivery:
    """The row of a delivery that its owner wants to be sent again, whatever became of it: one that has ended begins
    another round, and one that waits is due at once. One that is on its way, or was a moment ago, is left as it is:
    asking twice sends once."""
    is_recent = any(0 <= now - attempt.started_at < RESEND_SECONDS * SECOND for attempt in delivery.attempts[-1:])
    if is_recent or delivery.status is DeliveryStatus.SENDING:  # guard: resend-once-when-asked-twice
        return delivery
    if delivery.status is DeliveryStatus.DELIVERED:
        delivery = replace(delivery, status=DeliveryStatus.FAILED)
    return reopen(delivery, now=now)


def blank(delivery: Delivery) -> Delivery:
    """The row after its image was deleted: the event without its details, and nothing of what was answered."""
    attempts = tuple(replace(attempt, response=None) for attempt in delivery.attempts)
    return replace(delivery, body=without_details(delivery.body), attempts=attempts)


def _has_no_details(delivery: Delivery) -> bool:
    """Whether the event is one of an image that was deleted: of what is answered then, nothing is kept."""
    is_of_image = image_id_of_event(delivery.event_id) is not None
    return is_of_image and without_details(delivery.body) == delivery.body


def _ended(delivery: Delivery, status: DeliveryStatus, now: Milliseconds) -> Delivery:
    return replace(delivery, status=status, claimed_by=None, lease_until=None, ended_at=now, due_at=None)


class DeliveryMessage(BaseModel):
    """The message that a delivery is to be tried: a reference, and never what is sent."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    v: Literal[1] = 1
    tenant_id: str
    endpoint_id: str
    delivery_id: str


class UnreadableDeliveryMessage(ValueError):
    """A body that is no message of a delivery; it stays in its queue until it becomes a dead letter."""


def read_delivery_message(body: str) -> DeliveryMessage:
    """The message in a queue record's body. Raises UnreadableDeliveryMessage, saying what is wrong."""
    try:
        return DeliveryMessage.model_validate_json(body)
    except ValidationError as error:
        problems = "; ".join(f"{'.'.join(map(str, e['loc'])) or 'body'}: {e['msg']}" for e in error.errors()[:5])
        raise UnreadableDeliveryMessage(f"not a version 1 message of a delivery: {problems}") from error


def message_for(delivery: Delivery) -> DeliveryMessage:
    """The message that has the delivery tried."""
    return DeliveryMessage(
        tenant_id=delivery.tenant_id, endpoint_id=delivery.endpoint_id, delivery_id=delivery.delivery_id
    )
