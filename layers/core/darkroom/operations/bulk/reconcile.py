"""Compares what the buckets hold with what the rows say, a slice of all images each night. It never deletes any."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import reduce
from heapq import merge
from itertools import batched, groupby
from operator import itemgetter, or_

from darkroom.domain.bulk.reconciliation import (
    MOST_RECORDED,
    NO_OBJECTS,
    Difference,
    Objects,
    Phase,
    Reconciliation,
    begin,
    confirm,
    differences_of,
    end,
    looked_again,
)
from darkroom.domain.bulk.schedules import Schedule
from darkroom.domain.images.image import Image
from darkroom.domain.kernel.errors import Retryable
from darkroom.operations.bulk.settle_batch import SHARE_SECONDS, Settled
from darkroom.ports.bulk import ImageListing, Reconciliations, StoredObjects
from darkroom.ports.images import Images
from darkroom.ports.kernel import Clock, Fenced, UnreadableRow

IDS_AT_ONCE = 10_000
"""From how many ids on they are written: with those of one more part of the list they still fit into an item."""

ROWS_AT_ONCE = 100
"""Rows that are requested at once: as many as BatchGetItem takes."""


@dataclass(frozen=True, kw_only=True)
class ReconcilePorts:
    """What a reconciliation needs."""

    images: Images
    reconciliations: Reconciliations
    image_listing: ImageListing
    stored_originals: StoredObjects
    stored_variants: StoredObjects
    clock: Clock


def reconciliation(ports: ReconcilePorts) -> Reconciliation:
    """The stack's reconciliation; if there is none, one that rests. Raises Retryable and UnreadableRow."""
    return ports.reconciliations.get() or ports.reconciliations.create(Reconciliation())


def have_night(ports: ReconcilePorts, schedule: Schedule, _: Callable[[], bool]) -> Settled:
    """The job of the schedule `reconcile`: has a night begin once per run, and says whether it has ended."""
    row = reconciliation(ports)
    if row.began_at >= (schedule.started_at or 0):  # guard: bulk-reconcile-one-night-a-run
        return "ended" if row.phase is Phase.WAITING else "later"
    if row.phase is Phase.WAITING and row.due_at is None:
        with suppress(Fenced):  # it is asked again
            ports.reconciliations.change(row, replace(row, due_at=ports.clock()))
    return "later"


def reconcile(
    ports: ReconcilePorts,
    *,
    out_of_time: Callable[[], bool] = lambda: False,
    unreadable: Callable[[UnreadableRow], object] = lambda _: None,
) -> Settled:
    """Begins the next night, or goes on with the one that has begun: looks again at the differences that are recorded,
    and records those of the night's slice.

    Each step can be repeated, and the row says up to where they were taken. The look rests after SHARE_SECONDS, or when
    it is `out_of_time`. Of an image whose row is `unreadable` nothing is said. Raises Retryable if a store cannot
    answer, and UnreadableRow.
    """
    row = ports.reconciliations.get()
    if row is None:
        return "gone"
    if row.due_at is None or row.due_at > ports.clock():  # guard: bulk-reconcile-begins-when-due
        return "later"  # the index is seconds behind
    try:
        return _Look(ports=ports, row=row, out_of_time=out_of_time, unreadable=unreadable).over()
    except Fenced:
        return "later"  # another look was faster


type _Steps = Generator[Reconciliation, None, Reconciliation]
"""The row after each step, and after the last."""


@dataclass(kw_only=True)
class _Look:
    ports: ReconcilePorts
    row: Reconciliation
    out_of_time: Callable[[], bool]
    unreadable: Callable[[UnreadableRow], object]
    rests_at: int = field(init=False)
    listed: list[str] = field(default_factory=list)
    known: dict[str, Difference] = field(init=False)

    def __post_init__(self) -> None:
        self.rests_at = self.ports.clock() + SHARE_SECONDS * 1000

    def over(self) -> Settled:
        """Raises Fenced if the row was changed meanwhile."""
        self.known = {difference.name: difference for difference in self.ports.reconciliations.differences()}
        reached = self.row
        try:
            for reached in self._steps(self.row):
                # What is to be compared is complete before it is.
                # guard: bulk-reconcile-ids-written-first
                if len(self.listed) >= IDS_AT_ONCE or (self.listed and reached.phase is not Phase.LISTING):
                    self._write(reached)
                # guard: bulk-reconciles-in-turns
                if self.out_of_time() or self.ports.clock() >= self.rests_at:
                    break
        except Retryable:
            if reached is self.row:  # guard: bulk-reconcile-fails-at-first-call
                raise
        self._write(reached)
        return "ended" if reached.phase is Phase.WAITING else "goes_on"

    def _write(self, reached: Reconciliation) -> None:
        if self.listed:
            self.row = self.ports.reconciliations.put_ids(self.row, reached, self.listed)
            self.listed = []
        else:
            self.row = self.ports.reconciliations.change(self.row, reached)

    def _steps(self, row: Reconciliation) -> Iterator[Reconciliation]:
        if row.phase is Phase.WAITING:
            row = begin(row, now=self.ports.clock())
            yield row
        if row.phase is Phase.CONFIRMING:
            row = yield from self._look_again(row)
        if row.phase is Phase.LISTING:
            row = yield from self._list(row)
        yield from self._compare(row)

    def _look_again(self, row: Reconciliation) -> _Steps:
        for name, difference in sorted(self.known.items()):
            if row.after is None or name > row.after:
                self._look_at(difference, row)
                row = replace(row, after=name)
                yield row
        row = looked_again(row, self.known.values())
        yield row
        return row

    def _look_at(self, difference: Difference, row: Reconciliation) -> None:
        """Forgets a difference that is gone, and confirms one that is still there."""
        image_id = difference.image_id
        image = self.ports.images.get_all([image_id]).get(image_id)
        if isinstance(image, UnreadableRow):
            self.unreadable(image)
            return
        parts = self._objects(image_id[:-1], image_id + "0")
        objects = reduce(or_, (part for other_id, part in parts if other_id == image_id), NO_OBJECTS)
        still = differences_of(image_id, image, objects, before=row.before, now=row.began_at)
        if difference.name not in {each.name for each in still}:  # guard: bulk-reconcile-gone-forgotten
            self.ports.reconciliations.remove(difference)
            del self.known[difference.name]
        elif (confirmed := confirm(difference, now=self.ports.clock())) != difference:
            self.ports.reconciliations.put(confirmed)
            self.known[difference.name] = confirmed

    def _list(self, row: Reconciliation) -> _Steps:
        since, until = row.bounds
        while True:
            part = self.ports.image_listing.between(since, until, before=row.before, after=row.after)
            self.listed += part.image_ids
            if part.next is None:
                break
            row = replace(row, after=part.next)
            yield row
        row = replace(row, phase=Phase.COMPARING, after=None)
        yield row
        return row

    def _compare(self, row: Reconciliation) -> _Steps:
        since, until = row.bounds
        after = row.after or since
        ids = ((image_id, NO_OBJECTS) for image_id in self.ports.reconciliations.ids(row.nights, after=after))
        parts = merge(ids, self._objects(after, until), key=itemgetter(0))
        images = ((image_id, [part for _, part in some]) for image_id, some in groupby(parts, key=itemgetter(0)))
        for some in batched(images, ROWS_AT_ONCE, strict=False):
            found = self._differences({image_id: reduce(or_, parts) for image_id, parts in some}, row)
            self._record(found)
            compared, last = row.compared + len(some), some[-1][0]
            row = replace(row, after=last, compared=compared, found=row.found + len(found))
            yield row
        row = end(row, now=self.ports.clock())
        yield row
        return row

    def _objects(self, since: str, until: str) -> Iterator[tuple[str, Objects]]:
        both = (self.ports.stored_originals.between(since, until), self.ports.stored_variants.between(since, until))
        return merge(*both, key=itemgetter(0))

    def _differences(self, stored: Mapping[str, Objects], row: Reconciliation) -> list[Difference]:
        """What differs of these images. Most rows agree, so the first read of all is the cheaper one, and a second read
        of the others decides."""
        suspects = {each.image_id for each in self._compared(stored, self.ports.image_listing.rows(list(stored)), row)}
        if not suspects:
            return []
        some = {image_id: stored[image_id] for image_id in suspects}
        # guard: bulk-reconcile-suspects-reread
        return self._compared(some, self.ports.images.get_all(list(some)), row)

    def _compared(
        self, stored: Mapping[str, Objects], rows: Mapping[str, Image | UnreadableRow], row: Reconciliation
    ) -> list[Difference]:
        found: list[Difference] = []
        for image_id, objects in stored.items():
            image = rows.get(image_id)
            if isinstance(image, UnreadableRow):  # guard: bulk-reconcile-unreadable-says-nothing
                self.unreadable(image)
                continue
            found += differences_of(image_id, image, objects, before=row.before, now=self.ports.clock())
        return found

    def _record(self, found: list[Difference]) -> None:
        for difference in found:
            # guard: bulk-reconcile-bound
            if difference.name not in self.known and len(self.known) < MOST_RECORDED:
                self.ports.reconciliations.put(difference)
                self.known[difference.name] = difference
