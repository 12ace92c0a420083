"""An image's row: its states, the one table of allowed transitions, and every decision to move along it."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Literal

from darkroom.domain.errors import EXPIRED, INTERNAL, NEVER_UPLOADED, WORKER_LOST
from darkroom.domain.instants import Milliseconds
from darkroom.domain.lanes import LANES
from darkroom.domain.message import Message
from darkroom.domain.retry import MAX_ATTEMPTS

if TYPE_CHECKING:
    from darkroom.domain.recipes import Recipe

DUE_SHARDS = 16
"""Partitions of the due index: each takes 1,000 writes per second, so that 16 hold any rate one account reaches."""

SWEEP_INTERVAL_SECONDS = 60
"""The sweeper's period."""

UPLOAD_SECONDS = 300
"""How long after it was announced an upload may begin."""

ARRIVAL_GRACE_SECONDS = 600
"""How long after that it is waited for: 25 MB at 0.4 Mbit/s take eight minutes, and the news of it may take one."""

REMEMBERED_ATTEMPTS = 10
"""Attempts that a row tells of: those of its last two runs."""


class Status(StrEnum):
    """Where an image stands. An id without a row is unknown, never `pending`."""

    AWAITING_UPLOAD = "awaiting_upload"
    SCHEDULED = "scheduled"
    PENDING = "pending"
    PROCESSING = "processing"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"
    EXPIRED = "expired"

    @property
    def is_terminal(self) -> bool:
        """Whether a run ends here."""
        return self in TERMINAL


TERMINAL = frozenset({Status.DONE, Status.FAILED, Status.CANCELLED, Status.EXPIRED})

TRANSITIONS: dict[Status, frozenset[Status]] = {
    # The upload arrived (now or for later), was withdrawn, was refused, or never came.
    Status.AWAITING_UPLOAD: frozenset(
        {Status.SCHEDULED, Status.PENDING, Status.FAILED, Status.CANCELLED, Status.EXPIRED}
    ),
    # It was moved, or moved to now; its time came and a worker claimed it; the client no longer wants it.
    Status.SCHEDULED: frozenset(
        {Status.SCHEDULED, Status.PENDING, Status.PROCESSING, Status.CANCELLED, Status.EXPIRED}
    ),
    # A worker claimed it, the client no longer wants it, or its attempts ran out while it waited.
    Status.PENDING: frozenset({Status.PROCESSING, Status.FAILED, Status.CANCELLED, Status.EXPIRED}),
    # Finished, refused, put back for another attempt, or claimed anew after its worker died.
    Status.PROCESSING: frozenset({Status.PROCESSING, Status.PENDING, Status.DONE, Status.FAILED, Status.CANCELLED}),
    # Only an operator leaves a terminal state, by a replay or a redo: run + 1, attempts from 0.
    Status.FAILED: frozenset({Status.PENDING}),
    Status.DONE: frozenset({Status.PENDING}),
    Status.CANCELLED: frozenset(),
    Status.EXPIRED: frozenset(),
}


@dataclass(frozen=True, kw_only=True)
class Source:
    """The original as it was accepted: one version of one object, known by its bytes. Of an upload that is yet to come
    it is what its client has stated, and `version_id` is empty."""

    version_id: str
    sha256: str
    size_bytes: int
    media_type: str


@dataclass(frozen=True, kw_only=True)
class Variant:
    """One finished output: where it lies and what its bytes are."""

    name: str
    width: int
    height: int
    format: str
    size_bytes: int
    sha256: str
    key: str


@dataclass(frozen=True, kw_only=True)
class Failure:
    """Why an image ended `failed`: a stable code, a sentence, and whether the same bytes may yet succeed."""

    code: str
    message: str
    retryable: bool


@dataclass(frozen=True, kw_only=True)
class Cause:
    """What went wrong in an attempt, for the operator: the exception's type, what it says, and the end of its stack."""

    error_type: str
    message: str
    stack: str


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """One claim of the image: who worked on it, and what came of it. One that never ended lost its worker."""

    run: int
    number: int
    request_id: str
    started_at: Milliseconds
    ended_at: Milliseconds | None = None
    cause: Cause | None = None


class Letter(StrEnum):
    """How far a given-up run has come to its one dead letter.

    `placed`: it lies in its queue, but the run's last message may yet join it there, by a worker that died before it
    could acknowledge it; `kept`: that time is over, and there is one.
    """

    OWED = "owed"
    PLACED = "placed"
    KEPT = "kept"


@dataclass(frozen=True, kw_only=True)
class Image:
    """One row of the Images table: the truth about an image. Queues and leases only remind somebody to look at it.

    (`status`, `run`, `attempt`) is the fence: a write that expects another triple has lost its race. `schedule` counts
    the changes of `process_at`, `version` counts all writes. `due_at` is when somebody must look again: a terminal
    image has one only while its dead letter or the removal of its objects is owed. `waiting_since` is what an
    unfinished image's service level counts from, and `enqueued_at` when its latest message came to be in the lane, None
    where it could not be sent. `not_before` is when the next attempt may begin, whichever message asks for it: after a
    failed attempt when its backoff is over, and while one is under way when its lease and the backoff are. `claimed_by`
    names the one delivery that holds the lease; `attempts` tells of the latest ones. `preset` is None where the client
    sent a recipe of its own. A row with `deleted_at` is a tombstone, which the table forgets by itself at `forget_at`,
    in seconds because DynamoDB's expiry wants them.
    """

    image_id: str
    tenant_id: str
    lane: str
    status: Status
    run: int
    attempt: int
    schedule: int
    version: int
    recipe: Recipe
    fingerprint: str
    correlation_id: str
    source: Source
    created_at: Milliseconds
    preset: str | None = None
    process_at: Milliseconds | None = None
    expires_at: Milliseconds | None = None
    completed_at: Milliseconds | None = None
    due_at: Milliseconds | None = None
    waiting_since: Milliseconds | None = None
    enqueued_at: Milliseconds | None = None
    rescues: int = 0
    lease_until: Milliseconds | None = None
    not_before: Milliseconds | None = None
    claimed_by: str | None = None
    variants: tuple[Variant, ...] = ()
    placeholder: dict[str, str] | None = None
    notices: tuple[str, ...] = ()
    error: Failure | None = None
    attempts: tuple[Attempt, ...] = ()
    letter: Letter | None = None
    deleted_at: Milliseconds | None = None
    forget_at: int | None = None

    @property
    def is_deleted(self) -> bool:
        """Whether its client has withdrawn it: nothing of it is shown or developed any more."""
        return self.deleted_at is not None

    @property
    def has_original(self) -> bool:
        """Whether its bytes are here; an upload that was announced has none until it comes."""
        return self.source.version_id != ""

    @property
    def waiting_shard(self) -> str | None:
        """The partition of the waiting index that lists this image, or None where nobody waits for it."""
        return None if self.waiting_since is None else waiting_shard_of(self.lane, due_shard_of(self.image_id))

    @property
    def due_shard(self) -> str | None:
        """The partition of the due index that lists this image, or None where nobody needs to look again."""
        return None if self.due_at is None else due_shard_of(self.image_id)


def due_shard_of(image_id: str) -> str:
    """The partition of the due index for an id: "00" to "15", spread evenly by CRC-32."""
    return f"{zlib.crc32(image_id.encode()) % DUE_SHARDS:02d}"


DUE_SHARD_NAMES = tuple(f"{shard:02d}" for shard in range(DUE_SHARDS))


def waiting_shard_of(lane: str, shard: str) -> str:
    """The partition of the waiting index for a lane's images of one shard: it is sorted by `waiting_since`."""
    return f"{lane}#{shard}"


class TransitionRefused(RuntimeError):
    """Code asked for a transition that the table does not have: a bug, never an input's fault."""


def _move(image: Image, status: Status, **changes: Any) -> Image:
    is_next_run = changes.get("run") == image.run + 1
    if status not in TRANSITIONS[image.status] or is_next_run != image.status.is_terminal:
        raise TransitionRefused(f"an image cannot go from {image.status} to {status}")
    if status.is_terminal:
        ended: dict[str, Any] = {
            "due_at": None,
            "waiting_since": None,
            "lease_until": None,
            "not_before": None,
            "claimed_by": None,
        }
        changes = ended | changes
    return replace(image, status=status, **changes)


def accept(
    *,
    image_id: str,
    tenant_id: str,
    lane: str,
    preset: str | None,
    recipe: Recipe,
    fingerprint: str,
    correlation_id: str,
    source: Source,
    now: Milliseconds,
    process_at: Milliseconds | None = None,
    expires_at: Milliseconds | None = None,
) -> Image:
    """The row of an upload that was just stored: `pending`, or `scheduled` where its time is yet to come; due for a
    look twice its lane's service level after that."""
    begins_at = process_at or now
    return Image(
        image_id=image_id,
        tenant_id=tenant_id,
        lane=lane,
        status=Status.PENDING if process_at is None else Status.SCHEDULED,
        run=1,
        attempt=0,
        schedule=0,
        version=1,
        preset=preset,
        recipe=recipe,
        fingerprint=fingerprint,
        correlation_id=correlation_id,
        source=source,
        created_at=now,
        process_at=process_at,
        expires_at=expires_at,
        waiting_since=begins_at,
        enqueued_at=begins_at,
        due_at=_before_expiry(begins_at + 2 * LANES[lane].sla_seconds * 1000, expires_at),
    )


def await_upload(accepted: Image, *, now: Milliseconds) -> Image:
    """The row of an image whose bytes are yet to be uploaded; due for a look when they can no longer come."""
    return replace(
        accepted,
        status=Status.AWAITING_UPLOAD,
        waiting_since=None,
        enqueued_at=None,
        due_at=_upload_is_over_at(now, accepted.expires_at),
    )


def renew_upload(image: Image, *, now: Milliseconds) -> Image:
    """The awaited image whose client has asked again where to upload it: it has as long as at first."""
    return replace(image, due_at=_upload_is_over_at(now, image.expires_at), rescues=0)


def _upload_is_over_at(now: Milliseconds, expires_at: Milliseconds | None) -> Milliseconds:
    return _before_expiry(now + (UPLOAD_SECONDS + ARRIVAL_GRACE_SECONDS) * 1000, expires_at)


def arrive(image: Image, source: Source, *, now: Milliseconds) -> Image:
    """The awaited image with its original: `pending`, or `scheduled` where its time is yet to come, as if it had been
    accepted now."""
    is_ahead = image.process_at is not None and image.process_at > now
    begins_at = max(image.process_at or now, now)
    return _move(
        image,
        Status.SCHEDULED if is_ahead else Status.PENDING,
        source=source,
        waiting_since=begins_at,
        enqueued_at=begins_at,
        due_at=_before_expiry(begins_at + 2 * LANES[image.lane].sla_seconds * 1000, image.expires_at),
        rescues=0,
    )


def never_came(image: Image, *, now: Milliseconds) -> Image:
    """The awaited image that nobody has uploaded: `expired`."""
    failure = Failure(
        code=NEVER_UPLOADED,
        message="It was not uploaded in time. Announce it again, with a new Idempotency-Key.",
        retryable=False,
    )
    return _move(image, Status.EXPIRED, error=failure, completed_at=now)


def _before_expiry(look_at: Milliseconds, expires_at: Milliseconds | None) -> Milliseconds:
    return look_at if expires_at is None else min(look_at, expires_at)


def move(image: Image, *, process_at: Milliseconds | None, expires_at: Milliseconds | None, now: Milliseconds) -> Image:
    """The scheduled image at another time, None for now: whatever reminded of the time before is void.

    Raises TransitionRefused for one that is not `scheduled`.
    """
    begins_at = process_at or now
    return _move(
        image,
        Status.PENDING if process_at is None else Status.SCHEDULED,
        schedule=image.schedule + 1,
        process_at=begins_at,
        expires_at=expires_at,
        waiting_since=begins_at,
        enqueued_at=begins_at,
        due_at=_before_expiry(begins_at + 2 * LANES[image.lane].sla_seconds * 1000, expires_at),
        rescues=0,
    )


def has_expired(image: Image, now: Milliseconds) -> bool:
    """Whether nobody wants the image any more, and no worker has begun it."""
    unbegun = (Status.AWAITING_UPLOAD, Status.SCHEDULED, Status.PENDING)
    return image.status in unbegun and image.expires_at is not None and image.expires_at <= now


def expire(image: Image, *, now: Milliseconds) -> Image:
    """The image that was not begun in time: `expired`."""
    failure = Failure(
        code=EXPIRED,
        message="Its expires_at came before it could be developed. Nothing of it is wrong: send it again.",
        retryable=False,
    )
    return _move(image, Status.EXPIRED, error=failure, completed_at=now)


def message_for(image: Image) -> Message:
    """The message that asks for `image` to be processed as it stands now."""
    return Message(
        image_id=image.image_id, tenant_id=image.tenant_id, lane=image.lane, run=image.run, schedule=image.schedule
    )


@dataclass(frozen=True, kw_only=True)
class NothingToDo:
    """A delivery that has no work left: it is acknowledged, and never recorded as done."""

    reason: Literal["stale", "terminal", "too_early", "leased", "backing_off"]


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A delivery that won its image: `image` is the row as the claim leaves it."""

    image: Image


@dataclass(frozen=True, kw_only=True)
class GiveUp:
    """The attempts ran out: `image` is the row as `failed` leaves it."""

    image: Image


@dataclass(frozen=True, kw_only=True)
class Expire:
    """Its time is over before it was begun: `image` is the row as `expired` leaves it."""

    image: Image


@dataclass(frozen=True, kw_only=True)
class TooEarly:
    """A delivery before the image's time, by clocks that differ or by hand: its message must come back then."""

    process_at: Milliseconds


@dataclass(frozen=True, kw_only=True)
class Redriven:
    """A dead letter that was moved back to its lane although its run has ended: `image` owes its letter once more."""

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
    """What a delivery of `message` may do with the row as it stands.

    Allowed from `scheduled` and `pending` once `process_at` has come, unless `expires_at` has too, and from
    `processing` once the lease has lapsed; after the first attempt only once the row's `not_before` has come, because
    a copy of the message may come at any time; always only for the schedule that the row carries now. A message of an
    earlier run is as good as one of this run: what a replay moves back from the dead letters is one.

    `not_before` is when the attempt after this one may begin, should this one's worker be lost.
    """
    if (message.tenant_id, message.lane, message.schedule) != (image.tenant_id, image.lane, image.schedule):
        return NothingToDo(reason="stale")
    if message.run > image.run:
        return NothingToDo(reason="stale")
    if image.letter in (Letter.PLACED, Letter.KEPT) and message.run == image.run:
        return Redriven(image=replace(image, letter=Letter.OWED, due_at=now, rescues=0))
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
        image=_move(
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


def lease_lapsed(image: Image, now: Milliseconds) -> bool:
    """Whether whoever held the image may work on it no longer."""
    return image.lease_until is None or image.lease_until < now


def _ended(image: Image, now: Milliseconds, cause: Cause | None) -> tuple[Attempt, ...]:
    """The attempts with the latest one ended. One that a dead worker left stays without an end."""
    *earlier, latest = image.attempts or (None,)
    if latest is None or latest.ended_at is not None:
        return image.attempts
    return (*(one for one in earlier if one is not None), replace(latest, ended_at=now, cause=cause))


def complete(
    image: Image,
    variants: tuple[Variant, ...],
    *,
    notices: tuple[str, ...],
    now: Milliseconds,
    placeholder: dict[str, str] | None = None,
) -> Image:
    """The claimed image with its outputs: `done`."""
    return _move(
        image,
        Status.DONE,
        variants=variants,
        placeholder=placeholder,
        notices=notices,
        completed_at=now,
        error=None,
        attempts=_ended(image, now, None),
    )


def reject(image: Image, *, code: str, message: str, now: Milliseconds) -> Image:
    """The claimed or awaited image whose bytes can never be developed: `failed` at once, and its owner is told why."""
    failure = Failure(code=code, message=message, retryable=False)
    return _move(image, Status.FAILED, error=failure, completed_at=now, attempts=_ended(image, now, None))


def give_up(image: Image, *, now: Milliseconds, cause: Cause | None = None) -> Image:
    """The image whose attempts ran out: `internal` where the last one ended, by `cause` or by an earlier write's, and
    `worker_lost` where a worker died holding it.

    It is due at once, for the sweeper to make sure of its one dead letter.
    """
    if cause is None and image.status is Status.PROCESSING:
        failure = Failure(
            code=WORKER_LOST,
            message=f"The worker that developed this image died in the last of {MAX_ATTEMPTS} attempts. "
            "The operator has been alerted.",
            retryable=True,
        )
        attempts = image.attempts
    else:
        failure = Failure(
            code=INTERNAL,
            message=f"Developing this image failed {MAX_ATTEMPTS} times. The operator has been alerted.",
            retryable=True,
        )
        attempts = _ended(image, now, cause)
    return _failed_with_letter(image, failure, attempts, now)


def escalate(image: Image, *, code: str, message: str, now: Milliseconds, cause: Cause) -> Image:
    """The claimed image that only an operator can help: `failed` at once, and due for its one dead letter."""
    failure = Failure(code=code, message=message, retryable=False)
    return _failed_with_letter(image, failure, _ended(image, now, cause), now)


def _failed_with_letter(image: Image, failure: Failure, attempts: tuple[Attempt, ...], now: Milliseconds) -> Image:
    return _move(
        image,
        Status.FAILED,
        error=failure,
        completed_at=now,
        attempts=attempts,
        letter=Letter.OWED,
        due_at=now,
        rescues=0,
    )


def put_back(
    image: Image, *, now: Milliseconds, delay_seconds: int, cause: Cause, message_returns: bool = True
) -> Image:
    """The claimed image after an attempt that failed: `pending`, due a minute after its message comes back. No message
    begins another attempt before the delay is over.

    Where the message does not come back, the sweeper sends another when the delay is over.
    """
    comes_back_at = now + delay_seconds * 1000
    return _move(
        image,
        Status.PENDING,
        lease_until=None,
        not_before=comes_back_at,
        claimed_by=None,
        attempts=_ended(image, now, cause),
        enqueued_at=comes_back_at,
        due_at=_before_expiry(
            comes_back_at + (SWEEP_INTERVAL_SECONDS * 1000 if message_returns else 0), image.expires_at
        ),
    )


def replay(image: Image, *, now: Milliseconds) -> Image:
    """The failed image once more, from its first attempt: only an operator asks for that.

    Its message is sent by whoever replays it; should that fail, the sweeper sends it.
    """
    return _next_run(image, Status.FAILED, now=now)


def redo(image: Image, *, now: Milliseconds) -> Image:
    """The done image once more, as `replay` has it of a failed one: only an operator asks for that.

    Its variants, with their placeholder and notices, stay until a run has made others. Its `expires_at` goes: it was
    developed in time.
    """
    return replace(_next_run(image, Status.DONE, now=now), expires_at=None)


def _next_run(image: Image, after: Status, *, now: Milliseconds) -> Image:
    if image.status is not after:
        raise TransitionRefused(f"an image cannot go from {image.status} to pending here, only from {after}")
    return _move(
        image,
        Status.PENDING,
        run=image.run + 1,
        attempt=0,
        error=None,
        completed_at=None,
        letter=None,
        waiting_since=now,
        enqueued_at=now,
        rescues=0,
        due_at=now + 2 * LANES[image.lane].sla_seconds * 1000,
    )


def delete(image: Image, *, now: Milliseconds) -> Image:
    """The image as its client's withdrawal leaves it: a tombstone, `cancelled` where it was unfinished.

    It is due at once, for the sweeper to remove its objects. One that was deleted before stays as it is.
    """
    if image.is_deleted:
        return image
    changes: dict[str, Any] = {
        "deleted_at": now,
        "due_at": now,
        "rescues": 0,
        "variants": (),
        "placeholder": None,
        "letter": None,
    }
    if image.status.is_terminal:
        return replace(image, **changes)
    return _move(image, Status.CANCELLED, completed_at=now, **changes)


def due_now(image: Image, *, now: Milliseconds) -> Image:
    """The image whose message could not be sent: due at once, for the sweeper to send it."""
    return replace(image, due_at=now, enqueued_at=None)
