"""The service level of webhooks: which deliveries count for it, how long they take, and which of them are bad.

The objective is that 99.9% of the deliveries to receivers that answer well are taken by their first attempt within a
minute of their event, over 28 days. A delivery counts once, by that attempt; each minute in which one waits for a
worker counts as another bad one, because a delivery that is not sent gets no answer that could count.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from darkroom.domain.images.service_level import OBJECTIVE
from darkroom.domain.kernel.instants import Milliseconds
from darkroom.domain.webhooks.delivery import Answer, Delivery, time_of_event
from darkroom.domain.webhooks.endpoint import HOUR, MAX_FLIGHTS, SECOND, Endpoint

LATE_SECONDS = 60
"""An answer to a first attempt that comes later after its event is bad, however good it is."""

BURN, BURN_SECONDS = 6.0, 1800
"""How many times faster than allowed the budget may burn over so many seconds, as a lane's slow burn."""

_ALLOWED = round(BURN * (1 - OBJECTIVE), 6)

MOST_OVER = 9
"""By so many the bad ones of that time may exceed what it allows: fewer than ten never ring."""

UNTAKEN_SECONDS = 300
"""A delivery that is due for longer waits for a worker if nothing is heard of its endpoint meanwhile."""


def burn_of(*, is_bad: bool) -> float:
    """What a first attempt adds to the sum that an alarm watches: by how many there are more bad ones than `BURN`
    allows. So one metric and one alarm do, of which the number of values is that of all."""
    return is_bad - _ALLOWED


def bad_of(burn: float, counted: float) -> int:
    """How many of the `counted` were bad whose `burn_of` add up to this."""
    return round(burn + _ALLOWED * counted)


@dataclass(frozen=True, kw_only=True)
class FirstAttempt:
    """A first attempt that counts: the time from its event to its answer, in seconds, and whether it is bad."""

    seconds: float
    is_bad: bool


def first_attempt(endpoint: Endpoint, delivery: Delivery, answer: Answer, *, now: Milliseconds) -> FirstAttempt | None:
    """How an attempt that was answered `now` counts; `endpoint` is the row as it was before it. None if it does not:
    one of a delivery that was answered before, or to a receiver that has failed since its last good answer or gave none
    for an hour. So one that breaks down counts by what was on its way to it, and one that wants nothing any more (410)
    not at all. An attempt that was lost with its worker is bad by the next."""
    earlier = delivery.attempts[:-1]
    if any(attempt.milliseconds is not None for attempt in earlier):  # guard: webhook-objective-first-answer-only
        return None
    # guard: webhook-objective-well-receiver
    if endpoint.failing_since is not None or now - (endpoint.last_success_at or 0) > HOUR:
        return None
    if answer.is_gone:  # guard: webhook-objective-gone-not-counted
        return None
    seconds = max(0, now - time_of_event(delivery)) / SECOND
    is_late = seconds > LATE_SECONDS
    if endpoint.crowded_at is not None:  # guard: webhook-objective-turn-not-late
        is_late = False  # what waits for its turn there waits for its receiver
    return FirstAttempt(seconds=seconds, is_bad=is_late or bool(earlier) or not answer.is_success)


def waits_for_worker(endpoint: Endpoint, due: Sequence[Milliseconds], *, now: Milliseconds) -> bool:
    """Whether a delivery to an endpoint that does not rest waits for a worker, if these are the times at which some are
    due: nothing was heard of any for as long as the oldest is late. After a rest or a pause it is filled slowly."""
    long_ago = now - UNTAKEN_SECONDS * SECOND
    if max(endpoint.last_success_at or 0, endpoint.last_failure_at or 0) >= long_ago:  # guard: webhook-untaken-unheard
        return False
    if endpoint.limit < MAX_FLIGHTS:  # guard: webhook-untaken-not-just-opened
        return False
    return min(due, default=now) < long_ago
