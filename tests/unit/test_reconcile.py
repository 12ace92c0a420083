"""Reconciliation: what counts as a difference, what never does, and that no difference is missed or deleted."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from typing import Any

import pytest

from darkroom.domain.bulk import reconciliation as rules
from darkroom.domain.bulk.reconciliation import (
    SLICES,
    Difference,
    DifferenceKind,
    Phase,
    Reconciliation,
)
from darkroom.domain.bulk.schedules import OWN
from darkroom.domain.images.image import Image, Status, Variant
from darkroom.domain.images.transitions import delete
from darkroom.domain.kernel.errors import Retryable
from darkroom.domain.kernel.ids import ALPHABET
from darkroom.domain.kernel.instants import rfc3339
from darkroom.domain.kernel.visibility import PREFIXES
from darkroom.operations.bulk import reconcile as module
from darkroom.operations.bulk.feed_backfill import FeedBackfillPorts
from darkroom.operations.bulk.reconcile import ReconcilePorts, have_night, reconcile, reconciliation
from darkroom.operations.bulk.run_schedule import RunSchedulePorts
from darkroom.operations.bulk.settle_batch import SHARE_SECONDS
from darkroom.operations.bulk.sweep_due_bulk import BulkSweep, SweepDueBulkPorts, sweep_due_bulk
from darkroom.ports.kernel import UnreadableRow
from darkroom_cli.capacity.prices import cost
from repository.report import ROOT
from tests.support.fakes.batches import BODY, BatchesWorld
from tests.support.fakes.originals import FakeVersionedOriginals
from tests.support.fakes.reconciliation import (
    FakeImageListing,
    FakeReconciliations,
    FakeStoredOriginals,
    FakeStoredVariants,
)
from tests.support.fakes.stores import FakeOutputs

DAY = 24 * 3600
ORIGINAL_WITHOUT_ROW, ROW_WITHOUT_ORIGINAL, ROW_WITHOUT_VARIANT = DifferenceKind


class Crash(BaseException):
    """The process ends: nothing handles it."""


def variant_at(key: str) -> Variant:
    return Variant(name=key[-5], width=1, height=1, format="jpeg", size_bytes=1, sha256="s", key=key)


@dataclass
class ReconciledWorld(BatchesWorld):
    """Images whose rows and objects a reconciliation compares."""

    reconciliations: FakeReconciliations = field(default_factory=FakeReconciliations)
    unreadable: list[UnreadableRow] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.originals = FakeVersionedOriginals(clock=self.clock)
        self.outputs = FakeOutputs()
        self.batches.reconciliation = self.reconciliations.rows
        self.image_listing = FakeImageListing(self.images)
        self.stored_originals = FakeStoredOriginals(self.originals)
        self.stored_variants = FakeStoredVariants(self.outputs)

    def done(self, number: int = 1, *, variants: int = 2) -> list[Image]:
        """So many images that are done, with so many variants each."""
        images = [self.submit(BODY, idempotency_key=f"{self.requests}").image for _ in range(number)]
        for image in images:
            keys = [f"outputs/{image.image_id}/1/{name}.jpg" for name in range(variants)]
            self.outputs.objects |= dict.fromkeys(keys, b"x")
            made = tuple(variant_at(key) for key in keys)
            done = replace(image, status=Status.DONE, variants=made, completed_at=self.now, due_at=None)
            self.images.rows[image.image_id] = replace(done, waiting_since=None, enqueued_at=None)
        return [self.row(image.image_id) for image in images]

    @property
    def reconcile_ports(self) -> ReconcilePorts:
        return self.ports(ReconcilePorts)

    def look(self, **how: Any) -> str:
        return reconcile(self.reconcile_ports, unreadable=self.unreadable.append, **how)

    def begin_night(self) -> None:
        """Has the next night begin, a day after the one before."""
        row = reconciliation(self.reconcile_ports)
        self.now = max(self.now, row.began_at + DAY * 1000)
        self.reconciliations.change(row, replace(row, due_at=self.now))

    def night(self) -> Reconciliation:
        """A whole night."""
        if reconciliation(self.reconcile_ports).due_at is None:
            self.begin_night()
        for _ in range(200):
            if self.look() == "ended":
                return reconciliation(self.reconcile_ports)
        raise AssertionError("it does not end")

    def month(self) -> int:
        """All nights until everything was compared, which is a day old; returns how many differences they found."""
        self.advance(DAY)
        return sum(self.night().found for _ in range(SLICES))

    def sweep_bulk(self) -> BulkSweep:
        others = {"feeding": self.ports(FeedBackfillPorts), "scheduling": self.ports(RunSchedulePorts)}
        ports = self.ports(SweepDueBulkPorts, imports=None, reconciling=self.reconcile_ports, **others)
        return sweep_due_bulk(ports, out_of_time=lambda: False)

    def seen(self) -> list[tuple[DifferenceKind, str]]:
        return [(difference.kind, difference.key) for difference in self.reconciliations.differences()]


@pytest.fixture
def world() -> ReconciledWorld:
    return ReconciledWorld()


def lost_row(world: ReconciledWorld, image: Image) -> tuple[DifferenceKind, str]:
    del world.images.rows[image.image_id]
    return ORIGINAL_WITHOUT_ROW, f"originals/{image.image_id}"


def lost_original(world: ReconciledWorld, image: Image) -> tuple[DifferenceKind, str]:
    del world.originals.kept[f"originals/{image.image_id}"]
    return ROW_WITHOUT_ORIGINAL, f"originals/{image.image_id}"


def lost_version(world: ReconciledWorld, image: Image) -> tuple[DifferenceKind, str]:
    world.originals.add(f"originals/{image.image_id}", b"another")
    world.originals.remove([(image.image_id, image.source.version_id)])
    return ROW_WITHOUT_ORIGINAL, f"originals/{image.image_id}"


def lost_variant(world: ReconciledWorld, image: Image) -> tuple[DifferenceKind, str]:
    key = image.variants[0].key
    del world.outputs.objects[key]
    return ROW_WITHOUT_VARIANT, key


def lost_everything(world: ReconciledWorld, image: Image) -> tuple[DifferenceKind, str]:
    """All objects of a row that has no variants: only the list of rows has its id."""
    world.images.rows[image.image_id] = replace(image, variants=())
    world.outputs.remove([each.key for each in image.variants])
    return lost_original(world, image)


LOSSES = [lost_row, lost_original, lost_version, lost_variant]
type Loss = Callable[[ReconciledWorld, Image], tuple[DifferenceKind, str]]


@pytest.mark.parametrize("lose", LOSSES)
def test_a_month_finds_each_difference_once_and_confirms_it_in_the_next_night(
    world: ReconciledWorld, lose: Loss
) -> None:
    images = world.done(40)
    lost = lose(world, images[17])
    stored = (dict(world.originals.kept), dict(world.outputs.objects))
    assert (world.month(), world.seen()) == (1, [lost])
    world.night()
    (difference,) = world.reconciliations.differences()
    assert difference.confirmed_at is not None
    assert (world.originals.kept, world.outputs.objects) == stored, "it deletes nothing"


@pytest.mark.guards("bulk-reconcile-ids-written-first")
def test_a_row_without_any_object_is_found(world: ReconciledWorld) -> None:
    (image, _) = world.done(2)
    expected = lost_everything(world, image)
    assert (world.month(), world.seen()) == (1, [expected])


@pytest.mark.guards("bulk-reconcile-seen-twice", "bulk-reconcile-gone-forgotten")
def test_a_difference_is_confirmed_by_a_second_night_and_forgotten_once_it_is_gone(world: ReconciledWorld) -> None:
    (image,) = world.done()
    row = world.images.rows.pop(image.image_id)
    world.advance(DAY)
    while not world.reconciliations.recorded:
        world.night()
    (first,) = world.reconciliations.differences()
    assert first.confirmed_at is None
    begun_late = replace(reconciliation(world.reconcile_ports), due_at=first.first_seen + 3_600_000)
    world.reconciliations.rows["reconciliation"] = begun_late
    world.now = first.first_seen + 3_600_000
    world.night()
    assert world.reconciliations.differences() == [first], "an hour later is no second look"
    assert world.night().confirmed == 1
    world.images.rows[image.image_id] = row
    ended = world.night()
    assert (ended.confirmed, ended.recorded, world.seen()) == (0, 0, [])


def deleted(world: ReconciledWorld, image: Image) -> None:
    world.images.rows[image.image_id] = delete(image, now=world.now)
    del world.originals.kept[f"originals/{image.image_id}"]


def announced(world: ReconciledWorld, image: Image) -> None:
    source = replace(image.source, version_id="")
    world.images.rows[image.image_id] = replace(image, status=Status.AWAITING_UPLOAD, source=source, variants=())
    del world.originals.kept[f"originals/{image.image_id}"]


def fetched_in_vain(world: ReconciledWorld, image: Image) -> None:
    announced(world, image)
    world.images.rows[image.image_id] = replace(world.row(image.image_id), status=Status.FAILED)


def failed(world: ReconciledWorld, image: Image) -> None:
    world.images.rows[image.image_id] = replace(image, status=Status.FAILED)
    lost_variant(world, image)


def marked(world: ReconciledWorld, image: Image) -> None:
    world.originals.hide([image.image_id])


def marker_alone(world: ReconciledWorld, image: Image) -> None:
    deleted(world, image)
    del world.images.rows[image.image_id]
    for each in image.variants:
        del world.outputs.objects[each.key]
    world.originals.hide([image.image_id])


def unreadable(world: ReconciledWorld, image: Image) -> None:
    world.images.unreadable[image.image_id] = world.images.rows.pop(image.image_id)
    lost_variant(world, image)


@pytest.mark.guards("bulk-reconcile-unreadable-says-nothing", case="unreadable")
@pytest.mark.parametrize("change", [deleted, announced, fetched_in_vain, failed, marked, marker_alone, unreadable])
def test_what_is_as_it_should_be_is_no_difference(
    world: ReconciledWorld, change: Callable[[ReconciledWorld, Image], None]
) -> None:
    (image, *_) = world.done(3)
    change(world, image)
    assert (world.month(), world.seen()) == (0, [])
    assert {row.row_id for row in world.unreadable} == ({image.image_id} if change is unreadable else set())


@pytest.mark.guards("bulk-reconcile-young-rows-wait", case="lost_original")
@pytest.mark.parametrize("lose", LOSSES)
def test_what_is_younger_than_a_day_may_still_be_under_way(
    world: ReconciledWorld, monkeypatch: pytest.MonkeyPatch, lose: Loss
) -> None:
    monkeypatch.setattr(rules, "SLICES", 1)
    (image,) = world.done()
    lost = lose(world, image)
    world.advance(DAY - 60)
    assert world.night().found == 0
    assert (world.night().found, world.seen()) == (1, [lost])


@pytest.mark.guards("bulk-reconcile-suspects-reread")
def test_what_a_first_read_misses_a_consistent_one_decides(world: ReconciledWorld) -> None:
    world.done(3)
    world.image_listing.rows = lambda _: {}  # type: ignore[method-assign, assignment]
    assert (world.month(), world.seen()) == (0, [])


@pytest.mark.guards("bulk-reconcile-bound")
def test_so_many_are_recorded_and_all_are_counted(world: ReconciledWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_RECORDED", 3)
    for image in world.done(8):
        lost_row(world, image)
    assert (world.month(), len(world.seen())) == (8, 3)


def test_the_slices_are_all_ids() -> None:
    nights = [Reconciliation(nights=number).bounds for number in range(1, SLICES + 2)]
    assert nights[0] == nights[SLICES] and nights[0][0] == "0" * 10
    assert [until for _, until in nights[:-2]] == [since for since, _ in nights[1:-1]]
    assert nights[SLICES - 1][0] < "7" + ALPHABET[-1] * 25 < nights[SLICES - 1][1]


@pytest.mark.guards("bulk-reconcile-begins-when-due", case="lost")
@pytest.mark.parametrize("kind", ["died", "throttled", "lost"])
def test_a_night_finds_exactly_what_there_is_wherever_a_look_breaks_off(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rules, "SLICES", 1)
    monkeypatch.setattr(module, "ROWS_AT_ONCE", 3)
    monkeypatch.setattr(module, "IDS_AT_ONCE", 3)
    for number in count():
        world = ReconciledWorld()
        images = world.done(8)
        world.advance(2 * DAY)
        world.night()
        lost = [lose(world, image) for lose, image in zip(LOSSES, images, strict=False)]
        lost += [lost_everything(world, image) for image in images[4:6]]
        world.begin_night()
        with failing_at(world, number, kind) as calls:
            for rests in (True, True, True, False, False):
                with suppress(Crash, Retryable):
                    if world.look(out_of_time=lambda rests=rests: rests) == "ended":
                        break
        row = reconciliation(world.reconcile_ports)
        ended = row if row.nights == 2 and row.phase is Phase.WAITING else world.night()
        assert (ended.nights, ended.compared, ended.found) == (2, 8, 6), (kind, number)
        assert sorted(world.seen()) == sorted(lost) and world.night().confirmed == 6, (kind, number)
        if len(calls) <= number:
            assert number > 60, "every call of a night was met"
            return


@contextmanager
def failing_at(world: ReconciledWorld, number: int, kind: str) -> Iterator[list[int]]:
    """The call of that number to a store fails: before or after it took effect."""
    calls, seen = count(), list[int]()

    def met(call: Callable[[], Any]) -> Any:
        place = next(calls)
        seen.append(place)
        if place == number and kind == "throttled":
            raise Retryable("throttled")
        answer = call()
        if place == number:
            raise Crash if kind == "died" else Retryable("its answer was lost")
        return answer

    def wrapped(call: Callable[..., Any]) -> Callable[..., Any]:
        def run(*given: Any, **named: Any) -> Any:
            answer = met(lambda: call(*given, **named))
            return listed(answer) if isinstance(answer, Generator) else answer

        return run

    def listed(parts: Iterator[Any]) -> Iterator[Any]:
        while (part := met(lambda: next(parts, None))) is not None:
            yield part

    names = {
        "reconciliations": ("get", "change", "put_ids", "ids", "differences", "put", "remove"),
        "images": ("get_all",),
        "image_listing": ("between", "rows"),
        "stored_originals": ("between",),
        "stored_variants": ("between",),
    }
    with pytest.MonkeyPatch.context() as patched:
        for store, methods in names.items():
            for method in methods:
                patched.setattr(getattr(world, store), method, wrapped(getattr(getattr(world, store), method)))
        yield seen


@pytest.mark.guards("bulk-reconciles-in-turns")
def test_a_night_gives_way_and_goes_on_where_it_was(world: ReconciledWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "SLICES", 1)
    monkeypatch.setattr(module, "ROWS_AT_ONCE", 2)
    for image in world.done(6):
        lost_row(world, image)
    world.advance(2 * DAY)
    world.begin_night()
    rows = world.image_listing.rows
    read = list[str]()

    def slowly(ids: Any) -> Any:
        world.advance(SHARE_SECONDS)
        read.extend(ids)
        return rows(ids)

    monkeypatch.setattr(world.image_listing, "rows", slowly)
    assert [world.look() for _ in range(4)] == ["goes_on", "goes_on", "goes_on", "ended"]
    assert len(read) == len(set(read)) == len(world.seen()) == 6


@pytest.mark.guards("bulk-reconcile-fails-at-first-call")
def test_a_look_keeps_what_it_has_done_and_says_when_it_can_do_nothing(
    world: ReconciledWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.begin_night()

    def throttled(*_: Any, **__: Any) -> Any:
        raise Retryable("throttled")

    monkeypatch.setattr(world.image_listing, "between", throttled)
    assert world.look() == "goes_on"
    with pytest.raises(Retryable):
        world.look()
    assert reconciliation(world.reconcile_ports).phase is Phase.LISTING


@pytest.mark.guards("bulk-reconcile-stops-no-sweep", "bulk-reconcile-one-night-a-run")
def test_its_schedule_begins_each_night_once_the_sweep_tells_what_is_confirmed_and_goes_on_without_it(
    world: ReconciledWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rules, "SLICES", 1)
    world.own, world.jobs["reconcile"] = OWN, partial(have_night, world.reconcile_ports)
    lost_row(world, world.done()[0])
    told = []
    for _ in range(4):
        world.sweep_bulk()
        planned = world.batches.schedules["sc_reconcile"]
        world.now = planned.due_at
        for _ in range(4):
            sweep = world.sweep_bulk()
            world.advance(60)
        told.append((reconciliation(world.reconcile_ports).nights, sweep.differences))
        assert world.batches.schedules["sc_reconcile"].completed_for == planned.planned_for
        assert str(rfc3339(planned.planned_for)).endswith("T03:17:00.000Z")
    assert told == [(1, 0), (2, 0), (3, 1), (4, 1)]

    def throttled() -> Any:
        raise Retryable("throttled")

    monkeypatch.setattr(world.reconciliations, "get", throttled)
    batch = world.open()
    world.close(batch)
    assert world.sweep_bulk().outcomes["ended"] == 1


def test_a_difference_is_of_one_kind_at_one_key() -> None:
    one = Difference(kind=ROW_WITHOUT_VARIANT, image_id="i", key="outputs/i/1/small.jpg", first_seen=1)
    assert one.name == "row_without_variant#outputs/i/1/small.jpg"


VARIANTS, ROW_KILOBYTES, ENTRY_BYTES, ID_BYTES, KEYS_LISTED = 4, 2, 100, 17, 1000
"""Of an image; of its row; of its entry in the index, and in what a night lists; and of keys in an answer of S3."""

READ_MILLISECONDS, LIST_MILLISECONDS, SCAN_MILLISECONDS = 60, 60, 150
"""Of a read of a hundred rows with what is made of them, a page of keys, and a page of the index."""


def test_a_month_of_ten_million_images_costs_what_the_page_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted of some thousands in one slice; the index is read as a whole for each."""
    monkeypatch.setattr(rules, "SLICES", 1)
    world, used, images, all_images = ReconciledWorld(), Counter[str](), 4_000, 10_000_000
    world.done(images, variants=VARIANTS)
    world.advance(2 * DAY)
    world.originals.page_size = world.image_listing.page_size = images
    units, writes, lists = "DynamoDB read units", "DynamoDB write units", "S3 puts"

    def counted(store: Any, method: str, price: Callable[..., Mapping[str, float]], milliseconds: int) -> None:
        call = getattr(store, method)

        def run(*given: Any, **named: Any) -> Any:
            world.now += milliseconds
            used.update(price(*given))
            return call(*given, **named)

        monkeypatch.setattr(store, method, run)

    def listed(store: Any, prefixes: int) -> None:
        call = store.between

        def between(since: str, until: str) -> Iterator[Any]:
            for number, part in enumerate(call(since, until)):
                if number % KEYS_LISTED == 0:
                    used[lists] += 1 if number else prefixes
                    world.now += LIST_MILLISECONDS
                yield part

        monkeypatch.setattr(store, "between", between)

    listed(world.stored_originals, 1)
    listed(world.stored_variants, len(PREFIXES))
    scans = ENTRY_BYTES * images / 4096 / 2 * SLICES
    pages = images * ENTRY_BYTES / 1_000_000 * SLICES
    counted(world.image_listing, "between", lambda *_: {units: scans}, int(pages * SCAN_MILLISECONDS))
    counted(world.image_listing, "rows", lambda ids: {units: len(ids) / 2}, READ_MILLISECONDS)
    counted(world.reconciliations, "get", lambda: {units: 1}, 5)
    counted(world.reconciliations, "differences", lambda: {units: 1}, 5)
    counted(world.reconciliations, "change", lambda *_: {writes: 1}, 5)
    counted(world.reconciliations, "put_ids", lambda *given: {writes: 2 * (1 + len(given[2]) * ID_BYTES / 1024)}, 20)
    read = {units: images * ID_BYTES / 4096}
    counted(world.reconciliations, "ids", lambda *_: read, 20)

    world.begin_night()
    began = world.now
    assert world.night().compared == images
    used["Lambda GB-milliseconds"] = (world.now - began) // 2
    dollars = cost(used) * all_images / images
    assert dollars < 2, f"${dollars:.2f}: {used}"
    told = re.search(r"about \$([\d.]+) a month for 10 million images", (ROOT / "docs" / "bulk.md").read_text())
    assert told is not None and float(told[1]) == pytest.approx(dollars, abs=0.02), (dollars, used)
