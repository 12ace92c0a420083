"""An image's row: its states, the one table of allowed transitions, and every decision to move along it."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Literal

from darkroom.domain.errors import INTERNAL, WORKER_LOST
from darkroom.domain.lanes import LANES
from darkroom.domain.message import Message
from darkroom.domain.retry import MAX_ATTEMPTS

if TYPE_CHECKING:
    from darkroom.domain.recipes import Recipe

type Milliseconds = int
"""An instant: whole milliseconds since 1970-01-01T00:00:00Z. Every `*_at` and `*_until` of a row is one."""

DUE_SHARDS = 16
"""Partitions of the due index: each takes 1,000 writes per second, so that 16 hold any rate one account reaches."""

SWEEP_INTERVAL_SECONDS = 60
"""The sweeper's period, and the first pause between two rescues of one image."""

MAX_RESCUE_PAUSE_SECONDS = 3600


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
    # Its time came, was moved, or the client no longer wants it.
    Status.SCHEDULED: frozenset({Status.SCHEDULED, Status.PENDING, Status.CANCELLED, Status.EXPIRED}),
    # A worker claimed it, the client no longer wants it, or its attempts ran out while it waited.
    Status.PENDING: frozenset({Status.PROCESSING, Status.FAILED, Status.CANCELLED, Status.EXPIRED}),
    # Finished, refused, put back for another attempt, or claimed anew after its worker died.
    Status.PROCESSING: frozenset({Status.PROCESSING, Status.PENDING, Status.DONE, Status.FAILED, Status.CANCELLED}),
    # Only an operator's replay leaves a terminal state: run + 1, attempts from 0.
    Status.FAILED: frozenset({Status.PENDING}),
    Status.DONE: frozenset(),
    Status.CANCELLED: frozenset(),
    Status.EXPIRED: frozenset(),
}


@dataclass(frozen=True, kw_only=True)
class Source:
    """The original as it was accepted: one version of one object, known by its bytes."""

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
class Image:
    """One row of the Images table: the truth about an image. Queues and leases only remind somebody to look at it.

    (`status`, `run`, `attempt`) is the fence: a write that expects another triple has lost its race. `schedule` counts
    the changes of `process_at`, `version` counts all writes. `due_at` is when somebody must look again; a terminal
    image has none. `claimed_by` names the one delivery that holds the lease. `preset` is None where the client sent a
    recipe of its own.
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
    rescues: int = 0
    lease_until: Milliseconds | None = None
    claimed_by: str | None = None
    variants: tuple[Variant, ...] = ()
    placeholder: dict[str, str] | None = None
    notices: tuple[str, ...] = ()
    error: Failure | None = None

    @property
    def due_shard(self) -> str | None:
        """The partition of the due index that lists this image, or None where nobody needs to look again."""
        return None if self.due_at is None else due_shard_of(self.image_id)


def due_shard_of(image_id: str) -> str:
    """The partition of the due index for an id: "00" to "15", spread evenly by CRC-32."""
    return f"{zlib.crc32(image_id.encode()) % DUE_SHARDS:02d}"


DUE_SHARD_NAMES = tuple(f"{shard:02d}" for shard in range(DUE_SHARDS))


class TransitionRefused(RuntimeError):
    """Code asked for a transition that the table does not have: a bug, never an input's fault."""


def _move(image: Image, status: Status, **changes: Any) -> Image:
    if status not in TRANSITIONS[image.status]:
        raise TransitionRefused(f"an image cannot go from {image.status} to {status}")
    if status.is_terminal:
        changes |= {"due_at": None}
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
) -> Image:
    """The row of an upload that was just stored: `pending`, due for a look after twice its lane's service level."""
    return Image(
        image_id=image_id,
        tenant_id=tenant_id,
        lane=lane,
        status=Status.PENDING,
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
        due_at=now + 2 * LANES[lane].sla_seconds * 1000,
    )


def message_for(image: Image) -> Message:
    """The message that asks for `image` to be processed as it stands now."""
    return Message(
        image_id=image.image_id, tenant_id=image.tenant_id, lane=image.lane, run=image.run, schedule=image.schedule
    )


@dataclass(frozen=True, kw_only=True)
class NothingToDo:
    """A delivery that has no work left: it is acknowledged, and never recorded as done."""

    reason: Literal["stale", "terminal", "too_early", "leased"]


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A delivery that won its image: `image` is the row as the claim leaves it."""

    image: Image


@dataclass(frozen=True, kw_only=True)
class GiveUp:
    """The attempts ran out: `image` is the row as `failed` leaves it."""

    image: Image


def claim(
    image: Image,
    message: Message,
    *,
    now: Milliseconds,
    claimed_by: str,
    lease_until: Milliseconds,
    due_at: Milliseconds,
) -> Claim | GiveUp | NothingToDo:
    """What a delivery of `message` may do with the row as it stands.

    Allowed from `pending` once `process_at` has come, and from `processing` once the lease has lapsed; always only for
    the run and schedule that the row carries now.
    """
    if (message.tenant_id, message.lane, message.run, message.schedule) != (
        image.tenant_id,
        image.lane,
        image.run,
        image.schedule,
    ):
        return NothingToDo(reason="stale")
    if image.status.is_terminal:
        return NothingToDo(reason="terminal")
    if image.status not in (Status.PENDING, Status.PROCESSING):
        return NothingToDo(reason="too_early")
    if image.process_at is not None and image.process_at > now:
        return NothingToDo(reason="too_early")
    if image.status is Status.PROCESSING and not _lease_lapsed(image, now):
        return NothingToDo(reason="leased")
    if image.attempt >= MAX_ATTEMPTS:
        return GiveUp(image=give_up(image, now=now))
    return Claim(
        image=_move(
            image,
            Status.PROCESSING,
            attempt=image.attempt + 1,
            lease_until=lease_until,
            claimed_by=claimed_by,
            due_at=due_at,
            rescues=0,
        )
    )


def _lease_lapsed(image: Image, now: Milliseconds) -> bool:
    return image.lease_until is None or image.lease_until < now


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
        lease_until=None,
        claimed_by=None,
        error=None,
    )


def reject(image: Image, *, code: str, message: str, now: Milliseconds) -> Image:
    """The claimed image whose bytes can never be developed: `failed` at once, and its owner is told why."""
    return _fail(image, Failure(code=code, message=message, retryable=False), now=now)


def give_up(image: Image, *, now: Milliseconds) -> Image:
    """The image whose attempts ran out: `worker_lost` where a worker died holding it, `internal` otherwise."""
    if image.status is Status.PROCESSING and image.lease_until is not None and image.lease_until < now:
        failure = Failure(
            code=WORKER_LOST,
            message=f"The workers that developed this image died {MAX_ATTEMPTS} times. The operator has been alerted.",
            retryable=True,
        )
    else:
        failure = Failure(
            code=INTERNAL,
            message=f"Developing this image failed {MAX_ATTEMPTS} times. The operator has been alerted.",
            retryable=True,
        )
    return _fail(image, failure, now=now)


def _fail(image: Image, failure: Failure, *, now: Milliseconds) -> Image:
    return _move(image, Status.FAILED, error=failure, completed_at=now, lease_until=None, claimed_by=None)


def put_back(image: Image, *, now: Milliseconds, delay_seconds: int) -> Image:
    """The claimed image after an attempt that failed: `pending`, due a minute after its message comes back."""
    return _move(
        image,
        Status.PENDING,
        lease_until=None,
        claimed_by=None,
        due_at=now + (delay_seconds + SWEEP_INTERVAL_SECONDS) * 1000,
    )


def due_now(image: Image, *, now: Milliseconds) -> Image:
    """The image whose message could not be sent: due at once, for the sweeper to send it."""
    return replace(image, due_at=now)


@dataclass(frozen=True, kw_only=True)
class Rescue:
    """A due image that needs its message again: `image` is the row with `due_at` pushed out."""

    image: Image


def look_at_due(image: Image, *, now: Milliseconds) -> Rescue | GiveUp | NothingToDo:
    """What the sweeper does with a due row: send its message again, end it where its attempts ran out, or nothing.

    Each rescue doubles the pause until the next look, from a minute to an hour: a rescue is a duplicate at worst, and
    duplicates stay few. Sweeps are not attempts.
    """
    if image.due_at is None or image.due_at > now:
        return NothingToDo(reason="too_early")
    if image.status not in (Status.PENDING, Status.PROCESSING):
        return NothingToDo(reason="terminal" if image.status.is_terminal else "too_early")
    if image.status is Status.PROCESSING and not _lease_lapsed(image, now):
        return NothingToDo(reason="leased")
    if image.attempt >= MAX_ATTEMPTS:
        return GiveUp(image=give_up(image, now=now))
    pause_seconds = min(SWEEP_INTERVAL_SECONDS * 2**image.rescues, MAX_RESCUE_PAUSE_SECONDS)
    return Rescue(image=replace(image, due_at=now + pause_seconds * 1000, rescues=image.rescues + 1))
