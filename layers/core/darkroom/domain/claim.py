"""Decides what a delivery of a message may do with its image's row: claim it, end it, or leave it alone."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from darkroom.domain.image import Attempt, DeadLetterState, Image, Status, has_expired, lease_lapsed
from darkroom.domain.instants import Milliseconds
from darkroom.domain.message import Message
from darkroom.domain.retry import MAX_ATTEMPTS
from darkroom.domain.transitions import expire, give_up, transition

REMEMBERED_ATTEMPTS = 10
"""How many attempts a row describes: those of its last two runs."""


@dataclass(frozen=True, kw_only=True)
class NothingToDo:
    """A delivery without work left: it is acknowledged, and never recorded as done."""

    reason: Literal["stale", "terminal", "too_early", "leased", "backing_off"]


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A delivery that won its image: `image` is the row after the claim."""

    image: Image


@dataclass(frozen=True, kw_only=True)
class GiveUp:
    """The attempts ran out: `image` is the row, now `failed`."""

    image: Image


@dataclass(frozen=True, kw_only=True)
class Expire:
    """It expired before it was begun: `image` is the row, now `expired`."""

    image: Image


@dataclass(frozen=True, kw_only=True)
class TooEarly:
    """A delivery before the image's time, because clocks differ or somebody sent it by hand: its message must come back
    at that time."""

    process_at: Milliseconds


@dataclass(frozen=True, kw_only=True)
class Redriven:
    """A dead letter that was moved back to its lane although its run has ended: `image` owes its dead letter again."""

    image: Image


def claim(
    image: Image,
    message: Message,
    *,
    now: Milliseconds,
    claimed_by: str,
    request_id: str,
    lease_until: Milliseconds,
    not_before: Milliseconds,
    due_at: Milliseconds,
) -> Claim | GiveUp | Expire | Redriven | TooEarly | NothingToDo:
    """Decides what a delivery of `message` may do with the current row.

    A claim is allowed from `scheduled` and `pending` once `process_at` has come, unless `expires_at` has too, and from
    `processing` once the lease has lapsed; after the first attempt only once the row's `not_before` has come, because a
    copy of the message may come at any time; and always only for the row's current schedule. A message of an earlier
    run counts like one of this run, because a replay moves such messages back from the dead letters.

    `not_before` is when the attempt after this one may begin if this one's worker dies.
    """
    if (message.tenant_id, message.lane, message.schedule) != (image.tenant_id, image.lane, image.schedule):
        return NothingToDo(reason="stale")
    if message.run > image.run:
        return NothingToDo(reason="stale")
    if image.dead_letter in (DeadLetterState.PLACED, DeadLetterState.KEPT) and message.run == image.run:
        return Redriven(image=replace(image, dead_letter=DeadLetterState.OWED, due_at=now, rescues=0))
    if image.status.is_terminal:
        return NothingToDo(reason="terminal")
    if image.status is Status.AWAITING_UPLOAD:
        return NothingToDo(reason="too_early")
    if has_expired(image, now):
        return Expire(image=expire(image, now=now))
    if image.process_at is not None and image.process_at > now:
        return TooEarly(process_at=image.process_at)
    if image.status is Status.PROCESSING and not lease_lapsed(image, now):
        return NothingToDo(reason="leased")
    if image.attempt >= MAX_ATTEMPTS:
        return GiveUp(image=give_up(image, now=now))
    if image.not_before is not None and image.not_before > now:
        return NothingToDo(reason="backing_off")
    return Claim(
        image=transition(
            image,
            Status.PROCESSING,
            attempt=image.attempt + 1,
            lease_until=lease_until,
            not_before=not_before,
            claimed_by=claimed_by,
            due_at=due_at,
            rescues=0,
            attempts=(
                *image.attempts,
                Attempt(run=image.run, number=image.attempt + 1, request_id=request_id, started_at=now),
            )[-REMEMBERED_ATTEMPTS:],
        )
    )
