"""Images that wait for their time, counted by the keys of the waiting index, or by rows if the keys do not say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, date
from typing import Any

import pytest

from darkroom.domain.images.image import Image, Status, due_shard_of
from darkroom.domain.kernel.instants import Milliseconds
from darkroom.ports.kernel import UnreadableRow
from darkroom_cli.operator.domain.periods import Period, day_period, local_time
from darkroom_cli.operator.operations.schedules.list_scheduled import (
    ListScheduledPorts,
    ScheduledListing,
    ScheduledSelection,
    ids_in_order,
    list_scheduled,
)
from tests.support.fakes import FakeImages
from tests.support.images import NOW, pending, processing

HOUR = 3_600_000
DAY = 24 * HOUR
AHEAD = Period(starts_at=NOW, ends_at=NOW + 1000 * DAY)
TODAY = day_period(date(2026, 11, 21), UTC)


def scheduled(number: int, process_at: Milliseconds, **changes: Any) -> Image:
    """A row as `accept` and `reschedule` leave it."""
    times = {"process_at": process_at, "waiting_since": process_at, "enqueued_at": process_at, "due_at": process_at}
    return pending(image_id=f"{number:026d}", status=Status.SCHEDULED, **times, **changes)


@dataclass
class CountingImages(FakeImages):
    """Counts the rows that were read."""

    rows_read: list[str] = field(default_factory=list)

    def get_all(self, image_ids: Any) -> Mapping[str, Image | UnreadableRow]:
        self.rows_read += image_ids
        return super().get_all(image_ids)


def images_of(*rows: Image) -> CountingImages:
    return CountingImages(rows={row.image_id: row for row in rows})


def listed(
    images: FakeImages, selection: ScheduledSelection | None = None, limit: int = 1000, rows: int = 0
) -> ScheduledListing:
    return list_scheduled(
        ListScheduledPorts(images=images, clock=lambda: NOW),
        selection or ScheduledSelection(period=AHEAD, lanes=("fast", "slow")),
        cut=lambda at: day_period(local_time(at, UTC).date(), UTC),
        limit=limit,
        rows=rows,
    )


def test_images_of_all_lanes_and_shards_are_counted_by_day_in_the_order_of_time() -> None:
    rows = [scheduled(n, NOW + (n % 3) * DAY + n + 1, lane="fast" if n % 4 == 0 else "slow") for n in range(60)]
    assert len({due_shard_of(row.image_id) for row in rows}) == 16
    images = images_of(*rows)
    listing = listed(images)
    assert [(stretch.images, dict(stretch.images_by_lane)) for stretch in listing.stretches] == [
        (20, {"fast": 5, "slow": 15})
    ] * 3
    assert [(stretch.first_at, stretch.last_at) for stretch in listing.stretches] == [
        (NOW + n * DAY + n + 1, NOW + n * DAY + n + 58) for n in range(3)
    ]
    assert (listing.images, listing.due, listing.read_until, images.rows_read) == (60, 0, None, [])


def test_what_was_moved_or_withdrawn_waits_for_its_time_no_longer() -> None:
    withdrawn = scheduled(1, NOW + DAY, deleted_at=NOW)
    images = images_of(replace(withdrawn, status=Status.CANCELLED, waiting_since=None), scheduled(2, NOW + DAY))
    images.change(images.rows[f"{2:026d}"], scheduled(2, NOW + 3 * DAY, schedule=1))
    (stretch,) = listed(images).stretches
    assert stretch.first_at == NOW + 3 * DAY


def test_one_lane_and_a_stretch_of_time_are_counted_alone() -> None:
    images = images_of(*(scheduled(n, NOW + n * HOUR, lane="fast" if n % 2 else "slow") for n in range(1, 10)))
    some = ScheduledSelection(period=Period(starts_at=NOW + 2 * HOUR, ends_at=NOW + 6 * HOUR), lanes=("slow",))
    listing = listed(images, some)
    assert (listing.images, listing.stretches[0].first_at, listing.stretches[0].last_at) == (
        2,
        NOW + 2 * HOUR,
        NOW + 4 * HOUR,
    )


def test_a_count_that_ends_before_the_end_has_the_earliest_and_says_until_when() -> None:
    images = images_of(*(scheduled(n, NOW + 200 * HOUR - n * HOUR) for n in range(150)))
    listing = listed(images, limit=100)
    assert listing.images == 100
    assert listing.read_until == NOW + 151 * HOUR
    assert listing.stretches[-1].last_at == NOW + 150 * HOUR
    assert listed(images, limit=150).read_until is None


def test_of_a_tenant_what_its_rows_say_is_counted() -> None:
    images = images_of(*(scheduled(n, NOW + n, tenant_id="acme" if n % 5 == 0 else "other") for n in range(1, 251)))
    listing = listed(images, ScheduledSelection(period=AHEAD, lanes=("slow",), tenant_id="acme"))
    assert (listing.images, len(images.rows_read)) == (50, 250)


@pytest.mark.guards("day-named-images-only")
def test_of_named_images_only_those_are_counted_and_covered() -> None:
    rows = [scheduled(n, NOW + n) for n in range(1, 5)]
    named = ScheduledSelection(period=AHEAD, lanes=("slow",), image_ids=frozenset({rows[1].image_id, "0" * 26}))
    listing = listed(images_of(*rows), named, rows=10)
    assert (listing.images, [row.image_id for row in listing.rows]) == (1, [rows[1].image_id])
    assert [named.covers(row) for row in rows] == [False, True, False, False]


def test_the_first_rows_are_read_if_they_are_asked_for_and_no_more() -> None:
    images = images_of(*(scheduled(n, NOW + n) for n in range(1, 301)))
    listing = listed(images, rows=10)
    assert [row.process_at for row in listing.rows] == [NOW + n for n in range(1, 11)]
    assert (listing.images, len(images.rows_read)) == (300, 100)


@pytest.mark.guards("day-row-over-index")
def test_a_row_that_the_index_has_not_caught_up_with_is_believed_over_it() -> None:
    images = images_of(scheduled(1, NOW + DAY), scheduled(2, NOW + DAY), scheduled(3, NOW + DAY))
    before = dict(images.rows)

    class Behind(CountingImages):
        def waiting(self, *partition: Any, **bounds: Any) -> Any:
            return FakeImages(rows=before).waiting(*partition, **bounds)

    behind = Behind(rows=images.rows | {f"{1:026d}": processing(image_id=f"{1:026d}")})
    behind.rows[f"{2:026d}"] = scheduled(2, NOW + 2 * DAY, schedule=1)
    assert listed(behind).images == 3
    assert [row.image_id for row in listed(behind, rows=10).rows] == [f"{3:026d}"]
    assert listed(behind, rows=10).images == 1


def test_of_what_is_due_rows_tell_what_no_worker_has_begun() -> None:
    late, begun = scheduled(1, NOW - HOUR), replace(scheduled(2, NOW - HOUR), status=Status.PROCESSING)
    images = images_of(late, begun, scheduled(3, NOW + HOUR))
    day = ScheduledSelection(period=TODAY, lanes=("slow",))
    assert (listed(images, day).due, listed(images, day).images) == (2, 1)
    assert (listed(images, day, rows=10).due, [row.image_id for row in listed(images, day, rows=10).rows]) == (
        1,
        [late.image_id, f"{3:026d}"],
    )


def test_progress_is_told_in_keys() -> None:
    progress: list[int] = []
    list_scheduled(
        ListScheduledPorts(images=images_of(*(scheduled(n, NOW + n) for n in range(1, 251))), clock=lambda: NOW),
        ScheduledSelection(period=AHEAD, lanes=("slow",)),
        cut=lambda at: AHEAD,
        limit=1000,
        on_read=progress.append,
    )
    assert progress == [100, 200, 250]


def test_ids_come_in_the_order_of_time_and_those_of_a_tenant_by_their_rows() -> None:
    images = images_of(*(scheduled(n, NOW + 1000 - n, tenant_id="acme" if n % 2 else "other") for n in range(1, 9)))
    everybody = ScheduledSelection(period=AHEAD, lanes=("fast", "slow"))
    assert list(ids_in_order(ListScheduledPorts(images=images, clock=lambda: NOW), everybody)) == [
        f"{n:026d}" for n in range(8, 0, -1)
    ]
    assert list(
        ids_in_order(ListScheduledPorts(images=images, clock=lambda: NOW), replace(everybody, tenant_id="acme"))
    ) == [f"{n:026d}" for n in (7, 5, 3, 1)]


def test_an_unreadable_row_is_counted_beside_the_others_where_rows_are_read() -> None:
    images = images_of(scheduled(1, NOW + 1), scheduled(2, NOW + 2))
    images.unreadable["7" * 26] = replace(scheduled(0, NOW + 1), image_id="7" * 26)
    of_tenant = ScheduledSelection(period=AHEAD, lanes=("fast", "slow"), tenant_id="default")
    listing = listed(images, of_tenant)
    assert (listing.images, listing.unreadable) == (2, 1)
    assert sorted(ids_in_order(ListScheduledPorts(images=images, clock=lambda: NOW), of_tenant)) == [
        f"{1:026d}",
        f"{2:026d}",
    ]
    assert (listed(images).images, listed(images).unreadable) == (3, 0), "keys alone tell nothing of it"
