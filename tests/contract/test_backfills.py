"""Backfills, their pages and the scan that finds their images: the fakes and the tables of AWS alike."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import boto3
import pytest

from darkroom.aws.bulk.backfills_table import BackfillsTable, ImagesScan
from darkroom.aws.bulk.batches_table import BatchesTable
from darkroom.domain.bulk.backfills import (
    Backfill,
    BackfillCounts,
    BackfillState,
    ImageState,
    Selection,
    decided,
    end,
    start,
    with_page,
    without_page,
)
from darkroom.domain.images.image import Status, WorkKind
from darkroom.domain.images.transitions import begin_work, delete
from darkroom.ports.bulk import Backfills, DueRow, ImageScan
from darkroom.ports.kernel import Fenced
from darkroom_cli.operator.aws.batch_registry import BatchRegistryTable
from tests.contract.conftest import Aws
from tests.contract.stores import images_of, lose_first_answer
from tests.support.fakes.batch_rows import FakeBackfills, FakeImageScan
from tests.support.fakes.imports import FakeManifests
from tests.support.images import pending

NOW = 1_795_251_600_000
STANDARD = Selection(preset="standard", version=2)
EVERYTHING = Selection(preset="standard", version=2, since=1, until=NOW * 2, tag="summer", tenant_id="acme")


@pytest.fixture
def client(aws: Aws) -> Any:
    return boto3.client("dynamodb")


@pytest.fixture
def backfills(kind: str, aws: Aws, client: Any) -> Backfills:
    return FakeBackfills() if kind == "fake" else BackfillsTable(client, aws.batches_table)


def started(number: int = 1, selection: Selection = STANDARD, rate: int | None = None) -> Backfill:
    return start(f"bf_{number}", selection, rate=rate, now=NOW + number)


def test_a_backfill_is_made_once_changed_under_its_version_and_listed(backfills: Backfills) -> None:
    assert backfills.get("bf_1") is None
    first = backfills.create(started(selection=EVERYTHING, rate=5))
    assert backfills.create(started()) == first == backfills.get("bf_1")
    second = backfills.create(started(2))
    paused = backfills.change(first, decided(first, BackfillState.PAUSED, now=NOW + 9))
    assert (paused.state, paused.version, paused.due_at) == (BackfillState.PAUSED, 2, NOW + 9)
    with pytest.raises(Fenced) as lost:
        backfills.change(first, decided(first, BackfillState.CANCELLED, now=NOW))
    assert lost.value.current == paused
    assert list(backfills.all()) == [second, paused]


def test_a_page_comes_with_how_far_the_table_was_read_and_goes_with_its_counts(backfills: Backfills) -> None:
    row = backfills.create(started())
    after, page = with_page(row, ("a", "b"), up_to="b", read=7, now=NOW)
    found = backfills.put_page(row, after, page)
    assert backfills.get("bf_1") == found and (found.up_to, found.read, found.in_work) == ("b", 7, 2)
    assert list(backfills.pages("bf_1")) == [page]
    with pytest.raises(Fenced) as lost:
        backfills.put_page(row, after, replace(page, number=9))
    assert lost.value.current == found and list(backfills.pages("bf_1")) == [page]
    settled = backfills.settle_page(found, without_page(found, [ImageState.DONE, ImageState.SKIPPED]), page)
    assert settled.counts == BackfillCounts(done=1, skipped=1) and not backfills.pages("bf_1")
    ended = backfills.change(settled, end(replace(settled, up_to=None, is_listed=True), now=NOW))
    assert ended.has_ended and backfills.get("bf_1") == ended and ended.due_at is None


def test_a_lost_answer_of_a_page_is_no_loss_and_a_backfill_is_due_and_no_batch(aws: Aws, client: Any) -> None:
    backfills = BackfillsTable(client, aws.batches_table)
    row = backfills.create(started())
    due = list(BatchesTable(client, aws.batches_table).due(NOW + 1, 10))
    assert due == [DueRow(NOW + 1, "bf_1", "backfill")]
    after, page = with_page(row, ("a",), up_to=None, read=1, now=NOW)
    written = backfills.put_page(row, after, page)
    lose_first_answer(client, "UpdateItem")
    changed = backfills.change(written, decided(written, BackfillState.PAUSED, now=NOW))
    assert backfills.get("bf_1") == changed
    nothing: Any = FakeManifests()
    assert list(BatchRegistryTable(client, aws.batches_table, nothing).everything()) == []


def test_the_scan_finds_what_may_be_selected_part_by_part(kind: str, aws: Aws, client: Any) -> None:
    images: Any = images_of(kind, aws)
    scan: ImageScan = FakeImageScan(images) if kind == "fake" else ImagesScan(client, aws.images_table)

    def put(number: int, **stated: Any) -> str:
        row = replace(pending(image_id=f"{number:026d}"), status=Status.DONE, completed_at=NOW, **stated)
        return str(images.create(row).image_id)

    wanted = {put(number) for number in range(5)}
    busy = images.create(
        begin_work(replace(pending(image_id=f"{20:026d}"), status=Status.DONE), WorkKind.REDO, now=NOW)
    )
    wanted.add(busy.image_id)
    put(10, preset="avatar")
    put(11, preset_version=2)
    images.create(pending(image_id=f"{12:026d}"))
    images.create(delete(replace(pending(image_id=f"{13:026d}"), status=Status.DONE), now=NOW))
    tagged = put(14, tags=("summer", "sea"), preset_version=1)
    found, after, read = set[str](), None, 0
    while True:
        part = scan.select(STANDARD, after=after, limit=4)
        found, after, read = found | set(part.image_ids), part.up_to, read + part.read
        assert part.read <= 4
        if after is None:
            break
    assert found == wanted | {tagged} and read == 11
    mine = replace(EVERYTHING, tenant_id=busy.tenant_id)
    assert scan.select(mine, after=None, limit=100).image_ids == (tagged,)
    for missed in ({"until": 1}, {"since": NOW * 2}, {"tenant_id": "nobody"}, {"tag": "winter"}):
        assert scan.select(replace(mine, **missed), after=None, limit=100).image_ids == ()
