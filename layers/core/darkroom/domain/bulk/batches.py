"""A batch's row: images that belong together, how far they are, and the one state in which the batch ends."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import astuple, dataclass, replace
from enum import StrEnum

from darkroom.domain.bulk.members import Member
from darkroom.domain.kernel.errors import Rejected
from darkroom.domain.kernel.figures import added
from darkroom.domain.kernel.ids import DIGIT, image_id_for_key, image_id_from_bits
from darkroom.domain.kernel.instants import Milliseconds

PREFIX = "ba_"

BATCH_ID_PATTERN = rf"{PREFIX}[0-7]{DIGIT}{{25}}"
"""The pattern of every batch's id: 128 bits behind a prefix, random or of an Idempotency-Key."""

_BATCH_ID = re.compile(BATCH_ID_PATTERN)

MAX_NAME_CHARACTERS = 200

MAX_PARALLELISM = 1000

DAY_MILLISECONDS = 24 * 3600 * 1000

OPEN_DAYS = 7
"""When a batch that its client never closes closes by itself."""

KEPT_DAYS = 400
"""How long bulk work is kept after it has ended, and what is known of its images after they joined it: an image may be
scheduled for a year ahead."""

RESERVED_SECONDS = 300
"""How long after it joined an image's row may come: a request ends within half a minute, and clocks are minutes
apart."""

LOOK_SECONDS, MAX_LOOK_SECONDS = 300, 6 * 3600
"""The pause between two looks at a batch: it doubles while nothing happens."""


class BatchState(StrEnum):
    """A batch's state: images may join an `open` one, and a `closed` one ends when all of its images have ended."""

    OPEN = "open"
    CLOSED = "closed"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def has_ended(self) -> bool:
        """Whether nothing of it changes any more."""
        return self not in (BatchState.OPEN, BatchState.CLOSED)


class OnFailure(StrEnum):
    """What a batch does when one of its images has failed."""

    CONTINUE = "continue"
    STOP = "stop"


class Stop(StrEnum):
    """Why a batch begins nothing more."""

    CLIENT = "client"
    FAILURE = "failure"


@dataclass(frozen=True, kw_only=True)
class Counts:
    """How many images of a batch are in each state. `joined` are those of which only their request is known: they are
    in no sum."""

    joined: int = 0
    waiting: int = 0
    working: int = 0
    done: int = 0
    failed: int = 0
    cancelled: int = 0
    expired: int = 0

    def __add__(self, other: Counts) -> Counts:
        return added(self, other)

    @property
    def ended(self) -> int:
        """Those that have ended, however."""
        return self.done + self.failed + self.cancelled + self.expired

    @property
    def images(self) -> int:
        """All of them."""
        return sum(astuple(self))

    @property
    def progress(self) -> float:
        """The share of them that has ended; 1 if there are none."""
        return self.ended / self.images if self.images else 1.0


NO_COUNTS = Counts()


def counts_of(members: Iterable[Member]) -> Counts:
    """How many of these images are in each state."""
    return Counts(**Counter(member.state.value for member in members))


@dataclass(frozen=True, kw_only=True)
class Sums:
    """What was counted of a batch from the writes of its images, when something was counted last, and when the first of
    its images had ended."""

    counts: Counts = NO_COUNTS
    counted_at: Milliseconds | None = None
    first_ended_at: Milliseconds | None = None

    def remaining_seconds(self, now: Milliseconds) -> float | None:
        """How long the rest takes at the rate at which its images have ended so far; None before there is a rate."""
        counts = self.counts
        if self.first_ended_at is None or counts.ended < 2 or now <= self.first_ended_at:
            return None
        per_millisecond = (counts.ended - 1) / (now - self.first_ended_at)
        return (counts.images - counts.ended) / per_millisecond / 1000


NO_SUMS = Sums()


@dataclass(frozen=True, kw_only=True)
class Look:
    """A look at a batch's images that goes on later: those up to `after` were looked at, and are in `counts`. One that
    `is_full` looks at all that have not ended, any other only at those that have their turn."""

    after: str | None = None
    counts: Counts = NO_COUNTS
    is_full: bool

    def covers(self, other: Look) -> bool:
        """Whether it looks at all that the other one does."""
        return self.is_full or not other.is_full


@dataclass(frozen=True, kw_only=True)
class Batch:
    """One row: the truth about a batch but for its images, each of which has an item of its own.

    `parallelism` is how many of its images may be begun and not ended, None for any number; `notify` is the only
    endpoint that hears of its end, None if all may. `fingerprint` tells a repetition of the request that made it, and
    `is_import` that an import of the same id makes its images.
    `stops` says why it begins nothing more. `counts` are those of its end; `seen` are those that a look found, which
    needs another to believe it. `looks` is how many looks in a row found nothing new, `look` is one that goes on, and
    `due_at` says when. The table deletes the row by itself at `forget_at`, in seconds.
    """

    batch_id: str
    tenant_id: str
    state: BatchState
    version: int = 1
    created_at: Milliseconds
    name: str | None = None
    parallelism: int | None = None
    on_failure: OnFailure = OnFailure.CONTINUE
    notify: str | None = None
    fingerprint: str = ""
    is_import: bool = False
    closed_at: Milliseconds | None = None
    stops: Stop | None = None
    counts: Counts | None = None
    seen: Counts | None = None
    ended_at: Milliseconds | None = None
    ended_version: int | None = None
    looks: int = 0
    look: Look | None = None
    due_at: Milliseconds | None = None
    forget_at: int | None = None

    @property
    def closes_at(self) -> Milliseconds:
        """When it closes by itself."""
        return self.created_at + OPEN_DAYS * DAY_MILLISECONDS


def is_batch_id(text: str) -> bool:
    """Whether `text` has the form of a batch's id."""
    return _BATCH_ID.fullmatch(text) is not None


def batch_id_from_bits(random_bits: bytes) -> str:
    """The id that 16 bytes encode."""
    return PREFIX + image_id_from_bits(random_bits)


def batch_id_for_key(tenant_id: str, idempotency_key: str, *, is_import: bool = False) -> str:
    """The one id of a tenant's `Idempotency-Key` for a batch, or for an import."""
    return PREFIX + image_id_for_key(f"{tenant_id}#{'import' if is_import else 'batch'}", idempotency_key)


def open_batch(
    batch_id: str,
    *,
    tenant_id: str,
    now: Milliseconds,
    name: str | None = None,
    parallelism: int | None = None,
    on_failure: OnFailure = OnFailure.CONTINUE,
    notify: str | None = None,
    of_import: str = "",
) -> Batch:
    """The row of a new batch; `of_import` is what else was asked for of the import that makes its images."""
    asked_for = "\0".join(
        ("v1", name or "", str(parallelism or ""), on_failure, notify or "", *filter(None, [of_import]))
    )
    batch = Batch(
        batch_id=batch_id,
        tenant_id=tenant_id,
        state=BatchState.OPEN,
        created_at=now,
        name=name,
        parallelism=parallelism,
        on_failure=on_failure,
        notify=notify,
        fingerprint=hashlib.sha256(asked_for.encode()).hexdigest(),
        is_import=bool(of_import),
    )
    return replace(batch, due_at=_next_look(batch, now))


def close(batch: Batch, *, now: Milliseconds) -> Batch:
    """The batch that no image may join any more: due for a look at once. One that is closed stays as it is."""
    if batch.state is not BatchState.OPEN:
        return batch
    return replace(
        batch,
        state=BatchState.CLOSED,
        closed_at=now,
        looks=0,
        # One that has begun may have missed images that joined since.
        look=None,  # guard: bulk-look-anew-once-closed
        due_at=now,
    )


def stop(batch: Batch, why: Stop, *, now: Milliseconds) -> Batch:
    """The batch that begins nothing more, closed and due for a look at once. One that has ended, or stops, stays as it
    is; but a client's word replaces a failure's."""
    if batch.state.has_ended or batch.stops in (why, Stop.CLIENT):
        return batch
    return replace(close(batch, now=now), stops=why, looks=0, look=None, due_at=now)


def stops_by(batch: Batch, counts: Counts) -> bool:
    """Whether its images' failures stop it."""
    return batch.on_failure is OnFailure.STOP and batch.stops is None and counts.failed > 0


_ENDS = {None: BatchState.COMPLETED, Stop.FAILURE: BatchState.FAILED, Stop.CLIENT: BatchState.CANCELLED}


def end(batch: Batch, counts: Counts, *, now: Milliseconds) -> Batch:
    """The batch all of whose images have ended. Raises ValueError for one that is open, has ended, or has others."""
    # guard: bulk-end-closed-only, bulk-end-all-ended
    if batch.state is not BatchState.CLOSED or counts.ended != counts.images:
        raise ValueError(f"a batch that is {batch.state} cannot end with {counts}")
    return replace(
        batch,
        state=_ENDS[batch.stops],
        counts=counts,
        seen=None,
        look=None,
        ended_at=now,
        ended_version=batch.version + 1,
        due_at=None,
        forget_at=now // 1000 + KEPT_DAYS * 24 * 3600,
    )


def look_again(batch: Batch, *, now: Milliseconds, is_quiet: bool, seen: Counts | None = None) -> Batch:
    """The batch with its next look: later each time while nothing happens, in a minute if it only needs another look to
    believe what it has `seen`."""
    looks = batch.looks + 1 if is_quiet else 0
    later = replace(batch, looks=looks, seen=seen, look=None)
    return replace(later, due_at=now + 60_000 if seen is not None else _next_look(later, now))


def look_on(batch: Batch, look: Look, *, now: Milliseconds) -> Batch:
    """The batch whose look goes on at once, but after all others that are due."""
    return replace(batch, look=look, due_at=now)


def _next_look(batch: Batch, now: Milliseconds) -> Milliseconds:
    if batch.state is BatchState.OPEN and batch.parallelism is None:
        return batch.closes_at
    pause_seconds = min(LOOK_SECONDS << min(batch.looks, 10), MAX_LOOK_SECONDS)
    look_at = now + pause_seconds * 1000
    return min(look_at, batch.closes_at) if batch.state is BatchState.OPEN else look_at


def is_quiet(batch: Batch, sums: Sums, now: Milliseconds) -> bool:
    """Whether nothing was counted for as long as the shortest pause: a write may be uncounted."""
    since = max(sums.counted_at or 0, batch.created_at)
    return now - since >= LOOK_SECONDS * 1000


def require_open(batch: Batch | None, tenant_id: str) -> Batch:
    """The batch, if the tenant's images may join it. Raises Rejected (`unknown_batch`, `batch_closed`)."""
    # guard: bulk-own-tenant
    if batch is None or batch.tenant_id != tenant_id:
        raise Rejected("unknown_batch", "batch is the id of one of your batches, and there is none with this id.")
    if batch.state is not BatchState.OPEN:  # guard: bulk-join-open-only
        raise Rejected(
            "batch_closed", "This batch takes no more images. Make another with POST /batches, or leave batch out."
        )
    return batch
