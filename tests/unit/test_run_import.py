"""Imports: what becomes of each row of a manifest, and when nothing is asked for."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from darkroom.domain.bulk import manifests
from darkroom.domain.bulk.batches import BatchState, Counts, OnFailure
from darkroom.domain.bulk.imports import Import, ImportState, WaitsFor
from darkroom.domain.bulk.manifests import ManifestFormat
from darkroom.domain.images.image import Status, message_for
from darkroom.domain.images.order import order_of
from darkroom.domain.imports.bucket_files import NOT_REGISTERED
from darkroom.domain.kernel.errors import Retryable, TurnedAway
from darkroom.domain.kernel.tenants import Quota, Tenant, TenantState, Tier
from darkroom.domain.pauses.pauses import Pause
from darkroom.operations.bulk import run_import
from darkroom.operations.bulk.manage_batches import WantedBatch
from darkroom.operations.bulk.manage_imports import ManageImportsPorts, WantedImport, create_import, read_import
from darkroom.ports.kernel import Fenced, UnreadableRow
from tests.support.fakes.batches import BatchesWorld
from tests.support.fakes.pictures import jpeg

URLS = [f"https://photos.example/{number}.jpg" for number in range(3)]
MANIFEST = ("url,key,preset,tags\n" + "".join(f"{url},k{number},,a|b\n" for number, url in enumerate(URLS))).encode()


def sweep(world: BatchesWorld, minutes: int = 1) -> None:
    for _ in range(minutes):
        world.advance(60)
        world.sweep_bulk()


def report(world: BatchesWorld, row: Import) -> list[dict[str, Any]]:
    parts = [world.manifests.report(row.batch_id, part.name) for part in world.imported(row).report]
    return [json.loads(line) for line in b"".join(parts).splitlines()]


def figures(row: Import) -> tuple[int, ...]:
    return row.rows, row.valid, row.rejected, row.created, row.existing


@pytest.mark.guards("bulk-import-leaves-live-lanes")
def test_each_row_of_a_manifest_becomes_an_image_of_the_imports_batch() -> None:
    world = BatchesWorld()
    row = world.begin_import(MANIFEST, name="catalogue")
    sweep(world)
    ended = world.imported(row)
    assert (ended.state, figures(ended), ended.progress) == (ImportState.COMPLETED, (3, 3, 0, 3, 0), 1.0)
    images = list(world.images.rows.values())
    assert {(image.url, image.batch, image.tags, image.lane, image.status) for image in images} == {
        (url, row.batch_id, ("a", "b"), "bulk", Status.FETCHING) for url in URLS
    }
    assert len(world.fetch_queue.asked) == 3
    batch = world.batches.get(row.batch_id)
    assert (batch.state, batch.is_import, batch.name) == (BatchState.CLOSED, True, "catalogue")
    assert world.manifests.find(row.batch_id) is None, "it has the URLs of all images"


def test_what_is_wrong_with_a_row_is_reported_and_affects_no_other() -> None:
    world = BatchesWorld()
    world.submit(b"\xff\xd8\xff", idempotency_key="k2")
    row = world.begin_import(MANIFEST + b"s3://bucket/key,k4,,\n")
    sweep(world)
    ended = world.imported(row)
    assert (ended.state, figures(ended)) == (ImportState.COMPLETED, (4, 3, 2, 2, 0))
    assert [(line["row"], line["key"], line["field"]) for line in report(world, row)] == [
        (4, "k4", "url"),
        (3, "k2", "key"),
    ]
    assert all("." in line["message"] for line in report(world, row))


def test_a_row_may_name_a_file_in_a_bucket_whose_place_is_registered_for_its_tenant() -> None:
    world = BatchesWorld()
    mine, others = "s3://photos/acme/1.jpg", "s3://photos/globex/1.jpg"
    for tenant, places in (("default", ("s3://photos/acme/",)), ("globex", ("s3://photos/globex/",))):
        world.tenants.add_tenant(Tenant(tenant_id=tenant, tier=Tier.FREE, created_at=1, import_from=places))
    row = world.begin_import(f"url\n{mine}\n{others}\n".encode())
    sweep(world)
    (problem,) = report(world, row)
    assert (figures(world.imported(row)), problem["row"], problem["message"]) == ((2, 1, 1, 1, 0), 2, NOT_REGISTERED)
    world.bucket_images.serve(mine, jpeg())
    (image,) = world.images.rows.values()
    assert world.fetch(message_for(image), "receipt").outcome == "accepted"
    assert (world.bucket_images.asked, world.remote_images.asked) == ([mine], [])


@pytest.mark.guards("bulk-import-own-image-counted")
def test_what_is_there_is_made_by_no_import_again() -> None:
    world = BatchesWorld()
    world.ask(URLS[0], idempotency_key="k0", tags=["a", "b"])
    first = world.begin_import(MANIFEST)
    sweep(world)
    again = world.begin_import(MANIFEST)
    sweep(world)
    assert (figures(world.imported(first)), figures(world.imported(again))) == ((3, 3, 0, 2, 1), (3, 3, 0, 0, 3))
    assert len(world.images.rows) == 3


@pytest.mark.parametrize(
    ("manifest", "code", "message"),
    [
        (b"url;key\nx;y\n", "invalid_manifest", "separated by commas"),
        (b"url\n\n", "invalid_manifest", "no rows"),
        (MANIFEST, "invalid_manifest", "more than 2 rows"),
        (MANIFEST + b'"' * 40_000, "invalid_manifest", "Row 4 has more than"),
    ],
)
@pytest.mark.guards("bulk-import-most-rows")
def test_a_manifest_that_is_none_creates_nothing_and_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, manifest: bytes, code: str, message: str
) -> None:
    world = BatchesWorld()
    monkeypatch.setattr(run_import, "MAX_ROWS", 2 if "2 rows" in message else manifests.MAX_ROWS)
    row = world.begin_import(manifest)
    sweep(world)
    ended = world.imported(row)
    assert (ended.state, ended.error_code, world.images.rows) == (ImportState.FAILED, code, {})
    assert message in (ended.error_message or "")
    sweep(world, 3)
    assert world.batches.get(row.batch_id).state is BatchState.FAILED, "who is told of its end hears of it"


def test_a_manifest_is_awaited_for_an_hour() -> None:
    world = BatchesWorld()
    row = world.begin_import(MANIFEST)
    world.manifests.forget(row.batch_id)
    sweep(world, 60)
    assert world.imported(row).state is ImportState.AWAITING_MANIFEST
    sweep(world, 5)
    ended = world.imported(row)
    assert (ended.state, ended.error_code) == (ImportState.FAILED, "manifest_missing")


def test_a_manifest_that_is_replaced_while_it_is_read_is_not_mixed() -> None:
    world = BatchesWorld()
    row = world.begin_import(MANIFEST)
    world.look_at_import(row.batch_id)
    world.manifests.objects[row.batch_id, "manifest"] = MANIFEST.replace(b"k1", b"k9")
    sweep(world)
    ended = world.imported(row)
    assert (ended.state, len(world.images.rows)) == (ImportState.FAILED, 0)
    assert "replaced" in (ended.error_message or "")


def quota(world: BatchesWorld) -> Callable[[], object]:
    world.tenants.add_tenant(Tenant(tenant_id="default", tier=Tier.FREE, created_at=0, max_images=0))
    return partial(world.tenants.tenants.clear)


def suspended(world: BatchesWorld) -> Callable[[], object]:
    world.tenants.add_tenant(Tenant(tenant_id="default", tier=Tier.FREE, created_at=0, state=TenantState.SUSPENDED))
    return partial(world.tenants.tenants.clear)


def paused(world: BatchesWorld) -> Callable[[], object]:
    world.pauses.pause(Pause(kind="tenant", name="default", since=0))
    return lambda: world.pauses.resume("tenant", "default", world.now)


def backlog(world: BatchesWorld) -> Callable[[], object]:
    world.fetch_queue.waiting = run_import.FETCH_BACKLOG
    return lambda: setattr(world.fetch_queue, "waiting", 0)


def overloaded(world: BatchesWorld) -> Callable[[], object]:
    require = world.load_shedder.require_capacity

    def refuse(*_: Any, **__: Any) -> None:
        raise TurnedAway("overloaded", "Later.", retry_after_seconds=60)

    world.load_shedder.require_capacity = refuse  # type: ignore[method-assign]
    return lambda: setattr(world.load_shedder, "require_capacity", require)


@pytest.mark.guards("bulk-import-quota-waits", case="quota")
@pytest.mark.guards("bulk-import-suspended-waits", case="suspension")
@pytest.mark.guards("bulk-import-paused-waits", case="pause")
@pytest.mark.guards("bulk-import-backlog-waits", case="fetches")
@pytest.mark.parametrize(
    ("hinder", "waits_for"),
    [
        (quota, WaitsFor.QUOTA),
        (suspended, WaitsFor.SUSPENSION),
        (paused, WaitsFor.PAUSE),
        (backlog, WaitsFor.FETCHES),
        (overloaded, WaitsFor.LANE),
    ],
    ids=["quota", "suspension", "pause", "fetches", "lane"],
)
def test_an_import_asks_for_nothing_while_its_tenant_might_not_and_says_why(
    hinder: Callable[[BatchesWorld], Callable[[], object]], waits_for: WaitsFor
) -> None:
    world = BatchesWorld()
    row = world.begin_import(MANIFEST)
    end_it = hinder(world)
    sweep(world, 3)
    waiting = world.imported(row)
    assert (waiting.state, waiting.waits_for, waiting.created) == (ImportState.CREATING, waits_for, 0)
    end_it()
    sweep(world)
    ended = world.imported(row)
    assert (ended.state, ended.waits_for, ended.created) == (ImportState.COMPLETED, None, 3)


def test_no_more_images_are_asked_for_than_the_fetch_queue_has_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    world = BatchesWorld()
    monkeypatch.setattr(run_import, "FETCH_BACKLOG", 2)
    row = world.begin_import(MANIFEST)
    sweep(world)
    assert (world.imported(row).created, len(world.fetch_queue.asked)) == (2, 2)


@pytest.mark.guards("bulk-import-ends-with-its-batch")
@pytest.mark.parametrize(
    ("stop", "state", "code"),
    [
        (lambda world, batch: world.cancel(batch), ImportState.CANCELLED, None),
        (lambda world, batch: world.close(batch), ImportState.FAILED, "batch_closed"),
    ],
)
@pytest.mark.parametrize("in_a_look", [False, True])
def test_a_batch_that_its_client_ends_ends_its_import(
    stop: Callable[[BatchesWorld, Any], object], state: ImportState, code: str | None, in_a_look: bool
) -> None:
    world = BatchesWorld()
    row = world.begin_import(MANIFEST)
    for _ in range(2):
        world.look_at_import(row.batch_id)
    ask = world.join_batch
    if in_a_look:

        def ends_then(*names: Any) -> bool:
            stop(world, world.batches.get(row.batch_id))
            return ask(*names)

        world.join_batch = ends_then
    else:
        stop(world, world.batches.get(row.batch_id))
    sweep(world, 2)
    ended = world.imported(row)
    assert (ended.state, ended.error_code, ended.created, world.images.rows) == (state, code, 0, {})


def test_an_image_that_fails_stops_an_import_that_is_to_stop_then(monkeypatch: pytest.MonkeyPatch) -> None:
    world = BatchesWorld()
    monkeypatch.setattr(run_import, "FETCH_BACKLOG", 1)
    row = world.begin_import(MANIFEST, on_failure=OnFailure.STOP)
    sweep(world)
    world.fetch(world.fetch_queue.asked.pop())  # there is nothing at its URL
    world.hear()
    sweep(world)
    ended = world.imported(row)
    assert (ended.state, ended.error_code, ended.created) == (ImportState.FAILED, "image_failed", 1)
    sweep(world, 10)
    assert world.batches.get(row.batch_id).counts == Counts(failed=1)


@pytest.mark.guards("bulk-import-complete-before-closed", "bulk-import-closes-its-batch")
def test_an_import_that_died_while_it_ended_is_completed_and_its_batch_ends() -> None:
    world = BatchesWorld()
    row = world.begin_import(MANIFEST)
    for _ in range(3):
        world.look_at_import(row.batch_id)
    change, world.imports.change = world.imports.change, _raise(Retryable())
    with pytest.raises(Retryable):
        world.look_at_import(row.batch_id)
    assert world.batches.get(row.batch_id).state is BatchState.CLOSED
    world.imports.change = change
    sweep(world)
    assert world.imported(row).state is ImportState.COMPLETED


def _raise(error: Exception) -> Callable[..., Any]:
    def fails(*_: Any, **__: Any) -> Any:
        raise error

    return fails


def test_of_two_looks_one_is_written() -> None:
    world = BatchesWorld()
    row = world.begin_import(MANIFEST)
    world.imports.change = _raise(Fenced(None))
    assert world.look_at_import(row.batch_id) == "later"
    world.cancel(world.batches.get(row.batch_id))
    assert world.look_at_import(row.batch_id) == "later"


@pytest.mark.guards("bulk-import-look-fails-at-first-row")
def test_a_look_that_meets_a_fault_keeps_what_it_has_done() -> None:
    world = BatchesWorld()
    row = world.begin_import(MANIFEST)
    for _ in range(2):
        world.look_at_import(row.batch_id)
    create, answers = world.images.create, iter([True])
    world.images.create = lambda image: create(image) if next(answers, False) else _raise(Retryable())()
    assert world.look_at_import(row.batch_id) == "goes_on"
    assert (world.imported(row).row, world.imported(row).created) == (1, 1)
    with pytest.raises(Retryable):
        world.look_at_import(row.batch_id)


@pytest.mark.guards("bulk-import-poison-row-passed")
@pytest.mark.parametrize("failure", [RuntimeError("a bug"), UnreadableRow("an id", "written later")])
def test_a_row_that_trips_a_bug_is_rejected_in_the_third_look_and_stops_no_other(failure: Exception) -> None:
    world = BatchesWorld()
    row = world.begin_import(MANIFEST)
    get, poisoned = world.images.get, world.ask(URLS[1], idempotency_key="k1", tags=["a", "b"]).image.image_id
    world.images.get = lambda name: get(name) if name != poisoned else _raise(failure)()
    sweep(world, 2)
    assert (world.imported(row).waits_for, world.imported(row).rejected) == (WaitsFor.RETRY, 0)
    sweep(world, 2)
    ended = world.imported(row)
    assert (ended.state, figures(ended)) == (ImportState.COMPLETED, (3, 3, 1, 2, 0))
    assert [(line["row"], line["key"]) for line in report(world, row)] == [(2, "k1")]


@pytest.mark.guards("bulk-import-report-by-content")
def test_a_report_grows_in_parts_and_a_look_that_is_done_again_adds_nothing_to_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = BatchesWorld()
    monkeypatch.setattr(run_import, "REPORT_PART_BYTES", 300)
    monkeypatch.setattr(run_import, "_ROWS_BETWEEN", 1)
    monkeypatch.setattr(run_import, "SHARE_SECONDS", -1)  # each look ends after a row
    row = world.begin_import(b"url\n" + b"s3://bucket/key\n" * 9)
    change, fails = world.imports.change, False

    def every_other(before: Import, after: Import) -> Import:
        nonlocal fails
        fails = not fails
        if fails:
            raise Retryable
        written: Import = change(before, after)
        return written

    world.imports.change = every_other
    sweep(world, 40)
    assert (world.imported(row).state, world.imported(row).rejected) == (ImportState.COMPLETED, 9)
    assert [line["row"] for line in report(world, row)] == list(range(1, 10))
    parts = world.imported(row).report
    assert len(parts) > 2 and all(part.size_bytes < 600 for part in parts)
    kept = {name for _, name in world.manifests.objects}
    assert kept == {part.name for part in parts}, "what a longer part replaces is removed"


def test_long_gaps_between_rows_are_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    world = BatchesWorld()
    monkeypatch.setattr(run_import, "_READ_BYTES", 100_000)
    monkeypatch.setattr(run_import, "_CREATED_BYTES", 66_000)
    head, first, *others = MANIFEST.splitlines(keepends=True)
    row = world.begin_import(head + first + b"\n" * 150_000 + b"".join(others) + b"\r\n" * 30_000)
    sweep(world)
    assert figures(world.imported(row)) == (3, 3, 0, 3, 0)


def test_json_lines_are_imported_like_csv() -> None:
    world = BatchesWorld()
    lines = [{"url": url, "preset": "avatar", "metadata": {"sku": number}} for number, url in enumerate(URLS)]
    manifest = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
    row = world.begin_import(manifest, ManifestFormat.JSONL)
    sweep(world)
    assert figures(world.imported(row)) == (3, 3, 0, 3, 0)
    assert {image.recipe for image in world.images.rows.values()} == {order_of(preset="avatar").recipe}
    assert {image.metadata for image in world.images.rows.values()} == {f'{{"sku":{number}}}' for number in range(3)}


@pytest.mark.guards("bulk-import-read-own-only", case="other")
@pytest.mark.parametrize("tenant_id", ["default", "other"])
def test_a_request_that_is_repeated_means_the_same_import_which_no_other_tenant_has(tenant_id: str) -> None:
    world = BatchesWorld()
    row = world.begin_import(MANIFEST, key="night-1")
    ports = world.ports(ManageImportsPorts)
    wanted = WantedImport(format=ManifestFormat.CSV, size_bytes=len(MANIFEST), batch=WantedBatch())
    world.advance(60)
    again = create_import(ports, row.caller, wanted, idempotency_key="night-1")
    assert (again.row, again.replayed) == (row, True)
    assert again.form is not None and again.form.expires_at <= row.awaited_until
    with pytest.raises(Exception, match="Idempotency-Key"):
        create_import(ports, row.caller, replace(wanted, size_bytes=9), idempotency_key="night-1")
    if tenant_id == "default":
        assert read_import(ports, tenant_id, row.batch_id)[0] == row
    else:
        with pytest.raises(Exception, match="no import with this id"):
            read_import(ports, tenant_id, row.batch_id)


@pytest.mark.guards("bulk-import-needs-fetches")
def test_a_stack_that_fetches_nothing_imports_nothing() -> None:
    with pytest.raises(Exception, match="does not fetch images"):
        BatchesWorld(fetches=False).begin_import(MANIFEST)


def test_a_tenants_present_quota_counts_and_not_that_of_the_request() -> None:
    world = BatchesWorld()
    row = world.begin_import(MANIFEST, quota=Quota(images=0))
    sweep(world)
    assert world.imported(row).waits_for is WaitsFor.QUOTA
    world.tenants.add_tenant(Tenant(tenant_id="default", tier=Tier.FREE, created_at=0))
    sweep(world)
    assert world.imported(row).state is ImportState.COMPLETED
