"""The ports: what operations need from the world, each kept by a fake and an adapter that pass one contract suite."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from darkroom.domain.api_keys import ApiKey
from darkroom.domain.dead_letter import Redrive
from darkroom.domain.errors import Retryable
from darkroom.domain.hold import ReleaseWindow
from darkroom.domain.image import Image, Variant
from darkroom.domain.instants import Milliseconds
from darkroom.domain.listing import Cursor
from darkroom.domain.load_shedding import Work
from darkroom.domain.message import Message
from darkroom.domain.tenants import Allowance, Tenant
from darkroom.domain.token_bucket import Microseconds, Take

type Clock = Callable[[], Milliseconds]
"""Tells the current instant."""

type Randomness = Callable[[int], bytes]
"""Gives that many random bytes."""

type Jitter = Callable[[], float]
"""Gives a random number in [0, 1), by which pauses differ."""


class Fenced(Exception):
    """A conditional write lost its race: the row is not the one it was decided on. `current` is the row that is."""

    def __init__(self, current: Image | None) -> None:
        super().__init__("the row changed since it was read")
        self.current = current


class OriginalMissing(Exception):
    """The store is well and does not have that version of the original (any more)."""


class MemoryUnavailable(Exception):
    """What an earlier worker did is not to be had: its record is in somebody else's hands, or the table does not
    answer. The work was not begun."""


class UnreadableRow(Retryable):
    """A row says what this version does not know, because a newer one wrote it; a version that can read it will.

    It concerns this row alone: every other is as well as ever. `row_id` is the image's id (or the tenant's, or the
    key's) and `reason` what cannot be read. Of an image's row the keys of indexes can be read whatever else it says:
    whose it is, when somebody must look at it again, and since when it waits.
    """

    def __init__(
        self,
        row_id: str,
        reason: str,
        *,
        tenant_id: str | None = None,
        due_at: Milliseconds | None = None,
        waiting_since: Milliseconds | None = None,
    ) -> None:
        super().__init__(
            f"the row of {row_id} cannot be read ({reason}): a newer version wrote it; deploy that version again",
            retry_after_seconds=UNREADABLE_SECONDS,
        )
        self.row_id, self.reason, self.tenant_id = row_id, reason, tenant_id
        self.due_at, self.waiting_since = due_at, waiting_since


UNREADABLE_SECONDS = 60
"""How long it makes no sense to ask for an unreadable row again: a deployment takes longer than that."""


@dataclass(frozen=True, kw_only=True)
class StoredOriginal:
    """The version of an original that counts: the first that was put."""

    version_id: str
    sha256: str
    size_bytes: int


@dataclass(frozen=True, kw_only=True)
class StoredOutput:
    """An output as it lies in the store."""

    sha256: str
    size_bytes: int


class Waiting(NamedTuple):
    """An entry of the waiting index: what an unfinished image's service level counts from, and its id. A tuple, because
    there may be millions, and they are put in order."""

    since: Milliseconds
    image_id: str


class Due(NamedTuple):
    """An entry of the due index: when somebody must look at an image, and its id."""

    due_at: Milliseconds
    image_id: str


@dataclass(frozen=True, kw_only=True)
class Listed:
    """The places of some images of a tenant, newest first; the list goes on behind `next`, None where it has ended."""

    cursors: tuple[Cursor, ...]
    next: Cursor | None


class Images(Protocol):
    """The image rows. Every method raises Retryable where the table cannot answer. Those that read or write one row
    raise UnreadableRow where this version cannot read it; those that read many return it in its place, or pass it over,
    so that it concerns no other."""

    def get(self, image_id: str) -> Image | None:
        """The row as of now (a consistent read), or None."""

    def get_all(self, image_ids: Sequence[str]) -> Mapping[str, Image | UnreadableRow]:
        """The rows as of now, by their ids, of those that there are; at most 100 ids."""

    def everything(self) -> Iterator[Image | UnreadableRow]:
        """Every row of the table, read as the caller goes on: for operators, not for requests."""

    def known(self, image_ids: Sequence[str]) -> frozenset[str]:
        """Which of the ids have a row as of now (a consistent read), whatever it says; at most 100 ids."""

    def create(self, image: Image) -> Image:
        """Puts the row unless its id has one; returns the row that the id has then: this one or the earlier one."""

    def change(self, before: Image, after: Image, *, fence: tuple[str, ...] = ("status", "run", "attempt")) -> Image:
        """Writes what differs between `before` and `after`, provided that the fields in `fence` are still those of
        `before`; returns the row as written. A response that was lost is read back, so that a write that was applied
        is not mistaken for a lost race. Raises Fenced where another write came first."""

    def postpone(self, due: Due, until: Milliseconds) -> bool:
        """Redrives the next look at an image to `until`, provided that it is due as `due` says still; returns whether
        it was. Nothing else of its row is read or written, not even `version`: it may be unreadable."""

    def due(self, shard: str, now: Milliseconds, limit: int) -> Iterator[Due]:
        """The first entries in one shard of the due index whose `due_at` has come, oldest first, read as the caller
        goes on; perhaps seconds out of date."""

    def oldest_waiting(self, lane: str) -> Milliseconds | None:
        """The earliest `waiting_since` among the lane's unfinished images, or None where there are none. Unreadable
        rows do not count; where many come first, it may be the time of the last of these."""

    def waiting(
        self, lane: str, shard: str, *, since: Milliseconds, until: Milliseconds, page_size: int
    ) -> Iterator[Waiting]:
        """The unfinished images in one shard of the lane's waiting index whose `waiting_since` lies from `since` until
        just before `until`, oldest first; perhaps seconds out of date. They are read as the caller goes on, up to
        `page_size` at a time."""

    def newest(self, tenant_id: str, *, after: Cursor | None, limit: int) -> Listed:
        """Up to `limit` of the tenant's images that were not deleted, by when they were accepted, from the newest on or
        from behind `after`; perhaps seconds out of date. Fewer than `limit` although the list goes on, where many have
        been deleted. Of two that were accepted in the same millisecond either may come first, always the same."""


class Originals(Protocol):
    """The uploads, one object per image. Every method raises Retryable where the store cannot answer."""

    def put_if_absent(self, image_id: str, body: bytes, *, sha256: str, media_type: str) -> StoredOriginal:
        """Stores `body` unless the image has an original; returns the original that it has then."""

    def get(self, image_id: str, version_id: str) -> bytes:
        """The bytes of that version. Raises OriginalMissing where there is none."""

    def delete(self, image_id: str) -> None:
        """Removes every version of the image's original; a missing one is not an error."""


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredVersion:
    """One version of an object in the originals' bucket, or a delete marker on it (`is_marker`), which has no bytes.

    `image_id` is None where `key` is none that an original has. `is_latest` is whether whoever names no version meets
    this one.
    """

    key: str
    image_id: str | None
    version_id: str
    stored_at: Milliseconds
    size_bytes: int
    is_marker: bool
    is_latest: bool


@dataclass(frozen=True, kw_only=True)
class VersionPage:
    """Some versions, in the order of their keys; the list goes on behind `next`, None where it has ended. The versions
    of one object may lie on both sides of it."""

    versions: tuple[StoredVersion, ...]
    next: tuple[str, str] | None


class OriginalVersions(Protocol):
    """The originals' bucket as it lies there, for operators and not for requests. Every method raises Retryable where
    the store cannot answer."""

    def page(self, after: tuple[str, str] | None) -> VersionPage:
        """Up to 1,000 versions and delete markers of all that is there, from the first or from behind `after` on."""

    def hide(self, image_ids: Sequence[str]) -> Mapping[str, str]:
        """Puts a delete marker on each image's original, and returns the markers' version ids by image. From then on
        `Originals.put_if_absent` does not meet it; who knows its version can read it. At most 1,000 images; a
        repetition puts markers on markers."""

    def remove(self, versions: Sequence[tuple[str, str]]) -> None:
        """Removes versions (image, version id) for good, and no others; a missing one is not an error. At most
        1,000."""


@dataclass(frozen=True, kw_only=True)
class UploadForm:
    """A form that anyone may send to `url` (multipart/form-data) until `expires_at`: all `fields` as they are, then the
    file as `file`."""

    url: str
    fields: Mapping[str, str]
    expires_at: Milliseconds


class Uploads(Protocol):
    """Where clients upload what is too large for a request, one object per image, until it is an original. Every method
    but `form_for` raises Retryable where the store cannot answer."""

    def form_for(
        self, image_id: str, *, sha256: str, size_bytes: int, media_type: str, seconds: int, now: Milliseconds
    ) -> UploadForm:
        """A form by which the image's upload can be sent from `now` on for so long: these bytes and no others."""

    def size_bytes(self, image_id: str) -> int | None:
        """How large the upload is that is there, or None."""

    def get(self, image_id: str) -> bytes | None:
        """The bytes of the upload that is there, or None."""

    def delete(self, image_id: str) -> None:
        """Removes the upload; a missing one is not an error."""


class UploadQueue(Protocol):
    """The queue of the notification that uploads have come."""

    def put(self, message: Message) -> None:
        """Reminds whoever accepts uploads of this image. Raises Retryable where the queue cannot answer."""


class Outputs(Protocol):
    """The variants. Every method raises Retryable where the store cannot answer."""

    def put_if_absent(self, key: str, body: bytes, *, sha256: str, media_type: str) -> StoredOutput:
        """Stores `body` unless `key` has an object; returns the object that it has then."""

    def holds(self, variant: Variant) -> bool:
        """Whether the variant's object is there, with its size and its checksum."""

    def delete(self, keys: tuple[str, ...]) -> None:
        """Removes the objects; a missing one is not an error."""

    def delete_all(self, image_id: str) -> None:
        """Removes whatever lies under the image's id, of every run."""

    def url_of(self, variant: Variant) -> str:
        """An address from which anyone can fetch the variant for the next 15 minutes."""


class Lanes(Protocol):
    """The queues. Every method raises Retryable where a queue cannot answer."""

    def send(self, message: Message, *, delay_seconds: int = 0) -> None:
        """Puts the message into its lane, in its tenant's share of it; it shows after `delay_seconds`, at most 900."""

    def send_all(self, lane: str, messages: Sequence[tuple[Message, int]]) -> Mapping[int, Exception]:
        """Puts messages into their lane, each with its delay in seconds, in the order given; returns, by their places,
        those of which it is not sure that they are sent: each with Retryable, or with Unplaceable where the queue
        refuses this message for what it says, which keeps none of the others from being sent."""

    def backlog(self, lane: str) -> int:
        """About how many messages wait in the lane, those not counted that a worker has or that are still hidden."""


class Depths(Protocol):
    """How full the lanes are. Raises Retryable, within about a second, where a queue does not answer."""

    def depth(self, lane: str) -> int:
        """About how many messages wait in the lane or are in a worker's hands; those not counted whose time is still to
        come."""


class Throughput(Protocol):
    """What the workers of each lane did, minute by minute. Every method raises Retryable, within about two seconds,
    where the table cannot answer; what was to be added is lost then."""

    def add(self, lane: str, work: Work, now: Milliseconds) -> None:
        """Adds to what was done in the minute of `now`."""

    def latest(self, lane: str, now: Milliseconds) -> Sequence[Work]:
        """What was done in the last few minutes of the last day in which anything was, newest first; perhaps seconds
        out of date."""


class TokenBuckets(Protocol):
    """Each tenant's bucket of requests. Raises Retryable, within about two seconds, where the table cannot answer."""

    def take(self, tenant_id: str, allowance: Allowance, now: Microseconds) -> Take:
        """Takes a token as `token_bucket.take` does, so that of many that ask at once none is forgotten."""


class Reservations(Protocol):
    """Which stretches of time releases have reserved of each lane. Every method raises Retryable where it cannot
    answer."""

    def reserve(self, lane: str, *, not_before: Milliseconds, milliseconds: int) -> Milliseconds:
        """Reserves a stretch of that length behind all others, and returns when it begins. A repetition after a lost
        answer reserves one more: that costs time, and nothing else."""

    def busy_until(self, lane: str) -> Milliseconds:
        """When the last reserved stretch ends; 0 where none ever was."""

    def note_window(self, key: str, window: ReleaseWindow) -> None:
        """Writes down the latest turn of the batch under `key`, for whoever goes on with it. It is forgotten after a
        month: no execution repeats a release for that long."""

    def window_of(self, key: str) -> ReleaseWindow | None:
        """The turn that was noted last of that batch, by a consistent read."""


class HoldQueue(Protocol):
    """The queue of what is to be held until its `process_at`."""

    def put(self, message: Message) -> None:
        """Puts the message into it. Raises Retryable where the queue cannot answer."""

    def put_all(self, messages: Sequence[Message]) -> Mapping[int, Exception]:
        """Puts messages into it, in the order given; returns, by their places, those of which it is not sure that they
        are there, as `Lanes.send_all` does."""


class Holds(Protocol):
    """The objects in which images wait. Every method raises Retryable where the store cannot answer."""

    def put(self, key: str, dumped: bytes) -> None:
        """Stores the object; one with the same key says the same."""

    def get(self, key: str) -> bytes | None:
        """The object, or None where there is none (any more). Raises UnreadableBatch where it is larger than any batch:
        it need not fit into memory."""

    def delete(self, key: str) -> None:
        """Removes the object; a missing one is not an error."""


class WakeUps(Protocol):
    """What wakes a batch in time."""

    def set(self, name: str, key: str, wake_at: Milliseconds) -> None:
        """Sees to it that the batch under `key` is released at `wake_at`: under `name`, and where that name has been
        used up without success, under another one. Raises Retryable where nobody can promise that now."""


@dataclass(frozen=True, kw_only=True)
class DeadLetter:
    """One message in a dead-letter queue.

    `explanation` is the JSON that Darkroom gave it, None where SQS moved it there by itself; `sent_at` is when its
    message was first sent, from which its 14 days count.
    """

    queue: str
    message_id: str
    receipt: str
    body: str
    explanation: str | None
    sent_at: Milliseconds


@dataclass(frozen=True, kw_only=True)
class Taken:
    """Dead letters in hand, each once.

    `complete` is whether the queue showed no more. `asked_again` is whether an answer was lost on the way: dead letters
    that were in it are hidden for a minute, and in nobody's hand.
    """

    letters: tuple[DeadLetter, ...]
    complete: bool
    asked_again: bool = False


class DeadLetters(Protocol):
    """The dead-letter queues, each by the name of the lane or purpose that it serves (`fast`, `slow`, …). Every method
    raises Retryable where a queue cannot answer."""

    @property
    def queues(self) -> tuple[str, ...]:
        """The names of all of them."""

    def depth(self, queue: str) -> int:
        """About how many dead letters lie in the queue."""

    def take(self, queue: str, limit: int) -> Taken:
        """Up to `limit` dead letters, hidden from everybody else for a minute."""

    def give_back(self, letters: tuple[DeadLetter, ...]) -> None:
        """Shows taken dead letters to everybody again at once."""

    def remove(self, letter: DeadLetter) -> None:
        """Removes a taken dead letter for good."""

    def put(self, queue: str, message: Message, explanation: dict[str, Any]) -> None:
        """Puts a dead letter into the queue. Tried once: a repetition after a lost answer would make a second dead
        letter."""


class Once(Protocol):
    """Remembers the results of work, so that a repetition is given the first result instead of doing it again.

    It saves work and is no fence: the terminal write decides.
    """

    def __call__(self, key: str, work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """The result of `work`, a JSON object, under `key`. Raises MemoryUnavailable, before `work` was begun, where
        nobody can say whether it was done before; what `work` raises goes through and is not remembered."""


class Redrives(Protocol):
    """Redrives of whole queues of dead letters back to their lanes, made by SQS. Every method raises Retryable where
    SQS cannot answer."""

    def latest(self, queue: str) -> Redrive | None:
        """The move that was started last, or None."""

    def start(self, queue: str, per_second: int) -> None:
        """Starts to move all dead letters of the queue at that rate; where a move runs already, that one goes on."""

    def cancel(self, move: Redrive) -> None:
        """Stops a running move; what it has moved stays moved. One that is over is no error."""


class Archive(Protocol):
    """Where dead letters are kept that SQS will not keep. Raises Retryable where it cannot answer."""

    def put_if_absent(self, key: str, document: dict[str, Any]) -> bool:
        """Stores the JSON document unless `key` has one; returns whether it was stored."""


class Tenants(Protocol):
    """The tenants and their API keys. Every method raises Retryable where the table cannot answer, and UnreadableRow
    where the one row that it is about cannot be read."""

    def tenant(self, tenant_id: str) -> Tenant | None:
        """The tenant as of now (a consistent read), or None."""

    def key(self, key_id: str) -> ApiKey | None:
        """The key as of now (a consistent read), or None."""

    def all_tenants(self) -> Sequence[Tenant | UnreadableRow]:
        """All of them, by their ids, the unreadable ones last. It reads the whole table: for operators, not for
        requests."""

    def all_keys(self) -> Sequence[ApiKey | UnreadableRow]:
        """All of them, by their tenants and the times at which they were made; read like `all_tenants`."""

    def add_tenant(self, tenant: Tenant) -> Tenant:
        """Puts the tenant unless its id has one; returns the tenant that the id has then: this one or the earlier."""

    def add_key(self, key: ApiKey) -> ApiKey:
        """Puts the key unless its id has one; returns the key that the id has then: this one or the earlier."""

    def change_tenant(self, before: Tenant, after: Tenant) -> Tenant | None:
        """Writes what differs between `before` and `after`, whatever else was changed meanwhile; returns the tenant as
        written, or None where there is none."""

    def revoke_key(self, key_id: str, now: Milliseconds) -> ApiKey | None:
        """Marks the key as revoked at `now`, unless it was before; returns the key as written, or None where there is
        none."""
