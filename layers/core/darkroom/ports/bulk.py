"""What bulk work needs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from darkroom.domain.bulk.backfills import Backfill, Page, Selection
    from darkroom.domain.bulk.batches import Batch, Sums
    from darkroom.domain.bulk.imports import Import
    from darkroom.domain.bulk.members import Change, Member
    from darkroom.domain.bulk.reconciliation import Difference, Objects, Reconciliation
    from darkroom.domain.bulk.schedules import Schedule
    from darkroom.domain.images.image import Image
    from darkroom.domain.kernel.instants import Milliseconds
    from darkroom.ports.kernel import UnreadableRow
    from darkroom.ports.uploads import UploadForm


class DueRow(NamedTuple):
    """An entry of the index of bulk work that is due: when for a look, the id of the work, and which kind of row it is,
    `batch` or another."""

    due_at: Milliseconds
    place: str
    part: str = "batch"


class BatchCursor(NamedTuple):
    """A place in the list of a tenant's batches."""

    created_at: Milliseconds
    batch_id: str


@dataclass(frozen=True, kw_only=True)
class BatchPage:
    """Some batches of a tenant, the newest first; the list continues after `next`, None at its end."""

    batches: tuple[Batch | UnreadableRow, ...]
    next: BatchCursor | None


class Batches(Protocol):
    """The batches, and what each knows of its images. Every method raises Retryable if the table cannot answer.
    Methods for one row raise UnreadableRow if this version cannot read it; methods for many return it in the row's
    place."""

    def get(self, batch_id: str) -> Batch | None:
        """The current row (a consistent read), or None."""

    def create(self, batch: Batch) -> Batch:
        """Puts the row unless its id has one; returns the id's row: this one or the earlier one."""

    def change(self, before: Batch, after: Batch) -> Batch:
        """Writes what differs, if the version is still that of `before`; returns the row as written, with the next
        version. A lost answer is recognized. Raises Fenced if another write came first."""

    def of_tenant(self, tenant_id: str, *, after: BatchCursor | None, limit: int) -> BatchPage:
        """Up to `limit` batches of the tenant, from the newest on or from after `after`; perhaps seconds out of
        date."""

    def due(self, now: Milliseconds, limit: int) -> Iterator[DueRow]:
        """The first rows whose `due_at` has come, read as the caller iterates; perhaps seconds out of date."""

    def postpone(self, due: DueRow, until: Milliseconds) -> None:
        """Moves the next look at a row to `until`, if it is still due as `due` says; nothing else of it is read or
        written: it may be unreadable."""

    def join(self, member: Member) -> Member:
        """Puts the image's item unless there is one; returns the image's item: this one or the earlier one."""

    def leave(self, member: Member) -> None:
        """Removes the image's item if it still says that the image only joined."""

    def members(self, batch_id: str, names: Sequence[str]) -> Mapping[str, Member | UnreadableRow]:
        """What the batch knows of these images, or works beside images, by the members' names (a consistent read); at
        most 100."""

    def all_members(self, batch_id: str, *, after: str | None = None) -> Iterator[tuple[str, Member | UnreadableRow]]:
        """All members of the batch with their names, or those after the one named `after` (a consistent read), always
        in the same order, read as the caller iterates."""

    def waiting(self, batch_id: str, limit: int) -> Sequence[Member]:
        """Some images of the batch that wait for their turn, perhaps seconds out of date; fewer than `limit` only if
        there are no more."""

    def count(
        self, batch: Batch, changes: Sequence[Change], *, now: Milliseconds, most_working: int | None = None
    ) -> bool:
        """Writes what the images become and adds it to the batch's sums: all of it, or nothing, for at most
        MOST_CHANGES images. Returns False, and has written nothing, if an image's item is not as it was, or if more
        than `most_working` would be working then."""

    def sums(self, batch_id: str) -> Sums:
        """What was counted of the batch (a consistent read)."""


class Imports(Protocol):
    """The imports. Every method raises Retryable if the table cannot answer, and UnreadableRow."""

    def get(self, batch_id: str) -> Import | None:
        """The current row (a consistent read), or None."""

    def create(self, row: Import) -> Import:
        """Puts the row unless its id has one; returns the id's row: this one or the earlier one."""

    def change(self, before: Import, after: Import) -> Import:
        """Writes what differs, if the version is still that of `before`; returns the row as written, with the next
        version. A lost answer is recognized. Raises Fenced if another write came first."""


class StoredManifest(NamedTuple):
    """A manifest that was uploaded: what tells its bytes from any others, and how many they are."""

    etag: str
    size_bytes: int


class Manifests(Protocol):
    """The files of imports: manifests, and reports on rows that were rejected. Every method but `form_for` and
    `report_url` raises Retryable if the store cannot answer."""

    def form_for(
        self, batch_id: str, *, size_bytes: int, media_type: str, seconds: int, now: Milliseconds
    ) -> UploadForm:
        """A form with which the import's manifest, of that size, can be sent for that long from `now` on."""

    def find(self, batch_id: str) -> StoredManifest | None:
        """The import's manifest, or None."""

    def read(self, batch_id: str, etag: str, *, offset: int, size_bytes: int) -> bytes | None:
        """So many bytes of the manifest with that `etag` from `offset` on, or as many as there are: at least one. None
        if it is gone, or another."""

    def put_report(self, batch_id: str, name: str, body: bytes) -> None:
        """Stores a part of the report; the same name has always the same content."""

    def report(self, batch_id: str, name: str) -> bytes | None:
        """The part of the report, or None."""

    def report_url(self, batch_id: str, name: str) -> str:
        """Where anyone can fetch the part of the report for some time."""

    def remove(self, batch_id: str, name: str | None = None) -> None:
        """Removes the part of the report of that name, or else the manifest. A missing one is not an error."""

    def forget(self, batch_id: str) -> None:
        """Removes all files of the import."""


class Backfills(Protocol):
    """The backfills and their pages. Every method raises Retryable if the table cannot answer. Methods for one row
    raise UnreadableRow if this version cannot read it; those for many return it in the row's place."""

    def get(self, backfill_id: str) -> Backfill | None:
        """The current row (a consistent read), or None."""

    def create(self, backfill: Backfill) -> Backfill:
        """Puts the row unless its id has one; returns the id's row: this one or the earlier one."""

    def change(self, before: Backfill, after: Backfill) -> Backfill:
        """Writes what differs, if the version is still that of `before`; returns the row as written, with the next
        version. A lost answer is recognized. Raises Fenced if another write came first."""

    def put_page(self, before: Backfill, after: Backfill, page: Page) -> Backfill:
        """The same, with a new page: both, or neither."""

    def settle_page(self, before: Backfill, after: Backfill, page: Page) -> Backfill:
        """The same, with the page removed: both, or neither."""

    def pages(self, backfill_id: str) -> Sequence[Page]:
        """The pages, in their order (a consistent read)."""

    def all(self) -> Iterator[Backfill | UnreadableRow]:
        """All backfills, the newest first, read as the caller iterates; perhaps seconds out of date."""


class Schedules(Protocol):
    """The schedules of recurring jobs. Every method raises Retryable if the table cannot answer. Methods for one row
    raise UnreadableRow if this version cannot read it; `all` returns it in the row's place."""

    def get(self, schedule_id: str) -> Schedule | None:
        """The current row (a consistent read), or None."""

    def create(self, schedule: Schedule) -> Schedule:
        """Puts the row unless its id has one; returns the id's row: this one or the earlier one."""

    def change(self, before: Schedule, after: Schedule) -> Schedule:
        """Writes what differs, if the version is still that of `before`; returns the row as written, with the next
        version. A lost answer is recognized. Raises Fenced if another write came first."""

    def remove(self, schedule: Schedule) -> None:
        """Removes the row, if the version is still that of `schedule`. A missing one is not an error. Raises Fenced if
        another write came first."""

    def all(self) -> Iterator[Schedule | UnreadableRow]:
        """All schedules, the oldest first, read as the caller iterates; perhaps seconds out of date."""


class Found(NamedTuple):
    """What a part of the images' table has: the ids that were selected, after which id it ends, None if that is the
    table's end, and how many rows it has."""

    image_ids: tuple[str, ...]
    up_to: str | None
    read: int


class ImageScan(Protocol):
    """The images' table, part by part."""

    def select(self, selection: Selection, *, after: str | None, limit: int) -> Found:
        """The images that may be selected among the `limit` rows after that id, in an order that stays the same;
        perhaps seconds out of date: their rows decide. Raises Retryable if the table cannot answer."""


class Reconciliations(Protocol):
    """The one reconciliation of a stack, the differences that it has recorded, and the ids that its nights list. Every
    method raises Retryable if the table cannot answer, and UnreadableRow."""

    def get(self) -> Reconciliation | None:
        """The row (a consistent read), or None."""

    def create(self, row: Reconciliation) -> Reconciliation:
        """Puts the row unless there is one; returns the row: this one or the earlier one."""

    def change(self, before: Reconciliation, after: Reconciliation) -> Reconciliation:
        """Writes what differs, if the version is still that of `before`; returns the row as written, with the next
        version. A lost answer is recognized. Raises Fenced if another write came first."""

    def put_ids(self, before: Reconciliation, after: Reconciliation, image_ids: Sequence[str]) -> Reconciliation:
        """The same, with more ids of the night of `after`, at most 22,000, which are kept for a week: both, or
        neither."""

    def ids(self, nights: int, *, after: str) -> Iterator[str]:
        """All ids of that night that come after that one, in their order, some perhaps twice."""

    def differences(self) -> Sequence[Difference]:
        """All that are recorded, by name (a consistent read)."""

    def put(self, difference: Difference) -> None:
        """Records the difference, instead of one of that name."""

    def remove(self, difference: Difference) -> None:
        """Removes what is recorded under that name. A missing one is not an error."""


class ListedIds(NamedTuple):
    """The ids of a part of the list of images, and its place, after which it continues; None at the list's end."""

    image_ids: tuple[str, ...]
    next: str | None


class ImageListing(Protocol):
    """All images, cheap to read and perhaps seconds out of date. Every method raises Retryable if the table cannot
    answer."""

    def between(self, since: str, until: str, *, before: Milliseconds, after: str | None) -> ListedIds:
        """The ids after `since` and before `until` of images that were created before that instant and not deleted, in
        the next part of their list from the beginning or `after` that place on, in any order."""

    def rows(self, image_ids: Sequence[str]) -> Mapping[str, Image | UnreadableRow]:
        """The rows of the existing ids, by id; at most 100 ids."""


class StoredObjects(Protocol):
    """What a bucket holds, image by image."""

    def between(self, since: str, until: str) -> Iterator[tuple[str, Objects]]:
        """What there is of each image whose id comes after `since` and before `until`, in the order of ids, read as the
        caller iterates. An image may come several times, with a part each. Either may be the beginning of an id. Raises
        Retryable if the store cannot answer."""
