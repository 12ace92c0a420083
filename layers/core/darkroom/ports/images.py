"""What images need."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from darkroom.domain.images.order import no_batches, no_webhooks

if TYPE_CHECKING:
    from darkroom.domain.images.claim import Lease
    from darkroom.domain.images.image import Image, Variant
    from darkroom.domain.images.listing import Cursor
    from darkroom.domain.images.load_shedding import Work
    from darkroom.domain.images.pictures import EdgeUrls
    from darkroom.domain.images.service_level import Outcomes
    from darkroom.domain.kernel.instants import Milliseconds
    from darkroom.domain.kernel.message import Message
    from darkroom.domain.kernel.visibility import Visibility
    from darkroom.ports.kernel import UnreadableRow


type HasRecipient = Callable[[str, str], bool]
"""Whether that tenant has a recipient of that id that can be told of an image. Raises Retryable."""


def no_recipient(tenant_id: str, recipient_id: str) -> bool:
    """The answer of a stack in which nobody can be told. Raises Rejected (`part_not_deployed`)."""
    raise no_webhooks()


type JoinBatch = Callable[[str, str, str, int | None], bool]
"""Makes the image of that id, whose row does not exist yet, one of that tenant's batch of that id, or the work beside
it that its next run will be for: the arguments are the tenant, the batch, the image, and that run or None. Returns
whether it awaits its turn there. Raises Rejected (`unknown_batch`, `batch_closed`), Retryable."""


def join_none(tenant_id: str, batch_id: str, image_id: str, run: int | None) -> bool:
    """The answer of a stack without batches. Raises Rejected (`part_not_deployed`)."""
    raise no_batches()


type HasTurn = Callable[[Image], bool]
"""Whether an image that awaits its turn in its batch may begin. Raises Retryable."""


def has_turn_at_once(image: Image) -> bool:
    """The answer of a stack without batches: nobody else would let it begin."""
    return True


class OriginalMissing(Exception):
    """The store is healthy and does not (or no longer) have that version of the original."""


class IdempotencyUnavailable(Exception):
    """What an earlier worker did cannot be read: the table does not answer, or has what this version cannot read. The
    work was not begun."""


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

    def create(self, image: Image) -> Image:
        """Puts the row unless its id has one; returns the id's row: this one or the earlier one."""

    def change(self, before: Image, after: Image, *, fence: tuple[str, ...] = ("status", "run", "attempt")) -> Image:
        """Writes what differs between `before` and `after`, if the fields in `fence` are still those of `before`;
        returns the row as written. A lost response is read back, so that a write that was applied is not mistaken for a
        lost race. Raises Fenced if another write came first."""

    def claim_unseen(self, message: Message, lease: Lease) -> Image:
        """Claims the message's image for its very first attempt in one call, as the function of this name in
        domain/images/claim.py decides, and returns the row as written. A lost response is recognized. Raises Fenced,
        with the current row, if the image has to be claimed otherwise, or not at all."""

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

    def with_reference(self, tenant_id: str, reference: str, *, after: Cursor | None, limit: int) -> Listed:
        """The same of those that have this reference; as many as `limit` if there are."""

    def unlisted(self, *, pages: int | None = None) -> Iterator[tuple[str, str]]:
        """The ids and tenants of images that `newest` lacks in a stack without the index of earlier versions, because
        such a version accepted them; read as the caller iterates: for operators. `pages` is how many pages of rows are
        read, instead of all."""


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


class Outputs(Protocol):
    """The variants. Every method but `remove` raises Retryable if the store cannot answer."""

    def put_if_absent(
        self, key: str, body: bytes, *, sha256: str, media_type: str, viewer_seconds: int | None = None
    ) -> StoredOutput:
        """Stores `body` unless `key` has an object; returns the object that it has then. Where an edge reads it, it
        says how long viewers may keep it: for `viewer_seconds`, or as long as they may keep most."""

    def get(self, key: str) -> tuple[bytes, str]:
        """The bytes of that key, and their media type."""

    def holds(self, variant: Variant) -> bool:
        """Whether the variant's object is there, with its size and its checksum."""

    def keys_of(self, image_id: str, visibilities: Collection[Visibility]) -> Sequence[str]:
        """The keys of all variants of the image that were stored for these visibilities, of every run."""

    def remove(self, keys: Sequence[str]) -> Mapping[str, Exception]:
        """Removes the objects; returns, by key, why one may still be there: Retryable, or the error that refused it. A
        missing object is not an error."""

    def url_of(self, variant: Variant, *, for_head: bool = False) -> str:
        """A URL from which anyone can fetch the variant for the next 15 minutes, by GET alone; or by HEAD alone, with
        `for_head`."""


class UrlSigner(Protocol):
    """Signs URLs of the edge."""

    def sign(self, image_id: str) -> EdgeUrls:
        """The URLs of the image's variants at the edge, the signed ones too, for as long as they say. Raises Retryable,
        within about two seconds, if nobody signs now."""


class StaleEdge(Protocol):
    """What the edge may still have of images whose objects were removed."""

    def forget(self, owners: Mapping[str, str], *, delay_seconds: int = 0) -> None:
        """Has the edge forget these images, given with the tenant of each, after at most 900 seconds. Raises Retryable
        if it may not be asked for all of them."""


class EdgeBudget(Protocol):
    """What the edge may be told to forget in a month."""

    def is_spent(self, now: Milliseconds) -> bool:
        """Whether the edge was told less than it should have been in the month of `now`. Raises Retryable, within about
        two seconds, if that cannot be read."""


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


class EditQueue(Protocol):
    """The queue of edits, of a stack that orders them: each image's messages come one after the other."""

    def put(self, message: Message, *, number: int) -> None:
        """Puts the message of its image's edit of that number behind those of the image's earlier ones, unless one of
        that number was put within five minutes; it shows after EDIT_DELAY_SECONDS. Raises Retryable if the queue cannot
        answer."""


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

    def add_of_tenants(self, lane: str, busy_milliseconds: Mapping[str, int], now: Milliseconds) -> None:
        """Adds, in the minute of `now`, how long images of these tenants, at most 50, kept the lane's workers busy. If
        an answer is lost, it may count twice."""

    def of_tenants(self, lane: str, since: Milliseconds) -> Mapping[str, int]:
        """How long each tenant's images kept the lane's workers busy in the minutes that began at `since` or later;
        perhaps seconds out of date."""


class OutcomeCounts(Protocol):
    """How the attempts and the images of each lane ended, minute by minute, for a day. Every method raises Retryable,
    within about two seconds, if the table cannot answer."""

    def add(self, lane: str, minute: Milliseconds, outcomes: Outcomes) -> None:
        """Adds to the minute that begins then. If an answer is lost, it may count twice."""

    def since(self, lane: str, since: Milliseconds) -> Mapping[Milliseconds, Outcomes]:
        """The outcomes of the minutes that began at `since` or later and had any, by the time at which each began;
        perhaps seconds out of date."""


class HoldQueue(Protocol):
    """The queue of messages to be held until their `process_at`."""

    def put(self, message: Message) -> None:
        """Puts the message into it. Raises Retryable if the queue cannot answer."""

    def put_all(self, messages: Sequence[Message]) -> Mapping[int, Exception]:
        """Puts messages into it, in the order given; returns, by index, those that may not have been sent, as
        `Lanes.send_all` does."""


class IdempotencyStore(Protocol):
    """Remembers the results of work whose end could not be written, so that a repetition gets the result instead of
    doing the work again.

    It saves work and is no fence: the terminal write decides.
    """

    def __call__(self, key: str, work: Callable[[], dict[str, Any]], *, is_first: bool) -> dict[str, Any]:
        """What is kept under `key`, or else the result of `work`, a JSON object. Nothing is looked for if `is_first`:
        then no earlier attempt can have kept anything. Raises IdempotencyUnavailable, before `work` was begun, if it
        cannot be told whether something is kept; exceptions of `work` propagate."""

    def keep(self, key: str, result: dict[str, Any]) -> None:
        """Keeps the result of finished work under `key`. Raises Retryable."""


class IdempotencyRecords(Protocol):
    """What `Once` remembers, for those who remove it."""

    def forget(self, keys: Sequence[str]) -> None:
        """Removes the results under these keys; those that are not there are no error. Raises Retryable."""
