"""Decides what a delivery of a message may do with its image's row: claim it, end it, or leave it alone."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

from darkroom.domain.images.image import Attempt, DeadLetterState, Image, Status, has_expired, lease_lapsed
from darkroom.domain.images.transitions import expire, give_up, transition, unpark
from darkroom.domain.kernel.instants import Milliseconds
from darkroom.domain.kernel.lanes import retries_of
from darkroom.domain.kernel.message import Message

LEASE_MARGIN_SECONDS = 30
"""A lease outlasts the function's deadline by this much, because clocks may differ a little."""

REMEMBERED_ATTEMPTS = 10
"""How many attempts a row describes, the latest: of a lane with the usual retries those of two runs."""


@dataclass(frozen=True, kw_only=True)
class Lease:
    """What a claim at `now` asks for: no other worker takes the image up until `lease_until`, nor until `not_before` if
    its worker dies. `claimed_by` names the one delivery, `request_id` the request that it came in. At
    `due_at` the sweeper looks at the image."""

    claimed_by: str
    request_id: str
    now: Milliseconds
    lease_until: Milliseconds
    not_before: Milliseconds
    due_at: Milliseconds

    def fields(self, attempt: int) -> dict[str, Any]:
        """What a claim writes into the row, besides its status and the description of the attempt."""
        return {
            "attempt": attempt,
            "lease_until": self.lease_until,
            "not_before": self.not_before,
            "claimed_by": self.claimed_by,
            "due_at": self.due_at,
            "rescues": 0,
        }

    def attempt(self, run: int, number: int) -> Attempt:
        """The description of the attempt that begins with the claim."""
        return Attempt(run=run, number=number, request_id=self.request_id, started_at=self.now)


@dataclass(frozen=True, kw_only=True)
class NothingToDo:
    """A delivery without work left: it is acknowledged, and never recorded as done."""

    reason: Literal["stale", "terminal", "too_early", "leased", "backing_off", "arrived", "begun_too_often"]


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
class Park:
    """Its lane or tenant is paused: `image` is the row, parked."""

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


type Decision = Claim | GiveUp | Expire | Redriven | TooEarly | NothingToDo


def claim(image: Image, message: Message, lease: Lease) -> Decision:
    """Decides what a delivery of `message` may do with the current row.

    A claim is allowed from `scheduled` and `pending` once `process_at` has come, unless `expires_at` has too, and from
    `processing` once the lease has lapsed; after the first attempt only once the row's `not_before` has come, because a
    copy of the message may come at any time; and always only for the row's current schedule. A message of an earlier
    run counts like one of this run, because a replay moves such messages back from the dead letters.
    """
    now = lease.now
    # guard: claim-stale-message
    if (message.tenant_id, message.lane, message.schedule) != (image.tenant_id, image.lane, image.schedule):
        return NothingToDo(reason="stale")
    if message.run > image.run:
        return NothingToDo(reason="stale")
    # guard: dead-letters-redriven-owed
    if image.dead_letter in (DeadLetterState.PLACED, DeadLetterState.KEPT) and message.run == image.run:
        return Redriven(image=replace(image, dead_letter=DeadLetterState.OWED, due_at=now, rescues=0))
    if image.status.is_terminal:  # guard: claim-ended-refused
        return NothingToDo(reason="terminal")
    if image.status in (Status.AWAITING_UPLOAD, Status.FETCHING):
        return NothingToDo(reason="too_early")
    if has_expired(image, now):  # guard: delay-expired-not-begun
        return Expire(image=expire(image, now=now))
    if image.process_at is not None and image.process_at > now:  # guard: delay-no-early-start
        return TooEarly(process_at=image.process_at)
    if image.status is Status.PROCESSING and not lease_lapsed(image, now):  # guard: claim-live-lease
        return NothingToDo(reason="leased")
    if image.attempt >= retries_of(image.lane).attempts:  # guard: claim-attempts-bound
        return GiveUp(image=give_up(image, now=now))
    if image.not_before is not None and image.not_before > now:
        return NothingToDo(reason="backing_off")  # guard: claim-backoff-respected
    return Claim(
        image=transition(
            unpark(image, now=now),
            Status.PROCESSING,
            **lease.fields(image.attempt + 1),
            attempts=(*image.attempts, lease.attempt(image.run, image.attempt + 1))[-REMEMBERED_ATTEMPTS:],
        )
    )


def claim_unseen(image: Image, message: Message, lease: Lease) -> Image | None:
    """The row after a claim that was written without having read it, as `Images.claim_unseen` does; None if the row
    has to be read first, because it does not await the very first attempt at it."""
    is_untouched = image.attempt == 0 and not image.attempts and image.run == message.run
    is_untouched = is_untouched and image.not_before is None and image.dead_letter is None and not image.parked
    decision = claim(image, message, lease)
    return decision.image if is_untouched and isinstance(decision, Claim) else None
