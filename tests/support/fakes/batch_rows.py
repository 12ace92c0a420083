"""Batches in memory, with the semantics that the port promises."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

from darkroom.domain.bulk.backfills import Backfill, Page, Selection
from darkroom.domain.bulk.batches import NO_SUMS, Batch, Counts, Sums
from darkroom.domain.bulk.members import MOST_CHANGES, Change, Member, MemberState, differences, shard_of
from darkroom.domain.bulk.reconciliation import Reconciliation
from darkroom.domain.bulk.schedules import Schedule
from darkroom.domain.kernel.instants import Milliseconds
from darkroom.ports.bulk import BatchCursor, BatchPage, DueRow, Found
from darkroom.ports.kernel import Fenced, UnreadableRow
from tests.support.fakes.imports import FakeImports, FakeManifests
from tests.support.fakes.rows import changed
from tests.support.fakes.stores import FakeImages


@dataclass
class FakeBatches:
    """The `Batches` and `BatchRegistry` ports over three dictionaries, with imports, `backfills`, `schedules` and the
    `reconciliation` beside them."""

    reconciliation: dict[str, Reconciliation] = field(default_factory=dict)
    backfills: dict[str, Backfill] = field(default_factory=dict)
    schedules: dict[str, Schedule] = field(default_factory=dict)
    rows: dict[str, Batch] = field(default_factory=dict)
    images: dict[str, dict[str, Member]] = field(default_factory=dict)
    counted: dict[str, Sums] = field(default_factory=dict)
    imports: FakeImports = field(default_factory=FakeImports)
    manifests: FakeManifests = field(default_factory=FakeManifests)

    def get(self, batch_id: str) -> Batch | None:
        return self.rows.get(batch_id)

    def create(self, batch: Batch) -> Batch:
        return self.rows.setdefault(batch.batch_id, batch)

    def change(self, before: Batch, after: Batch) -> Batch:
        return changed(self.rows, before.batch_id, before, after)

    def of_tenant(self, tenant_id: str, *, after: BatchCursor | None, limit: int) -> BatchPage:
        own = [row for row in self.rows.values() if row.tenant_id == tenant_id]
        places = {BatchCursor(row.created_at, row.batch_id): row for row in own}
        listed = [place for place in sorted(places, reverse=True) if after is None or place < after]
        shown = listed[:limit]
        return BatchPage(
            batches=tuple(places[place] for place in shown), next=shown[-1] if len(listed) > limit else None
        )

    def due(self, now: Milliseconds, limit: int) -> Iterator[DueRow]:
        rows = ((place, row, part) for part, some in self._kinds.items() for place, row in some.items())
        listed = [DueRow(row.due_at, place, part) for place, row, part in rows if row.due_at is not None]
        yield from sorted(due for due in listed if due.due_at <= now)[:limit]

    def postpone(self, due: DueRow, until: Milliseconds) -> None:
        rows = self._kinds.get(due.part, self.rows)
        row = rows.get(due.place)
        if row is not None and row.due_at == due.due_at:
            rows[due.place] = replace(row, due_at=until)

    @property
    def _kinds(self) -> dict[str, dict[str, Any]]:
        return {
            "batch": self.rows,
            "import": self.imports.rows,
            "backfill": self.backfills,
            "schedule": self.schedules,
            "reconciliation": self.reconciliation,
        }

    def join(self, member: Member) -> Member:
        return self.images.setdefault(member.batch_id, {}).setdefault(member.name, member)

    def leave(self, member: Member) -> None:
        kept = self.images.get(member.batch_id, {}).get(member.name)
        if kept is not None and (kept.state, kept.version) == (member.state, member.version):
            del self.images[member.batch_id][member.name]

    def members(self, batch_id: str, names: Sequence[str]) -> Mapping[str, Member | UnreadableRow]:
        assert len(names) <= 100, "DynamoDB reads no more at once"
        known = self.images.get(batch_id, {})
        return {name: known[name] for name in names if name in known}

    def all_members(self, batch_id: str, *, after: str | None = None) -> Iterator[tuple[str, Member | UnreadableRow]]:
        places = sorted((shard_of(name), name) for name in self.images.get(batch_id, {}))
        beginning = None if after is None else (shard_of(after), after)
        for place in places:
            known = self.images[batch_id].get(place[1])
            if known is not None and (beginning is None or place > beginning):
                yield place[1], known

    def waiting(self, batch_id: str, limit: int) -> Sequence[Member]:
        known = self.images.get(batch_id, {}).values()
        return list(islice((member for member in known if member.state is MemberState.WAITING), limit))

    def count(
        self, batch: Batch, changes: Sequence[Change], *, now: Milliseconds, most_working: int | None = None
    ) -> bool:
        assert len(changes) <= MOST_CHANGES, "DynamoDB changes no more at once"
        known, added = self.images.setdefault(batch.batch_id, {}), differences(changes)
        sums = self.counted.get(batch.batch_id, NO_SUMS)
        counts = Counts(**{name: getattr(sums.counts, name) + added.get(name, 0) for name in vars(sums.counts)})
        names = [(before or after).name for before, after in changes]  # type: ignore[union-attr]
        if any(known.get(name) != before for name, (before, _) in zip(names, changes, strict=True)):
            return False
        if most_working is not None and counts.working > most_working:
            return False
        for name, (_, after) in zip(names, changes, strict=True):
            if after is None:
                del known[name]
            else:
                known[name] = after
        if added:
            has_ended = any(MemberState(state).has_ended for state in added)
            first_ended_at = now if has_ended and sums.first_ended_at is None else sums.first_ended_at
            self.counted[batch.batch_id] = Sums(counts=counts, counted_at=now, first_ended_at=first_ended_at)
        return True

    def everything(self) -> Iterator[Batch]:
        yield from list(self.rows.values())

    def forget(self, tenant_id: str) -> int:
        own = [row.batch_id for row in self.rows.values() if row.tenant_id == tenant_id]
        for batch_id in own:
            del self.rows[batch_id]
            self.imports.rows.pop(batch_id, None)
            self.manifests.forget(batch_id)
        return len(own)

    def sums(self, batch_id: str) -> Sums:
        return self.counted.get(batch_id, NO_SUMS)


@dataclass
class FakeBackfills:
    """The `Backfills` port over two dictionaries."""

    rows: dict[str, Backfill] = field(default_factory=dict)
    kept: dict[tuple[str, int], Page] = field(default_factory=dict)

    def get(self, backfill_id: str) -> Backfill | None:
        return self.rows.get(backfill_id)

    def create(self, backfill: Backfill) -> Backfill:
        return self.rows.setdefault(backfill.backfill_id, backfill)

    def change(self, before: Backfill, after: Backfill) -> Backfill:
        return changed(self.rows, before.backfill_id, before, after)

    def put_page(self, before: Backfill, after: Backfill, page: Page) -> Backfill:
        written = self._with_page(before, after)
        self.kept[page.backfill_id, page.number] = page
        return written

    def settle_page(self, before: Backfill, after: Backfill, page: Page) -> Backfill:
        written = self._with_page(before, after)
        self.kept.pop((page.backfill_id, page.number), None)
        return written

    def _with_page(self, before: Backfill, after: Backfill) -> Backfill:
        current = self.rows.get(before.backfill_id)
        if current is None or current.version != before.version:
            raise Fenced(current)
        return changed(self.rows, before.backfill_id, before, after)

    def pages(self, backfill_id: str) -> Sequence[Page]:
        return [self.kept[key] for key in sorted(self.kept) if key[0] == backfill_id]

    def all(self) -> Iterator[Backfill]:
        yield from sorted(self.rows.values(), key=lambda row: -row.created_at)


@dataclass
class FakeSchedules:
    """The `Schedules` port over a dictionary."""

    rows: dict[str, Schedule] = field(default_factory=dict)

    def get(self, schedule_id: str) -> Schedule | None:
        return self.rows.get(schedule_id)

    def create(self, schedule: Schedule) -> Schedule:
        return self.rows.setdefault(schedule.schedule_id, schedule)

    def change(self, before: Schedule, after: Schedule) -> Schedule:
        return changed(self.rows, before.schedule_id, before, after)

    def remove(self, schedule: Schedule) -> None:
        current = self.rows.get(schedule.schedule_id)
        if current is not None and current.version != schedule.version:
            raise Fenced(current)
        self.rows.pop(schedule.schedule_id, None)

    def all(self) -> Iterator[Schedule]:
        yield from sorted(self.rows.values(), key=lambda row: row.created_at)


@dataclass
class FakeImageScan:
    """The `ImageScan` port over the fake images."""

    images: FakeImages

    def select(self, selection: Selection, *, after: str | None, limit: int) -> Found:
        ids = sorted(image_id for image_id in self.images.rows if after is None or image_id > after)
        read = ids[:limit]
        return Found(
            image_ids=tuple(each for each in read if selection.covers(self.images.rows[each])),
            up_to=read[-1] if len(ids) > limit else None,
            read=len(read),
        )
