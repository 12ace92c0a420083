"""The ports: what operations need from outside, each implemented by a fake and an adapter that pass one contract
suite."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

from darkroom.domain.errors import Retryable

# Every function imports this module; what its types name, only those that need it.
if TYPE_CHECKING:  # guard: wiring-types-for-checking-only
    from darkroom.domain.api_keys import ApiKey
    from darkroom.domain.audit import Entry, Recorded
    from darkroom.domain.claim import Lease
    from darkroom.domain.dead_letter import Redrive
    from darkroom.domain.delivery import Answer, Delivery, DeliveryMessage, DeliveryStatus
    from darkroom.domain.endpoint import Endpoint, Flight
    from darkroom.domain.event import Event
    from darkroom.domain.fetch import Fetched, Unfetched
    from darkroom.domain.hold import ReleaseWindow
    from darkroom.domain.image import Image, Variant
    from darkroom.domain.instants import Milliseconds
    from darkroom.domain.listing import Cursor
    from darkroom.domain.load_shedding import Work
    from darkroom.domain.message import Message
    from darkroom.domain.observation import Alarm, History, Measured, QueueCount
    from darkroom.domain.rejection import RejectedMessage
    from darkroom.domain.service_level import Budget, Outcomes
    from darkroom.domain.stored import Stored
    from darkroom.domain.tenants import Allowance, Tenant
    from darkroom.domain.token_bucket import Microseconds, Take
    from darkroom.domain.trace import LogLine
    from darkroom.domain.usage import Count, Usage

type Clock = Callable[[], Milliseconds]
"""Returns the current instant."""

type Randomness = Callable[[int], bytes]
"""Returns that many random bytes."""

type Jitter = Callable[[], float]
"""Returns a random number in [0, 1), by which pauses differ."""


type AtOnce = Callable[[Sequence[Callable[[], Any]]], Sequence[Any]]
"""Does several works at the same time, in any order, and returns their results in the given order. If some fail, it
waits for the others and raises the failure of the first in the given order."""


type Cleanup = Callable[[str], bool]
"""Takes what a part keeps of a deleted image, by its id, out of what that part keeps; returns whether that was all.
Raises Retryable, and UnreadableRow if this version cannot read some of it."""

type HasRecipient = Callable[[str, str], bool]
"""Whether that tenant has a recipient of that id that can be told of an image. Raises Retryable."""


def no_recipient(tenant_id: str, recipient_id: str) -> bool:
    """The answer of a stack in which nobody can be told."""
    return False


class Fenced(Exception):
    """A conditional write lost its race: the row is not the one that it was decided on. `current` is the current
    row."""

    def __init__(self, current: Any) -> None:
        super().__init__("the row changed since it was read")
        self.current = current


class OriginalMissing(Exception):
    """The store is healthy and does not (or no longer) have that version of the original."""


class MemoryUnavailable(Exception):
    """What an earlier worker did cannot be read: the table does not answer, or has what this version cannot read. The
    work was not begun."""


class UnreadableRow(Retryable):
    """A row says something that this version does not know, because a newer one wrote it; a version that can read it
    will.

    It concerns only this row: all others are fine. `row_id` is the image's id (or the tenant's, the key's, the
    endpoint's; a delivery's comes after its endpoint's and a slash) and `reason` what cannot be read. Ids and the keys
    of indexes can always be read: whose it is, when the sweeper must look at it again, and since when an image waits.
    `events` are the types that an endpoint wants, None if that cannot be read.
    """

    def __init__(
        self,
        row_id: str,
        reason: str,
        *,
        tenant_id: str | None = None,
        due_at: Milliseconds | None = None,
        waiting_since: Milliseconds | None = None,
        events: tuple[str, ...] | None = None,
    ) -> None:
        super().__init__(
            f"the row of {row_id} cannot be read ({reason}): a newer version wrote it; deploy that version again",
            retry_after_seconds=UNREADABLE_SECONDS,
        )
        self.row_id, self.reason, self.tenant_id = row_id, reason, tenant_id
        self.due_at, self.waiting_since, self.events = due_at, waiting_since, events


UNREADABLE_SECONDS = 60
"""How long it is pointless to ask for an unreadable row again: a deployment takes longer than that."""


@dataclass(frozen=True, kw_only=True)
class StoredOriginal:
    """The version of an original that counts: the first that was put. `made_for` is what it was put with."""

    version_id: str
    sha256: str
    size_bytes: int
    media_type: str
    made_for: str = ""


@dataclass(frozen=True, kw_only=True)
class StoredOutput:
    """An output as it is stored."""

    sha256: str
    size_bytes: int


class Waiting(NamedTuple):
    """An entry of the waiting index: what an unfinished image's service level counts from, and its id. A tuple, because
    there may be millions, and they are sorted."""

    since: Milliseconds
    image_id: str


class Due(NamedTuple):
    """An entry of the due index: when the sweeper must look at an image, and its id."""

    due_at: Milliseconds
    image_id: str


@dataclass(frozen=True, kw_only=True)
class Listed:
    """The list positions of some images of a tenant, newest first; the list continues after `next`, None at its end."""

    cursors: tuple[Cursor, ...]
    next: Cursor | None


class Images(Protocol):
    """The image rows. Every method raises Retryable if the table cannot answer. Methods for one row raise UnreadableRow
    if this version cannot read it; methods for many rows return it in the row's place, or skip it, so that it affects
    no other."""

    def get(self, image_id: str) -> Image | None:
        """The current row (a consistent read), or None."""

    def get_all(self, image_ids: Sequence[str]) -> Mapping[str, Image | UnreadableRow]:
        """The current rows of the existing ids, by id; at most 100 ids."""

    def everything(self) -> Iterator[Image | UnreadableRow]:
        """Every row of the table, read as the caller iterates: for operators, not for requests."""

    def known(self, image_ids: Sequence[str]) -> frozenset[str]:
        """Which of the ids have a row now (a consistent read), whatever it says; at most 100 ids."""

    def create(self, image: Image) -> Image:
        """Puts the row unless its id has one; returns the id's row: this one or the earlier one."""

    def change(self, before: Image, after: Image, *, fence: tuple[str, ...] = ("status", "run", "attempt")) -> Image:
        """Writes what differs between `before` and `after`, if the fields in `fence` are still those of `before`;
        returns the row as written. A lost response is read back, so that a write that was applied is not mistaken for a
        lost race. Raises Fenced if another write came first."""

    def claim_unseen(self, message: Message, lease: Lease) -> Image:
        """Claims the message's image for its very first attempt in one call, as the function of this name in
        domain/claim.py decides, and returns the row as written. A lost response is recognized. Raises Fenced, with the
        current row, if the image has to be claimed otherwise, or not at all."""

    def postpone(self, due: Due, until: Milliseconds) -> bool:
        """Moves the next look at an image to `until`, if it is still due as `due` says; returns whether it was. Nothing
        else of its row is read or written, not even `version`: it may be unreadable."""

    def tenants_of(self, image_ids: Sequence[str]) -> Mapping[str, str]:
        """The tenants of those of the images that have a row, by id, readable or not; at most 100 ids."""

    def due(self, shard: str, now: Milliseconds, limit: int, *, latest_first: bool = False) -> Iterator[Due]:
        """The first entries in one partition of the due index whose `due_at` has come, oldest first, or the last ones,
        latest first; read as the caller iterates; perhaps seconds out of date."""

    def oldest_waiting(self, lane: str, shard: str) -> Milliseconds | None:
        """The earliest `waiting_since` among the unfinished images in one shard of a lane, or None if there are none.
        Unreadable rows do not count; if many come first, it may be the time of the last of these."""

    def waiting(
        self, lane: str, shard: str, *, since: Milliseconds, until: Milliseconds, page_size: int
    ) -> Iterator[Waiting]:
        """The unfinished images in one shard of the lane's waiting index with a `waiting_since` from `since` until just
        before `until`, oldest first; perhaps seconds out of date. They are read as the caller iterates, up to
        `page_size` at a time."""

    def newest(self, tenant_id: str, *, after: Cursor | None, limit: int) -> Listed:
        """Up to `limit` of the tenant's images that were not deleted, by time of acceptance, from the newest on or from
        after `after`; perhaps seconds out of date. If many have been deleted, fewer than `limit` although the list
        continues. Of two that were accepted in the same millisecond either may come first, always the same."""

    def unlisted(self, *, pages: int | None = None) -> Iterator[tuple[str, str]]:
        """The ids and tenants of images that `newest` lacks in a stack without the index of earlier versions, because
        such a version accepted them; read as the caller iterates: for operators. `pages` is how many pages of rows are
        read, instead of all."""

    def enlist(self, image_id: str, tenant_id: str) -> None:
        """Lists such an image, unless it was deleted meanwhile. Nothing else of its row is read or written, not even
        `version`: it may be unreadable."""


@dataclass(frozen=True, kw_only=True)
class RowChange:
    """One write of the row of `subject`, an image or an endpoint by its id: the row before and after it, None where
    there was none.

    `place` is where its stream begins again if this write was not told. With `unreadable` this version cannot read the
    row; then both are None.
    """

    place: str
    subject: str
    version: int | None
    before: Image | Endpoint | None
    after: Image | Endpoint | None
    unreadable: UnreadableRow | None = None


class Unpublishable(Exception):
    """The topic refuses this event, now and later; it is available, and takes others."""


class Topic(Protocol):
    """Where events are published for all consumers."""

    def publish_all(self, events: Sequence[Event]) -> Mapping[int, Exception]:
        """Publishes events; returns, by index, those that may not have been published: each with Retryable, or with
        Unpublishable, which does not keep the others from being published. Each reaches every consumer that asked for
        its type at least once, in any order."""


class Unpublished(Protocol):
    """Notes for an operator of events that could not be published."""

    def put(self, subject: str, version: int | None, reason: str) -> None:
        """Notes the event of that version of the subject's row, perhaps twice. Raises Retryable."""


class Followers(Protocol):
    """Those who follow the events for a while, each with a queue of its own."""

    def remove_left_behind(self, now: Milliseconds) -> int:
        """Removes the queues of those that died; returns how many. Raises Retryable."""


class DayOfUsage(NamedTuple):
    """What a tenant used in a day in UTC, as in 2026-11-23."""

    tenant_id: str
    day: str
    usage: Usage


class StoredSums(Protocol):
    """What tenants store."""

    def stored(self, tenant_id: str) -> Stored:
        """The sum of what was counted of the tenant, perhaps seconds out of date; below zero if more of it has been
        deleted since the counting began than was accepted. Raises Retryable if the table cannot answer."""


class UsageCounts(StoredSums, Protocol):
    """What tenants used, and what they store. Every method raises Retryable if the tables cannot answer."""

    def add(self, counts: Sequence[Count]) -> Sequence[Count]:
        """Adds each count unless its event was counted before; returns those that were added. They are a batch of
        `transactions_of`: if it raises, none or all have been added, and a repetition adds none twice."""

    def days(self, *, since: str, until: str) -> Iterator[DayOfUsage | UnreadableRow]:
        """The days from `since` to `until`, both included, of all tenants, in any order, read as the caller iterates;
        one that this version cannot read is named in its place. For operators."""

    def days_of(self, tenant_id: str, *, since: str, until: str) -> Iterator[DayOfUsage | UnreadableRow]:
        """The same of one tenant, the oldest first."""

    def all_stored(self) -> Mapping[str, Stored]:
        """The sums of all tenants that have one, by tenant: for operators."""

    def correct(self, tenant_id: str, before: Stored, after: Stored) -> bool:
        """Replaces the tenant's sum if it is still `before`; returns whether it was. A tenant without a sum has one of
        nothing."""

    def forget(self, tenant_id: str) -> int:
        """Removes everything that is kept of the tenant; returns how many items there were: for operators. Which
        events were counted is still known: none of them is counted again."""


class DueEndpoint(NamedTuple):
    """An entry of the endpoints' due index: when the sweeper must look at an endpoint, and which."""

    due_at: Milliseconds
    tenant_id: str
    endpoint_id: str


class Endpoints(Protocol):
    """The endpoints' rows. Every method raises Retryable if the table cannot answer. Methods for one row raise
    UnreadableRow if this version cannot read it; methods for many rows return it in the row's place."""

    def get(self, tenant_id: str, endpoint_id: str) -> Endpoint | None:
        """The current row of that tenant's endpoint (a consistent read), or None."""

    def of_tenant(self, tenant_id: str) -> Sequence[Endpoint | UnreadableRow]:
        """The current rows of all endpoints of the tenant (a consistent read), by their places."""

    def everything(self) -> Iterator[Endpoint | UnreadableRow]:
        """All rows, in no order and as they were at some moment since the call."""

    def create(self, endpoint: Endpoint) -> bool:
        """Puts the row unless its place has one; returns whether it has this endpoint now."""

    def change(self, before: Endpoint, after: Endpoint) -> Endpoint:
        """Writes what differs, as the next version; returns the row as written. A lost response is recognized. Raises
        Fenced, with the current row, if another write came first; with None, if the endpoint is gone."""

    def remove(self, tenant_id: str, endpoint_id: str) -> None:
        """Removes the endpoint's row, readable or not; one that is not there is no error."""

    def due(self, shard: str, now: Milliseconds, limit: int) -> Iterator[DueEndpoint]:
        """The first entries in one shard of the due index whose `due_at` has come, oldest first, read as the caller
        iterates; perhaps seconds out of date."""

    def postpone(self, due: DueEndpoint, until: Milliseconds) -> None:
        """Moves the next look at an endpoint to `until`, if it is still due as `due` says. Nothing else of its row is
        read or written, not even `version`: it may be unreadable."""


class DueDelivery(NamedTuple):
    """An entry of the deliveries' due index: the time of an attempt or of a look, and whose."""

    due_at: Milliseconds
    delivery_id: str


class DeliveryKey(NamedTuple):
    """Which delivery of which endpoint."""

    endpoint_id: str
    delivery_id: str


type Place = Literal["taken", "held", "full"]
"""What came of asking for a place on a runway; with `held`, another flight of the same delivery has one."""


@dataclass(frozen=True, kw_only=True)
class DeliveryPage:
    """Some deliveries of an endpoint; the list continues after the id `next`, None at its end."""

    deliveries: tuple[Delivery | UnreadableRow, ...]
    next: str | None


class Deliveries(Protocol):
    """The deliveries' rows. Every method raises Retryable if the table cannot answer. Methods for one row raise
    UnreadableRow if this version cannot read it; a page has it in the row's place."""

    def get(self, endpoint_id: str, delivery_id: str) -> Delivery | None:
        """The current row (a consistent read), or None."""

    def create(self, delivery: Delivery) -> Delivery:
        """Puts the row unless its id has one; returns the id's row: this one or the earlier one."""

    def change(self, before: Delivery, after: Delivery) -> Delivery:
        """Writes what differs, as the next version; returns the row as written. A lost response is recognized. Raises
        Fenced, with the current row or None, if another write came first."""

    def take_place(self, endpoint_id: str, flight: Flight, *, now: Milliseconds, most: int) -> Place:
        """Puts the flight on the endpoint's runway for its delivery, where at most `most` are on their way. What was
        lost there does not count. A lost response is recognized."""

    def free_place(self, endpoint_id: str, flight: Flight) -> None:
        """Takes the flight from its runway, unless it is another's by now."""

    def due(self, endpoint_id: str, limit: int) -> Sequence[DueDelivery]:
        """The first deliveries of the endpoint that have not ended, by `due_at`, whether it has come or not; perhaps
        seconds out of date."""

    def postpone(self, endpoint_id: str, due: DueDelivery, until: Milliseconds) -> None:
        """Moves the next look at a delivery to `until`, if it is still due as `due` says. Nothing else of its row is
        read or written, not even `version`: it may be unreadable."""

    def page(
        self,
        endpoint_id: str,
        *,
        limit: int,
        after: str | None = None,
        since: Milliseconds = 0,
        statuses: Sequence[DeliveryStatus] = (),
        newest_first: bool = True,
    ) -> DeliveryPage:
        """Up to `limit` deliveries of events since then, in these states or any, by the time of their events, from the
        newest or the oldest on, or from after the id `after`; perhaps seconds out of date. Fewer may be found although
        the list continues."""

    def of_image(self, image_id: str) -> Sequence[DeliveryKey]:
        """The deliveries of the image's events, to removed endpoints too; perhaps seconds out of date."""

    def remove_all(self, endpoint_id: str) -> int:
        """Removes all deliveries of an endpoint; returns how many."""

    def endpoints_of(self, tenant_ids: Collection[str]) -> Iterator[tuple[str, str]]:
        """The tenants and ids of the endpoints, removed ones too, for which these tenants, 1 to MOST_ERASED_AT_ONCE,
        have deliveries. It reads the whole table once for all of them: for operators, not for requests."""


class DeliveryQueue(Protocol):
    """The queue of deliveries, fair between endpoints."""

    def send(self, message: DeliveryMessage, *, delay_seconds: int = 0) -> None:
        """Puts the message into it; it shows after `delay_seconds`, at most 900. Raises Retryable if the queue cannot
        answer."""


class Receiver(Protocol):
    """What listens at an endpoint's URL."""

    def post(self, url: str, *, headers: Mapping[str, str], body: bytes) -> Answer:
        """Sends one request, and says what came of it, within 15 seconds. It never raises for what the other side
        does."""


type IsSuspended = Callable[[str], bool]
"""Whether that tenant is suspended, or was at most a minute ago. Raises Retryable."""


class Originals(Protocol):
    """The uploads, one object per image. Every method but `remove` raises Retryable if the store cannot answer."""

    def put_if_absent(
        self, image_id: str, body: bytes, *, sha256: str, media_type: str, made_for: str = ""
    ) -> StoredOriginal:
        """Stores `body` unless the image has an original; returns the original that it has then. `made_for` says for
        what it is put, in up to 64 letters and digits, where its bytes alone do not."""

    def get(self, image_id: str, version_id: str) -> bytes:
        """The bytes of that version. Raises OriginalMissing if there is none."""

    def versions_of(self, image_id: str) -> Sequence[str]:
        """The ids of all versions of the image's original, its delete markers' included."""

    def remove(self, versions: Sequence[tuple[str, str]]) -> Mapping[str, Exception]:
        """Removes these versions, each an image's id and the version's; returns, by image id, why one may still be
        there: Retryable, or the error that refused it. A missing version is not an error."""


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredVersion:
    """One version of an object in the originals' bucket, or a delete marker on it (`is_marker`), which has no bytes.

    `image_id` is None if `key` is not an original's. `is_latest` is whether a read that names no version gets this one.
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
    """Some versions, in the order of their keys; the list continues after `next`, None at its end. The versions of one
    object may be on both sides of it."""

    versions: tuple[StoredVersion, ...]
    next: tuple[str, str] | None


class OriginalVersions(Protocol):
    """The raw contents of the originals' bucket, for operators and not for requests. Every method raises Retryable if
    the store cannot answer."""

    def page(self, after: tuple[str, str] | None) -> VersionPage:
        """Up to 1,000 versions and delete markers of everything there, from the first or from after `after` on."""

    def hide(self, image_ids: Sequence[str]) -> Mapping[str, str]:
        """Puts a delete marker on each image's original, and returns the markers' version ids by image. From then on
        `Originals.put_if_absent` does not find it; a reader that knows its version can read it. At most 1,000 images; a
        repetition puts markers on markers."""

    def remove(self, versions: Sequence[tuple[str, str]]) -> Mapping[str, Exception]:
        """As `Originals.remove`: these versions permanently, and no others."""


@dataclass(frozen=True, kw_only=True)
class UploadForm:
    """A form that anyone may send to `url` (multipart/form-data) until `expires_at`: all `fields` as they are, then the
    file as `file`."""

    url: str
    fields: Mapping[str, str]
    expires_at: Milliseconds


class Uploads(Protocol):
    """Where clients upload files that are too large for a request, one object per image, until the upload becomes an
    original. Every method but `form_for` and `remove` raises Retryable if the store cannot answer."""

    def form_for(
        self, image_id: str, *, sha256: str, size_bytes: int, media_type: str, seconds: int, now: Milliseconds
    ) -> UploadForm:
        """A form with which the image's upload can be sent, for that long from `now` on: these bytes and no others."""

    def size_bytes(self, image_id: str) -> int | None:
        """The size of the stored upload, or None."""

    def get(self, image_id: str) -> bytes | None:
        """The bytes of the stored upload, or None."""

    def remove(self, image_ids: Sequence[str]) -> Mapping[str, Exception]:
        """Removes the uploads; returns, by image id, why one may still be there: Retryable, or the error that refused
        it. A missing upload is not an error."""


class UploadQueue(Protocol):
    """The queue of notifications that uploads have come."""

    def put(self, message: Message) -> None:
        """Sends a reminder of this image to the upload queue's worker. Raises Retryable if the queue cannot answer."""


@dataclass(frozen=True, kw_only=True)
class QueueDepth:
    """About how many messages wait in a queue, and how many a worker has taken."""

    waiting: int
    taken: int


class FetchQueue(Protocol):
    """The queue of images that are to be fetched. Every method raises Retryable if it cannot answer."""

    def put(self, message: Message) -> None:
        """Puts the message into it, in its tenant's share."""

    def depth(self) -> QueueDepth:
        """What is in it now."""


class RemoteImages(Protocol):
    """What is served at URLs that clients give."""

    def fetch(self, url: str, *, max_bytes: int, is_picture: Callable[[bytes], bool]) -> Fetched | Unfetched:
        """Fetches up to `max_bytes`, within FETCH_SECONDS (`domain.fetch`) with all redirects; of a file whose first
        SNIFF_BYTES (`domain.media_types`) are not `is_picture`'s, these alone. It never raises for what the other side
        does."""


class Outputs(Protocol):
    """The variants. Every method but `remove` raises Retryable if the store cannot answer."""

    def put_if_absent(self, key: str, body: bytes, *, sha256: str, media_type: str) -> StoredOutput:
        """Stores `body` unless `key` has an object; returns the object that it has then."""

    def holds(self, variant: Variant) -> bool:
        """Whether the variant's object is there, with its size and its checksum."""

    def keys_of(self, image_id: str) -> Sequence[str]:
        """The keys of all variants of the image, of every run."""

    def remove(self, keys: Sequence[str]) -> Mapping[str, Exception]:
        """Removes the objects; returns, by key, why one may still be there: Retryable, or the error that refused it. A
        missing object is not an error."""

    def url_of(self, variant: Variant, *, for_head: bool = False) -> str:
        """A URL from which anyone can fetch the variant for the next 15 minutes, by GET alone; or by HEAD alone, with
        `for_head`."""


class Lanes(Protocol):
    """The queues. Every method raises Retryable if a queue cannot answer."""

    def send(self, message: Message, *, delay_seconds: int = 0) -> None:
        """Puts the message into its lane, in its tenant's share of it; it shows after `delay_seconds`, at most 900."""

    def send_all(self, lane: str, messages: Sequence[tuple[Message, int]]) -> Mapping[int, Exception]:
        """Puts messages into their lane, each with its delay in seconds, in the order given; returns, by index, those
        that may not have been sent: each with Retryable, or with Unplaceable if the queue refuses this message's
        content, which does not keep the others from being sent."""

    def backlog(self, lane: str) -> int:
        """About how many messages wait in the lane, without those that a worker has or that are still hidden."""


class Depths(Protocol):
    """How full the lanes are. Raises Retryable, within about a second, if a queue does not answer."""

    def depth(self, lane: str) -> QueueDepth:
        """Its messages, without those whose time is still to come."""


class Throughput(Protocol):
    """What the workers of each lane did, minute by minute. Every method raises Retryable, within about two seconds, if
    the table cannot answer; then what was to be added is lost."""

    def add(self, lane: str, work: Work, now: Milliseconds) -> None:
        """Adds to the work done in the minute of `now`."""

    def latest(self, lane: str, now: Milliseconds) -> Sequence[Work]:
        """The work done in the last few minutes of the last day that had any, newest first; perhaps seconds out of
        date."""


class OutcomeCounts(Protocol):
    """How the attempts and the images of each lane ended, minute by minute, for a day. Every method raises Retryable,
    within about two seconds, if the table cannot answer."""

    def add(self, lane: str, minute: Milliseconds, outcomes: Outcomes) -> None:
        """Adds to the minute that begins then. If an answer is lost, it may count twice."""

    def since(self, lane: str, since: Milliseconds) -> Mapping[Milliseconds, Outcomes]:
        """The outcomes of the minutes that began at `since` or later and had any, by the time at which each began;
        perhaps seconds out of date."""


class TokenBuckets(Protocol):
    """Each tenant's bucket of requests. Raises Retryable, within about two seconds, if the table cannot answer."""

    def take(self, name: str, allowance: Allowance, now: Microseconds, wanted: int = 1, needed: int = 1) -> Take:
        """Takes tokens as `token_bucket.take` does, counting every one of many concurrent requests."""

    def forget(self, name: str) -> None:
        """Removes the bucket, which is full then; there may be none."""


class Reservations(Protocol):
    """The stretches of time that releases have reserved in each lane. Every method raises Retryable if it cannot
    answer."""

    def reserve(self, lane: str, *, not_before: Milliseconds, milliseconds: int) -> Milliseconds:
        """Reserves a stretch of that length behind all others, and returns when it begins. A repetition after a lost
        answer reserves one more: that costs time, and nothing else."""

    def busy_until(self, lane: str) -> Milliseconds:
        """When the last reserved stretch ends; 0 if there never was one."""

    def note_window(self, key: str, window: ReleaseWindow) -> None:
        """Stores the latest window of the batch under `key`, for the call that continues it. It is deleted after a
        month: no execution repeats a release for that long."""

    def window_of(self, key: str) -> ReleaseWindow | None:
        """The latest window stored for that batch, by a consistent read."""


class HoldQueue(Protocol):
    """The queue of messages to be held until their `process_at`."""

    def put(self, message: Message) -> None:
        """Puts the message into it. Raises Retryable if the queue cannot answer."""

    def put_all(self, messages: Sequence[Message]) -> Mapping[int, Exception]:
        """Puts messages into it, in the order given; returns, by index, those that may not have been sent, as
        `Lanes.send_all` does."""


class Holds(Protocol):
    """The objects in which images wait. Every method raises Retryable if the store cannot answer."""

    def put(self, key: str, dumped: bytes) -> None:
        """Stores the object; an existing one with the same key has the same content."""

    def get(self, key: str) -> bytes | None:
        """The object, or None if there is (or remains) none. Raises UnreadableBatch if it is larger than any batch: it
        might not fit into memory."""

    def delete(self, key: str) -> None:
        """Removes the object; a missing one is not an error."""


class WakeUps(Protocol):
    """What wakes a batch in time."""

    def set(self, name: str, key: str, wake_at: Milliseconds) -> None:
        """Makes sure that the batch under `key` is released at `wake_at`: under `name`, or under another name if that
        one was used up without success. Raises Retryable if that cannot be promised now."""


class Releases(Protocol):
    """The batches that wait for their release, for operators. Every method raises Retryable if AWS cannot answer."""

    def hold_no_more(self) -> None:
        """Stops the consumer that makes batches; what it has received it may still finish. A stack that has no such
        consumer any more is not an error."""

    def waiting(self) -> Iterator[str]:
        """The batches that wait or are being released, read as the caller iterates; seconds out of date."""

    def stop(self, name: str) -> None:
        """Keeps that batch from being released; one that has ended is not an error."""


@dataclass(frozen=True, kw_only=True)
class DeadLetter:
    """One message in a dead-letter queue.

    `explanation` is the JSON that Darkroom gave it, None if SQS moved it there by itself; `sent_at` is when its message
    was first sent, from which its 14 days count. `is_signed` is whether it has a signature, which is not verified:
    without one no queue takes it back.
    """

    queue: str
    message_id: str
    receipt: str
    body: str
    explanation: str | None
    is_signed: bool
    sent_at: Milliseconds


@dataclass(frozen=True, kw_only=True)
class Taken:
    """Dead letters that were taken, each once.

    `complete` is whether the queue showed no more. `asked_again` is whether an answer was lost on the way: the dead
    letters in it are hidden for a minute, and nobody has them.
    """

    letters: tuple[DeadLetter, ...]
    complete: bool
    asked_again: bool = False


class DeadLetters(Protocol):
    """The dead-letter queues, each by the name of its lane or purpose (`fast`, `slow`, …). Every method raises
    Retryable if a queue cannot answer."""

    @property
    def queues(self) -> tuple[str, ...]:
        """The names of all of them."""

    def depth(self, queue: str) -> int:
        """About how many dead letters are in the queue."""

    def take(self, queue: str, limit: int) -> Taken:
        """Up to `limit` dead letters, hidden from everybody else for a minute."""

    def sample(self, queue: str) -> tuple[DeadLetter, ...]:
        """Up to ten dead letters, any of the queue's. They stay visible to everybody: nobody has to give them back, and
        their receipts are not to be used."""

    def give_back(self, letters: tuple[DeadLetter, ...]) -> None:
        """Shows taken dead letters to everybody again at once."""

    def remove(self, letter: DeadLetter) -> None:
        """Removes a taken dead letter permanently."""

    def put(self, queue: str, message: Message, explanation: dict[str, Any]) -> None:
        """Puts a dead letter into the queue. Tried once: a retry after a lost answer would make a second dead
        letter."""


class QueueCounts(Protocol):
    """How many messages the queues of a stack have, each by its name. Raises Retryable if a queue cannot answer."""

    @property
    def queues(self) -> tuple[str, ...]:
        """The names of all of them."""

    def count(self, queue: str) -> QueueCount:
        """About how many it has now."""


class Alarms(Protocol):
    """The alarms of a stack. Raises Retryable if they cannot be listed."""

    def on(self) -> Sequence[Alarm]:
        """Those that are on, the longest first."""


class Measurements(Protocol):
    """What is measured of a stack, in the last minutes and over its error budgets' days. Raises Retryable if it cannot
    be read."""

    def latest(self, now: Milliseconds) -> Measured:
        """The latest whole minutes, which may be minutes ago."""

    def history(self, now: Milliseconds) -> History:
        """The lanes in the last HISTORY_MINUTES whole minutes (`domain.observation`), of which the newest may not be
        measured yet."""

    def budgets(self, now: Milliseconds) -> Mapping[str, Budget]:
        """What each lane has spent its error budget on until minutes ago."""

    def function_errors(self, now: Milliseconds) -> Mapping[str, int]:
        """How many invocations of each function ended in an error in the last ERROR_MINUTES (`domain.observation`),
        those with the most first; functions without errors are left out."""


class RejectedMessages(Protocol):
    """Where messages go that do not verify: among the dead letters of the queue that they came from."""

    def put_rejected(self, queue: str, message: RejectedMessage, explanation: dict[str, Any]) -> None:
        """Puts it there. Tried once, like `DeadLetters.put`. Raises Retryable if that may not have succeeded."""


class Once(Protocol):
    """Remembers the results of work whose end could not be written, so that a repetition gets the result instead of
    doing the work again.

    It saves work and is no fence: the terminal write decides.
    """

    def __call__(self, key: str, work: Callable[[], dict[str, Any]], *, is_first: bool) -> dict[str, Any]:
        """What is kept under `key`, or else the result of `work`, a JSON object. Nothing is looked for if `is_first`:
        then no earlier attempt can have kept anything. Raises MemoryUnavailable, before `work` was begun, if it cannot
        be told whether something is kept; exceptions of `work` propagate."""

    def keep(self, key: str, result: dict[str, Any]) -> None:
        """Keeps the result of finished work under `key`. Raises Retryable."""


class Memory(Protocol):
    """What `Once` remembers, for those who remove it."""

    def forget(self, keys: Sequence[str]) -> None:
        """Removes the results under these keys; those that are not there are no error. Raises Retryable."""


class Redrives(Protocol):
    """Redrives of whole dead-letter queues to their lanes, made by SQS. Every method raises Retryable if SQS cannot
    answer."""

    def latest(self, queue: str) -> Redrive | None:
        """The redrive that was started last, or None."""

    def start(self, queue: str, per_second: int) -> None:
        """Starts to move all dead letters of the queue at that rate; a redrive that is already running continues."""

    def cancel(self, move: Redrive) -> None:
        """Stops a running redrive; what it has moved stays moved. One that has ended is no error."""


class Archive(Protocol):
    """Where dead letters are kept that SQS will delete. Raises Retryable if it cannot answer."""

    def put_if_absent(self, key: str, document: dict[str, Any]) -> bool:
        """Stores the JSON document unless `key` has one; returns whether it was stored."""


class Tenants(Protocol):
    """The tenants and their API keys. Every method raises Retryable if the table cannot answer, and UnreadableRow if
    its one row cannot be read."""

    def tenant(self, tenant_id: str) -> Tenant | None:
        """The current tenant (a consistent read), or None."""

    def key(self, key_id: str) -> ApiKey | None:
        """The current key (a consistent read), or None."""

    def all_tenants(self) -> Sequence[Tenant | UnreadableRow]:
        """All of them, by id, the unreadable ones last. It reads the whole table: for operators, not for requests."""

    def all_keys(self) -> Sequence[ApiKey | UnreadableRow]:
        """All of them, by tenant and time of creation; read like `all_tenants`."""

    def add_tenant(self, tenant: Tenant) -> Tenant:
        """Puts the tenant unless its id has one; returns the id's tenant: this one or the earlier one."""

    def add_key(self, key: ApiKey) -> ApiKey:
        """Puts the key unless its id has one; returns the id's key: this one or the earlier one."""

    def change_tenant(self, before: Tenant, after: Tenant) -> Tenant | None:
        """Writes what differs between `before` and `after`, whatever else was changed meanwhile; returns the tenant as
        written, or None if there is none."""

    def revoke_key(self, key_id: str, now: Milliseconds) -> ApiKey | None:
        """Marks the key as revoked at `now`, unless it already was; returns the key as written, or None if there is
        none."""

    def expire_key(self, key_id: str, at: Milliseconds) -> ApiKey | None:
        """Lets the key expire at that instant, unless it does so earlier; returns the key as written, or None if there
        is none."""

    def note_use(self, key_id: str, day: str) -> None:
        """Notes that the key was used on that day, unless it was used later; a key that is not there is no error."""

    def remove_key(self, key_id: str) -> None:
        """Removes the key's row; one that is not there is no error."""

    def remove_tenant(self, tenant_id: str) -> None:
        """Removes the tenant's row; one that is not there is no error."""


@dataclass(frozen=True, kw_only=True)
class SecretVersion:
    """One version of a secret: its id, its text, which is in no `repr`, and when it was made."""

    version_id: str
    text: str = field(repr=False)
    created_at: Milliseconds


class Secret(Protocol):
    """A secret that operators may replace; the version before the current one stays known. Every method raises
    Retryable if what it needs was never read, and cannot be read now."""

    def current(self) -> SecretVersion:
        """The version in use, perhaps minutes out of date."""

    def previous(self) -> SecretVersion | None:
        """The version that was in use before the current one, or None."""

    def version(self, version_id: str) -> SecretVersion | None:
        """The current or the previous version, if it is the one with that id; None if neither is, as far as was known
        less than ten seconds ago."""


class Audit(Protocol):
    """The audit log. Raises Retryable if it does not answer."""

    def write(self, entries: Sequence[Entry]) -> None:
        """Appends the entries, with who acts and on which stack. After Retryable some of them may be there."""

    def entries(self, *, since: Milliseconds, until: Milliseconds) -> Iterator[Recorded]:
        """What was written from `since` until `until`, in any order, read as the caller iterates; without what this
        version cannot read."""


class LogLines(Protocol):
    """The lines that the functions and the gateway have logged. Every method raises Retryable if the logs cannot be
    searched."""

    @property
    def sources(self) -> Collection[str]:
        """Whose logs there are: the names of functions, and that of the gateway."""

    def containing(self, source: str, text: str, *, since: Milliseconds, until: Milliseconds) -> Iterator[LogLine]:
        """The lines of a source in which `text` is, in that time, read as the caller iterates. A line may take seconds
        until it can be found; those that are no JSON objects are left out."""
