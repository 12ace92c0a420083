"""Decides what the sweeper does with a due image: outbox relay, reaper of dead workers, and undertaker."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from darkroom.domain.images.claim import Expire, GiveUp, NothingToDo, Park
from darkroom.domain.images.image import (
    UNKNOWN_SOURCE,
    DeadLetterState,
    DutyKind,
    Image,
    Leftovers,
    Status,
    has_expired,
    lease_lapsed,
    run_key,
)
from darkroom.domain.images.transitions import (
    MAX_FETCH_CLAIMS,
    SWEEP_INTERVAL_SECONDS,
    await_turn,
    begin_edit,
    begin_turn,
    end_fetch,
    expire,
    expire_upload,
    give_up,
    give_up_fetch,
    may_begin_edit,
    park,
    unpark,
)
from darkroom.domain.kernel.instants import Milliseconds
from darkroom.domain.kernel.lanes import FETCH_DRAIN_FLOOR_PER_SECOND, Lane, retries_of

MAX_PAUSE_SECONDS = 3600
"""The longest pause between two looks at one image."""

LAST_MESSAGE_SECONDS = 900
"""When the last message of a given-up run is certainly gone, even if its worker died: after its visibility timeout,
twice."""

REMOVAL_GRACE_SECONDS = 1800
"""How long after a deletion a worker may still write: its function's timeout, plus clocks that are minutes apart."""

TOMBSTONE_SECONDS = 60 * 24 * 3600
"""How long a tombstone outlives its image: 4 days in a lane, 14 as a dead letter, and the same again after a replay."""


ENDPOINTS = "endpoints"
"""The kind of looks that another operation of the same sweep does."""

BEHIND_SECONDS: Mapping[str, int] = {
    DutyKind.RESCUES: 300,
    DutyKind.DEAD_LETTERS: 300,
    DutyKind.EXPIRIES: 900,
    DutyKind.FETCHES: 300,
    DutyKind.REMOVALS: 1800,
    ENDPOINTS: 300,
}
"""How late a look may come before the sweeper counts as behind: what clients wait for within a few sweeps, what they do
not within what docs/privacy.md promises."""


@dataclass(frozen=True, kw_only=True)
class Rescue:
    """Its message is sent again: `image` is the row with the next look postponed."""

    image: Image


@dataclass(frozen=True, kw_only=True)
class Wait:
    """Its message waits behind others: `image` is the row with the next look postponed."""

    image: Image


@dataclass(frozen=True, kw_only=True)
class PlaceDeadLetter:
    """The sweeper must make sure of its dead letter: `image` is the row with the next look postponed."""

    image: Image


@dataclass(frozen=True, kw_only=True)
class Remove:
    """Whatever else there is of it must be removed: its objects, and what is remembered under `memories` of the work on
    its runs. `leftovers` names the objects, None if they must be listed. `image` is the row after that, with one more
    look or none."""

    image: Image
    memories: tuple[str, ...]
    leftovers: Leftovers | None = None


@dataclass(frozen=True, kw_only=True)
class LookForUpload:
    """Its upload should have arrived by now: `arrived` is the row if it has, and a reminder is sent; `expired` is the
    row if it has not."""

    arrived: Image
    expired: Image


@dataclass(frozen=True, kw_only=True)
class Refetch:
    """It is to be fetched, again or because its message was lost: `image` is the row with the next look postponed."""

    image: Image


type DueAction = (
    Rescue | Wait | Park | PlaceDeadLetter | Remove | LookForUpload | Refetch | GiveUp | Expire | NothingToDo
)


def decide_due(
    image: Image,
    *,
    now: Milliseconds,
    backlog: int,
    releasing_until: Milliseconds,
    service: Mapping[str, Lane],
    fetches: bool = True,
    is_paused: bool = False,
    has_turn: bool = True,
) -> DueAction:
    """Decides what a due row needs. `backlog` is the number of messages that wait in its lane, or in the fetch queue if
    it is being fetched; `releasing_until` is when the lane's reservations for releases end, and `service` is each
    lane's deployed configuration. Where nothing `fetches` any more, what is to be fetched ends; what `is_paused`, by
    its lane or its tenant, is not begun, nor what awaits its turn in a batch unless it `has_turn`.

    Each rescue doubles the pause until the next look, from a minute to an hour: a rescue is a duplicate at worst, and
    duplicates stay rare. Sweeps do not count as attempts.
    """
    if image.due_at is None or image.due_at > now:
        return NothingToDo(reason="too_early")
    if image.is_deleted:
        # guard: erasure-work-of-every-run
        memories = tuple(run_key(image.image_id, run) for run in range(1, image.run + 1))
        return Remove(image=_without_objects(image, now), memories=memories, leftovers=image.leftovers)
    if may_begin_edit(image):  # guard: bulk-edit-begun-by-sweeper
        return Rescue(image=begin_edit(image, now=now))
    if image.dead_letter in (DeadLetterState.OWED, DeadLetterState.PLACED):  # guard: sweeper-dead-letter-ensured
        return PlaceDeadLetter(image=_pushed_out(image, now))
    if image.status.is_terminal:
        # Of one that was being fetched, a worker may have left the original.
        left_over = Remove(image=replace(image, due_at=None), memories=())
        # guard: due-unfetched-leftovers-removed
        return left_over if image.source == UNKNOWN_SOURCE else NothingToDo(reason="terminal")
    if image.status in (Status.FETCHING, Status.PROCESSING) and not lease_lapsed(image, now):
        return NothingToDo(reason="leased")
    if has_expired(image, now):
        return Expire(image=expire(image, now=now))
    if image.status in (Status.AWAITING_UPLOAD, Status.FETCHING):
        return _look_for_bytes(image, now, backlog, fetches=fetches)
    if (early := _before_its_time(image, now, service, has_turn=has_turn)) is not None:
        return early
    if image.attempt >= retries_of(image.lane).attempts:
        return GiveUp(image=give_up(image, now=now))  # guard: sweeper-exhausted-given-up
    if is_paused:  # guard: pause-due-image-parked
        return Park(image=park(image, now=now))
    return _begin(unpark(image, now=now), now, backlog, releasing_until, service[image.lane])


def _begin(image: Image, now: Milliseconds, backlog: int, releasing_until: Milliseconds, lane: Lane) -> Rescue | Wait:
    """What a due image needs that a worker may begin, or begin again."""
    if image.not_before is not None and image.not_before > now:  # guard: due-no-message-in-backoff
        # A message that came earlier could not begin anything.
        return Wait(image=replace(image, due_at=_no_later(image.not_before, image)))
    # guard: due-unsent-not-behind-release
    if image.status is Status.SCHEDULED and image.enqueued_at is not None and releasing_until > now:
        # Its window may be yet to come: no image overtakes releases that are paced to protect the lane.
        look_at = min(releasing_until + SWEEP_INTERVAL_SECONDS * 1000, now + MAX_PAUSE_SECONDS * 1000)
        return Wait(image=replace(image, due_at=_no_later(look_at, image)))
    if (
        image.status is not Status.PROCESSING  # guard: sweeper-backlog-wait
        and (wait := _wait_explained(image, now, backlog, lane.drain_floor_per_second)) is not None
    ):
        return wait
    pushed_out = _pushed_out(image, now)
    return Rescue(image=replace(pushed_out, due_at=_no_later(pushed_out.due_at or now, image), enqueued_at=now))


def _before_its_time(
    image: Image, now: Milliseconds, service: Mapping[str, Lane], *, has_turn: bool
) -> Rescue | Wait | None:
    """What an image needs that nobody may have begun yet: its message in time, or another look at whether it is its
    turn."""
    if image.awaits_turn and image.attempt == 0:  # an earlier version may have begun it
        # guard: bulk-sweeper-keeps-turns
        return Rescue(image=begin_turn(image, now=now)) if has_turn else Wait(image=await_turn(image, now=now))
    if image.process_at is not None and image.process_at > now:
        # Its message could not be sent when it was scheduled or rescheduled. The next look is the usual first look of
        # every image.
        after_its_time = service[image.lane].first_look_at(image.process_at)
        later = replace(image, due_at=_no_later(after_its_time, image), enqueued_at=image.process_at, rescues=0)
        return Rescue(image=later)
    return None


def _look_for_bytes(
    image: Image, now: Milliseconds, backlog: int, *, fetches: bool
) -> LookForUpload | GiveUp | Wait | Refetch:
    pushed_out = _pushed_out(image, now)
    later = replace(pushed_out, due_at=_no_later(pushed_out.due_at or now, image))
    if image.status is Status.AWAITING_UPLOAD:
        return LookForUpload(arrived=later, expired=expire_upload(image, now=now))
    if not fetches:  # guard: imports-off-fetches-end
        return GiveUp(image=end_fetch(image, now=now))
    if image.attempt >= MAX_FETCH_CLAIMS:
        return GiveUp(image=give_up_fetch(image, now=now))
    begins_at = image.not_before or now
    if begins_at > now:
        return Wait(image=replace(image, due_at=_no_later(begins_at, image)))
    # A worker that has died had its message.
    # guard: sweeper-dead-worker-refetch, sweeper-fetch-backlog-wait
    wait = None if image.claimed_by else _wait_explained(image, now, backlog, FETCH_DRAIN_FLOOR_PER_SECOND)
    return wait or Refetch(image=replace(later, enqueued_at=now))


def _no_later(look_at: Milliseconds, image: Image) -> Milliseconds:
    """An image that was not begun is looked at when it expires; a begun one no longer expires."""
    begun = image.status is Status.PROCESSING
    return look_at if image.expires_at is None or begun else min(look_at, image.expires_at)


def dead_letter_placed(image: Image, *, now: Milliseconds) -> Image:
    """The image after its dead letter was made sure of: looked at once more when no other dead letter can come, and
    then no more."""
    if image.dead_letter is DeadLetterState.OWED:  # guard: dead-letters-second-look
        look_at = now if image.edit_waits else now + LAST_MESSAGE_SECONDS * 1000  # guard: bulk-edit-after-dead-letter
        return replace(image, dead_letter=DeadLetterState.PLACED, due_at=look_at, rescues=0)
    return replace(image, dead_letter=DeadLetterState.KEPT, due_at=None, rescues=0)


def _pushed_out(image: Image, now: Milliseconds) -> Image:
    pause_seconds = min(SWEEP_INTERVAL_SECONDS * 2**image.rescues, MAX_PAUSE_SECONDS)
    return replace(image, due_at=now + pause_seconds * 1000, rescues=image.rescues + 1)


def _wait_explained(image: Image, now: Milliseconds, backlog: int, drain_floor_per_second: float) -> Wait | None:
    """The wait of a message sent at `enqueued_at`, while it is plausible: for the backlog in front of it divided by the
    rate that its workers certainly keep (Little's law), less the time that it has waited."""
    if image.enqueued_at is None or not backlog:
        return None
    remaining_seconds = backlog / drain_floor_per_second - (now - image.enqueued_at) / 1000
    if remaining_seconds <= 0:
        return None
    pause_seconds = min(max(remaining_seconds, SWEEP_INTERVAL_SECONDS), MAX_PAUSE_SECONDS)
    return Wait(image=replace(image, due_at=_no_later(now + int(pause_seconds * 1000), image)))


def _without_objects(image: Image, now: Milliseconds) -> Image:
    last_look_at = (image.deleted_at or now) + REMOVAL_GRACE_SECONDS * 1000
    if now < last_look_at:  # guard: sweeper-second-removal
        return replace(image, due_at=last_look_at, leftovers=None)  # guard: removal-last-look-lists-all
    return replace(image, due_at=None, leftovers=None, forget_at=now // 1000 + TOMBSTONE_SECONDS)


def behind(late_seconds: Mapping[str, float]) -> float:
    """How late the worst kind is, as a share of what is allowed: above 1 the sweeper is behind."""
    return max((late / BEHIND_SECONDS[kind] for kind, late in late_seconds.items()), default=0.0)
