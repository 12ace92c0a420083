"""An image's row: its states, and the meaning of each field."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from darkroom.domain.kernel.instants import Milliseconds
from darkroom.domain.kernel.lanes import LANES
from darkroom.domain.kernel.message import Message
from darkroom.domain.kernel.visibility import Visibility

if TYPE_CHECKING:
    from darkroom.domain.recipes.edits import Edits
    from darkroom.domain.recipes.recipes import Recipe

DUE_SHARDS = 16
"""Partitions of the due index for what every image owes: each takes 1,000 writes per second, so 16 suffice for any rate
that one account reaches."""


class DutyKind(StrEnum):
    """What an image is listed for in the due index: each kind has partitions of its own, so that a pile of one hides no
    other. Those of RESCUES are older than the kinds and may list rows of any."""

    RESCUES = "rescues"
    DEAD_LETTERS = "dead_letters"
    EXPIRIES = "expiries"
    FETCHES = "fetches"
    REMOVALS = "removals"


LIST_SHARDS = 4
"""Partitions of a tenant's list: each takes 1,000 writes per second, so that one tenant may have 2,000 images accepted
and 2,000 deleted in one. A page of its list asks all of them."""


class Status(StrEnum):
    """An image's state. An id without a row is unknown, never `pending`."""

    AWAITING_UPLOAD = "awaiting_upload"
    FETCHING = "fetching"
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


@dataclass(frozen=True, kw_only=True)
class Source:
    """The original as it was accepted: one version of one object, identified by its bytes. For a future upload it is
    what the client announced, and `version_id` is empty; for one that is yet to be fetched nothing is known."""

    version_id: str
    sha256: str
    size_bytes: int
    media_type: str


@dataclass(frozen=True, kw_only=True)
class Leftovers:
    """What is to be removed of a deleted image: the versions of its original, and the keys of its variants."""

    version_ids: tuple[str, ...]
    keys: tuple[str, ...]


UNKNOWN_SOURCE = Source(version_id="", sha256="", size_bytes=0, media_type="")
"""What a tombstone says about its original, and an image that is yet to be fetched: nothing."""


@dataclass(frozen=True, kw_only=True)
class Provenance:
    """What a fetched original's source said of it: its `ETag` and its `Last-Modified`, as they were written."""

    etag: str | None = None
    last_modified: str | None = None


@dataclass(frozen=True, kw_only=True)
class Variant:
    """One finished output: its key, and what its bytes are."""

    name: str
    width: int
    height: int
    format: str
    size_bytes: int
    sha256: str
    key: str


@dataclass(frozen=True, kw_only=True)
class Failure:
    """Why an image ended `failed`: a stable code, a sentence, and whether the same bytes may still succeed."""

    code: str
    message: str
    retryable: bool


@dataclass(frozen=True, kw_only=True)
class Cause:
    """What went wrong in an attempt, for the operator: the exception's type, its message, and the end of its stack."""

    error_type: str
    message: str
    stack: str


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """One claim of the image: who worked on it, and the result. An attempt that never ended lost its worker."""

    run: int
    number: int
    request_id: str
    started_at: Milliseconds
    ended_at: Milliseconds | None = None
    cause: Cause | None = None


class WorkKind(StrEnum):
    """What work beside a finished image makes: all of its variants again, some more, another visibility, the variants
    of its preset's present version in the place of those of an earlier one, or all of its variants by other edits."""

    REDO = "redo"
    VARIANTS = "variants"
    VISIBILITY = "visibility"
    REDEVELOP = "redevelop"
    EDIT = "edit"


@dataclass(frozen=True, kw_only=True)
class Work:
    """Work beside an image that is `done`: what one run is for, whose end leaves the image `done`.

    `beside` is the run that made the image what it is meanwhile. `recipe` has the variants to make, None for other
    work and once they are made; `visibility` is the one to get, and `edits` are those to make, if that is the work;
    `key` and `fingerprint` tell a repetition of the request. `ended_at` is None while the work is under way;
    `error` says why it `failed`. `version` is the row's after the write that ended it, as soon as other work
    follows; until then the row has it as `work_version`. `batch` is the batch that the work belongs to. What a
    `backfill` has begun makes that `preset_version`, None for the first, in another lane than the image's own
    `lane`.
    """

    run: int
    kind: WorkKind
    beside: int
    requested_at: Milliseconds
    recipe: Recipe | None = None
    visibility: Visibility | None = None
    edits: Edits | None = None
    key: str | None = None
    fingerprint: str | None = None
    ended_at: Milliseconds | None = None
    failed: bool = False
    error: Failure | None = None
    version: int | None = None
    batch: str | None = None
    backfill: str | None = None
    lane: str | None = None
    preset_version: int | None = None


@dataclass(frozen=True, kw_only=True)
class EarlierEdit:
    """An edit that another one has followed, and whether it was `overtaken`: skipped, because the other came before it
    was begun."""

    number: int
    overtaken: bool
    key: str | None = None
    fingerprint: str | None = None


@dataclass(frozen=True, kw_only=True)
class Edit:
    """The last edit that was accepted: its number is the row's `edit_number`.

    `edits` are those that wait for the end of other work, None as soon as the work of `run` is to make them. `key` and
    `fingerprint` tell a repetition of the request, as those of the `earlier` ones do, the latest of them.
    """

    accepted_at: Milliseconds
    edits: Edits | None = None
    run: int | None = None
    key: str | None = None
    fingerprint: str | None = None
    earlier: tuple[EarlierEdit, ...] = ()


@dataclass(frozen=True, kw_only=True)
class RunEnd:
    """How a run ended that another run followed, and the row's version after the write that ended it."""

    run: int
    status: Status
    ended_at: Milliseconds
    version: int


class DeadLetterState(StrEnum):
    """How far a given-up run has come to its one dead letter.

    `placed`: it is in its queue, but the run's last message may still join it there, if its worker died before
    acknowledging it; `kept`: that time is over, and there is exactly one.
    """

    OWED = "owed"
    PLACED = "placed"
    KEPT = "kept"


@dataclass(frozen=True, kw_only=True)
class Image:
    """One row of the Images table: the truth about an image. Queues and leases only remind a worker to look at it.

    (`status`, `run`, `attempt`) is the fence: a write that expects another triple has lost its race. `schedule`
    counts the changes of `process_at`, `version` counts all writes. `accepted_at` is when the image was accepted
    with its bytes, and `earlier_ends` says how the runs before this one ended, the latest ones. `due_at` is when
    the sweeper must look again: a terminal image has one only while its dead letter or the removal of its objects
    is owed. `waiting_since` is what an unfinished image's service level counts from, and `enqueued_at` when its
    latest message reached the lane, None if it could not be sent. While it is `parked`, because its lane or tenant is
    paused, nobody waits for it, and it has no message. `not_before` is when the next attempt may begin,
    whichever message asks for it: after a failed attempt, when its backoff is over; during an attempt, when its
    lease and the backoff are over. `claimed_by` names the one delivery that holds the lease; `attempts` describes the
    latest ones. `preset` is None if the client sent its own recipe; what it makes is of the preset's `preset_version`,
    None for the first, of which the client `chooses` only some variants, or all of them. `notify` is the only endpoint
    that hears of its events, None if all may. `reference`, `tags` and `metadata`, a JSON object as text, are its
    client's own words.
    `attention` is the point, x and y in ten-thousandths of the upright picture, that crops by attention keep; None if
    the recipe has none. `overlays` has the originals of the images that its recipe lays over variants, by id, as they
    were when it was accepted; None if there are none. `url` is where an image is fetched from, only until it is here or
    has ended, and `fetched` what that source said of it: until then the claims, attempts and times above are those of
    fetching. A row with `deleted_at` is a tombstone: it says nothing about the picture, so `recipe` is None, and what
    else is not in TOMBSTONE_FIELDS is empty. `leftovers` names its objects until they are removed for the first time,
    None if they must be listed. The table deletes it by itself at `forget_at`, in seconds because DynamoDB's TTL
    requires them. `upload_token` is the id of the token that the image was uploaded with. `visibilities` are those that
    it has had or is about to get, the present one last; none if it was never anything but private. `viewer_seconds` is
    how long whoever fetches a variant from the edge may keep it, None for as long as the deployment says. `batch` is
    the batch that it belongs to. `edit_number` counts the edits that were accepted, of which `edit` is the last one;
    `edited` is what its variants show of them, None before the first. While it, or work beside it, `awaits_turn` in a
    batch, it has no message, and nobody waits for it.
    """

    image_id: str
    tenant_id: str
    lane: str
    status: Status
    run: int
    attempt: int
    schedule: int
    version: int
    recipe: Recipe | None = None
    fingerprint: str
    correlation_id: str
    source: Source
    overlays: dict[str, Source] | None = None
    upload_token: str | None = None
    visibilities: tuple[Visibility, ...] = ()
    viewer_seconds: int | None = None
    batch: str | None = None
    awaits_turn: bool = False
    created_at: Milliseconds
    preset: str | None = None
    preset_version: int | None = None
    chooses: bool = False
    notify: str | None = None
    reference: str | None = None
    tags: tuple[str, ...] = ()
    metadata: str | None = None
    process_at: Milliseconds | None = None
    expires_at: Milliseconds | None = None
    accepted_at: Milliseconds | None = None
    accepted_version: int | None = None
    completed_at: Milliseconds | None = None
    completed_version: int | None = None
    due_at: Milliseconds | None = None
    waiting_since: Milliseconds | None = None
    enqueued_at: Milliseconds | None = None
    rescues: int = 0
    parked: bool = False
    lease_until: Milliseconds | None = None
    not_before: Milliseconds | None = None
    claimed_by: str | None = None
    variants: tuple[Variant, ...] = ()
    url: str | None = None
    fetched: Provenance | None = None
    placeholder: dict[str, str] | None = None
    attention: dict[str, int] | None = None
    notices: tuple[str, ...] = ()
    error: Failure | None = None
    attempts: tuple[Attempt, ...] = ()
    dead_letter: DeadLetterState | None = None
    earlier_ends: tuple[RunEnd, ...] = ()
    works: tuple[Work, ...] = ()
    work_version: int | None = None
    added: tuple[Recipe, ...] = ()
    edit_number: int | None = None
    edit: Edit | None = None
    edited: Edits | None = None
    deleted_at: Milliseconds | None = None
    deleted_version: int | None = None
    leftovers: Leftovers | None = None
    forget_at: int | None = None

    @property
    def is_deleted(self) -> bool:
        """Whether its client has deleted it: it is no longer shown or developed."""
        return self.deleted_at is not None

    @property
    def visibility(self) -> Visibility:
        """Whom the edge serves its variants to."""
        return self.visibilities[-1] if self.visibilities else Visibility.PRIVATE

    @property
    def latest_work(self) -> Work | None:
        """The work that its latest run is for, if that is work beside it."""
        last = self.works[-1] if self.works else None
        return last if last is not None and last.run == self.run else None

    @property
    def work(self) -> Work | None:
        """The work beside it that is under way. An earlier version, that knows of none, may have ended it."""
        latest = self.latest_work
        return latest if latest is not None and latest.ended_at is None and not self.status.is_terminal else None

    @property
    def work_batch(self) -> str | None:
        """The batch of the work that its latest run is for."""
        return None if self.latest_work is None else self.latest_work.batch

    @property
    def edit_waits(self) -> bool:
        """Whether its last edit is yet to become work beside it."""
        return self.edit is not None and self.edit.edits is not None

    @property
    def outcome(self) -> Status:
        """The state of the image itself: work beside it leaves it as it is."""
        return self.status if self.work is None else Status.DONE

    @property
    def outcome_run(self) -> int:
        """The run that made the image what it is, but for variants that were added."""
        latest = self.latest_work
        if latest is None or (latest.kind is WorkKind.REDO and latest.ended_at and not latest.failed):
            return self.run
        if latest.ended_at is None and self.status.is_terminal:  # an earlier version has made all of it
            return self.run
        return latest.beside

    @property
    def home_lane(self) -> str:
        """The lane of its client's work, whichever it is in for a backfill."""
        latest = self.latest_work
        return self.lane if latest is None or latest.lane is None else latest.lane

    @property
    def failed_work(self) -> Work | None:
        """The work beside it that has failed, if that was its latest run."""
        latest = self.latest_work
        return latest if latest is not None and latest.failed else None

    @property
    def failure(self) -> Failure | None:
        """Why its latest run failed, if it did."""
        return self.error if self.failed_work is None else self.failed_work.error

    @property
    def ended_at(self) -> Milliseconds | None:
        """When its latest run ended."""
        return self.completed_at if self.latest_work is None else self.latest_work.ended_at or self.completed_at

    @property
    def has_original(self) -> bool:
        """Whether its bytes are here; an announced upload has none until it arrives, nor has what is being fetched."""
        return self.source.version_id != ""

    @property
    def retry_at(self) -> Milliseconds | None:
        """When the next attempt may begin, if one has failed and no worker has the image."""
        return None if self.claimed_by is not None or self.status.is_terminal else self.not_before

    @property
    def waiting_shard(self) -> str | None:
        """The partition of the waiting index that lists this image, or None if nobody waits for it."""
        if self.waiting_since is None:
            return None
        shards = waiting_shards_of(self.lane)
        return waiting_shard_of(self.lane, shards[int(due_shard_of(self.image_id)) % len(shards)])

    @property
    def due_shard(self) -> str | None:
        """The partition of the due index that lists this image, or None if it needs no further look."""
        return None if self.due_at is None else due_shard_of(self.image_id, duty_kind_of(self))

    @property
    def list_shard(self) -> str | None:
        """The partition of the list of its tenant's images, or None if it is no longer in it."""
        # guard: list-deleted-leaves-index
        return None if self.is_deleted else list_shard_of(self.tenant_id, self.image_id)

    @property
    def reference_key(self) -> str | None:
        """The partition of the index that lists its tenant's images with its reference, or None without one."""
        return None if self.reference is None else reference_key_of(self.tenant_id, self.reference)


VERSION_FIELDS = frozenset({"accepted_version", "completed_version", "work_version", "deleted_version"})
"""The fields that hold the row's version after the write that made an event. The decision to write cannot know it:
whoever writes a row puts the true one there."""

TOMBSTONE_FIELDS = frozenset(
    {
        *("image_id", "tenant_id", "lane", "preset", "notify", "status", "run", "attempt", "schedule", "version"),
        *("created_at", "process_at", "expires_at", "accepted_at", "completed_at", "deleted_at", "forget_at"),
        *("earlier_ends", "works", "batch", *VERSION_FIELDS),  # for events
        *("due_at", "rescues", "leftovers", "visibilities"),  # for the removal of its objects
    }
)
"""The fields of an image that its tombstone keeps: they answer a repeated request, void the messages that are still
under way, and date what happened and was told in events."""


def duty_kind_of(image: Image) -> DutyKind:
    """What a row with `due_at` is listed for."""
    if image.dead_letter in (DeadLetterState.OWED, DeadLetterState.PLACED):
        return DutyKind.DEAD_LETTERS
    if image.is_deleted:
        return DutyKind.REMOVALS
    if image.edit_waits:
        return DutyKind.RESCUES
    if image.status.is_terminal:  # what fetching may have left
        return DutyKind.FETCHES
    if image.status is Status.AWAITING_UPLOAD:
        return DutyKind.EXPIRIES
    if image.status is not Status.PROCESSING and image.due_at == image.expires_at:
        return DutyKind.EXPIRIES
    return DutyKind.FETCHES if image.status is Status.FETCHING else DutyKind.RESCUES


DUE_PARTITIONS: dict[DutyKind, tuple[str, ...]] = {
    DutyKind.RESCUES: tuple(f"{shard:02d}" for shard in range(DUE_SHARDS)),
    **{
        kind: tuple(f"{kind.value}#{shard:02d}" for shard in range(shards))
        for kind, shards in (
            (DutyKind.DEAD_LETTERS, 2),
            (DutyKind.EXPIRIES, 4),
            (DutyKind.FETCHES, 4),
            (DutyKind.REMOVALS, 4),
        )
    },
}
"""The partitions of the due index by kind. Of all kinds but the first, rows are written and moved once or twice each: a
partition takes 1,000 writes per second, and every sweep asks each of them."""

DUE_SHARD_NAMES = DUE_PARTITIONS[DutyKind.RESCUES]


def due_shard_of(image_id: str, kind: DutyKind = DutyKind.RESCUES) -> str:
    """The partition of the due index for an id, spread evenly by CRC-32."""
    partitions = DUE_PARTITIONS[kind]
    return partitions[zlib.crc32(image_id.encode()) % len(partitions)]


def list_shard_of(tenant_id: str, image_id: str) -> str:
    """The partition of a tenant's list for one of its images. No tenant's id has a `#`."""
    return f"{tenant_id}#{zlib.crc32(image_id.encode()) % LIST_SHARDS}"


def list_shards_of(tenant_id: str) -> tuple[str, ...]:
    """All partitions of a tenant's list."""
    return tuple(f"{tenant_id}#{shard}" for shard in range(LIST_SHARDS))


def reference_key_of(tenant_id: str, reference: str) -> str:
    """The partition that lists a tenant's images with a reference. No tenant's id has a `#`."""
    return f"{tenant_id}#{reference}"


def waiting_shards_of(lane: str) -> tuple[str, ...]:
    """The shards of a lane in the waiting index. One that no upload chooses gets its images at the pace of its workers,
    so that two are enough; and every sweep asks each."""
    return DUE_SHARD_NAMES if LANES[lane].tiers else DUE_SHARD_NAMES[:2]


def waiting_shard_of(lane: str, shard: str) -> str:
    """The partition of the waiting index for a lane's images in one shard: it is sorted by `waiting_since`."""
    return f"{lane}#{shard}"


def has_expired(image: Image, now: Milliseconds) -> bool:
    """Whether the image expired before a worker began it."""
    unbegun = (Status.AWAITING_UPLOAD, Status.FETCHING, Status.SCHEDULED, Status.PENDING)
    return image.status in unbegun and image.expires_at is not None and image.expires_at <= now


def run_key(image_id: str, run: int) -> str:
    """The key under which the work of one run is remembered. What a run makes never changes."""
    return f"{image_id}#{run}"


def message_for(image: Image) -> Message:
    """The message that asks for `image` to be processed in its current state."""
    return Message(
        image_id=image.image_id,
        tenant_id=image.tenant_id,
        lane=image.lane,
        run=image.run,
        schedule=image.schedule,
        beside=True if image.works else None,  # guard: works-unknown-to-earlier-version
    )


def lease_lapsed(image: Image, now: Milliseconds) -> bool:
    """Whether the worker that claimed the image may no longer work on it."""
    return image.lease_until is None or image.lease_until < now
