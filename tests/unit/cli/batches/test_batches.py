"""`darkroom batches` and `upload --batch`, by requests to the real function over the fakes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlencode

import pytest

from darkroom.domain.bulk.batches import Batch, OnFailure
from darkroom.operations.bulk.manage_imports import ManageImportsPorts
from darkroom.operations.tenants.take_token import TakeTokenPorts
from darkroom.wiring.bulk import manage_batches
from darkroom_client import Darkroom, NotFinished, Refused
from tests.support.fakes.batches import BatchesWorld
from tests.support.fakes.load_shedding import FakeTokenBuckets
from tests.support.fakes.pictures import jpeg
from tests.support.webhooks import Api
from tests.unit.cli.conftest import Run
from tests.unit.cli.fake_api import FakeApi, Reply, Seen, fields_of, problem, s3_error

BODY = jpeg()
"""Nobody decodes it."""


@pytest.fixture
def world(api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> BatchesWorld:
    """The batches behind the API. Each look at one comes after everything that waited for a worker has ended, as the
    bytes of `world.fails` say."""
    world = BatchesWorld()
    rate_limit = TakeTokenPorts(token_buckets=FakeTokenBuckets(), clock=world.clock)
    monkeypatch.setenv("ACCESS", "keys")
    monkeypatch.setattr(manage_batches, "wire", lambda: (world.ports(ManageImportsPorts), rate_limit))
    function = Api(cast(Any, world), "manage_batches")

    def answer(seen: Seen) -> Reply:
        path = f"{seen.path}?{urlencode(seen.query, doseq=True)}" if seen.query else seen.path
        kind = seen.headers.get("content-type", "")
        told = function(seen.method, path, seen.body.decode() or None, tenant="default", content_type=kind)
        return Reply(status=told.status, body=told.body, headers=told.headers)

    def of_imports(seen: Seen) -> Reply:
        if seen.path == "/imported":
            fields = fields_of(seen)
            world.manifests.objects[fields["key"].decode(), "manifest"] = fields["file"]
            return Reply(status=204, body=b"")
        if seen.method == "GET" and seen.path.startswith("/imported/"):
            _, _, batch_id, name = seen.path.split("/")
            return Reply(body=world.manifests.report(batch_id, name))
        if seen.method == "GET":
            world.advance(60)
            world.sweep_bulk()
        world.requests += 1
        return answer(seen)

    world.manifests.url = api.url
    api.batches, api.imports = answer, of_imports
    return world


def filled(world: BatchesWorld, *fails: bool, **wanted: Any) -> Batch:
    """A batch with so many images, which a worker has ended, or which failed."""
    batch = world.open(**wanted)
    for image_fails in fails:
        world.submit(BODY, batch=batch.batch_id)
        world.hear()
        for message in world.lanes.sent:
            world.develop(message, fails=image_fails)
        world.lanes.sent.clear()
    world.hear()
    return batch


def test_a_new_batchs_id_is_all_that_is_on_standard_output_and_images_join_it(
    run: Run, api: FakeApi, world: BatchesWorld, tmp_path: Path
) -> None:
    made = run("batches", "create", "--name", "shop", "--parallelism", "2", "--on-failure", "stop")
    batch_id = made.stdout.strip()
    assert (made.exit_code, f"--batch {batch_id}" in made.stderr) == (0, True)
    batch = world.batches.get(batch_id)
    assert batch is not None and (batch.name, batch.parallelism, batch.on_failure) == ("shop", 2, OnFailure.STOP)
    assert api.posts[0].headers["idempotency-key"].startswith("batch-")
    (photo := tmp_path / "a.jpg").write_bytes(BODY)
    assert run("upload", photo, "--batch", batch_id).exit_code == 0
    assert api.posts[-1].query == {"batch": [batch_id]}


def test_one_refusal_of_a_closed_batch_ends_the_upload(run: Run, api: FakeApi, tmp_path: Path) -> None:
    for number in range(5):
        (tmp_path / f"{number}.jpg").write_bytes(BODY)
    api.refuses[BODY] = problem(409, "batch_closed", "This batch takes no more images.").body
    result = run("upload", tmp_path, "--batch", "ba_0" + "1" * 25, "--concurrency", "1")
    assert (result.exit_code, "not accepted" in result.stderr) == (1, False)
    assert "error: This batch takes no more images." in result.stderr


def test_a_batch_is_shown_listed_and_closed(run: Run, world: BatchesWorld) -> None:
    batch = filled(world, False, True, name="a\x1bb")
    world.open(name="empty")
    world.submit(BODY, batch=batch.batch_id)
    world.hear()
    shown = run("batches", "show", batch.batch_id).stdout
    assert "█" * 16 + "░" * 8 + "  66 %" in shown and "1 working, 1 done, 1 failed" in shown and "\x1b" not in shown
    assert f"./darkroom batches close {batch.batch_id}" in shown
    rows = run("batches", "ls").stdout.splitlines()
    assert [("  66 %" in row, "no images" in row) for row in rows[1:]] == [(False, True), (True, False)]
    assert len(json.loads(run("batches", "ls", "--limit", "1", "--json").stdout)["batches"]) == 1
    closed = run("batches", "close", batch.batch_id)
    assert closed.exit_code == 0 and "batches close" not in closed.stdout
    assert world.batch(batch).closed_at is not None


@pytest.mark.parametrize(
    ("fails", "wanted", "cancelled", "ends", "exit_code"),
    [
        ((False, False), {}, False, "completed", 0),
        ((), {}, False, "completed", 0),
        ((False, True), {}, False, "completed", 1),
        ((True,), {"on_failure": OnFailure.STOP}, False, "failed", 1),
        ((False,), {}, True, "cancelled", 1),
    ],
)
def test_a_wait_ends_as_the_batch_does(
    run: Run,
    api: FakeApi,
    world: BatchesWorld,
    *,
    fails: tuple[bool, ...],
    wanted: dict[str, Any],
    cancelled: bool,
    ends: str,
    exit_code: int,
) -> None:
    batch = filled(world, *fails, **wanted)
    looks, answer = 0, api.batches

    def look(seen: Seen) -> Reply:
        nonlocal looks
        looks += 1
        if looks == 2:
            world.cancel(batch) if cancelled else world.close(batch)
            world.sweep_bulk()
        assert answer is not None
        return answer(seen)

    api.batches = look
    result = run("batches", "wait", batch.batch_id, "--json")
    assert (json.loads(result.stdout)["state"], result.exit_code) == (ends, exit_code)
    if OnFailure.STOP not in wanted.values():
        assert f"It ends once it is closed:  ./darkroom batches close {batch.batch_id}" in result.stderr


def test_a_wait_ends_at_its_timeout(api: FakeApi, world: BatchesWorld) -> None:
    batch = world.open()
    times = iter(range(100))
    with Darkroom(api.url, pause=lambda _: None) as darkroom, pytest.raises(NotFinished, match="still open after 3 s"):
        darkroom.wait_for_batch(batch.batch_id, timeout_seconds=3, clock=lambda: next(times))


@pytest.mark.guards("cli-batch-cancel-consent")
def test_nothing_is_cancelled_before_a_yes(run: Run, world: BatchesWorld) -> None:
    batch = world.open(parallelism=1)
    for _ in range(3):
        world.submit(BODY, batch=batch.batch_id)
    world.hear()
    asked = run("batches", "cancel", batch.batch_id)
    assert (asked.exit_code, world.batch(batch).stops) == (0, None)
    assert "(2 wait for their turn) would be deleted. Add --yes" in " ".join(asked.stdout.split())
    done = run("batches", "cancel", batch.batch_id, "--yes")
    assert "stopped      by you" in done.stdout and world.batch(batch).stops is not None


def test_a_list_goes_on_from_page_to_page(api: FakeApi, world: BatchesWorld) -> None:
    for number in range(25):
        world.open(name=f"{number}")
        world.advance(1)
    with Darkroom(api.url) as darkroom:
        assert [batch["name"] for batch in darkroom.batches()] == [f"{number}" for number in reversed(range(25))]


@pytest.mark.guards("cli-batch-answer-checked", "cli-batch-id-matches")
def test_a_server_that_says_something_else_is_not_believed(api: FakeApi, world: BatchesWorld) -> None:
    batch, other = world.open(), world.open()
    with Darkroom(api.url) as darkroom:
        document = darkroom.batch(batch.batch_id)
        for lie in ({**document, "id": other.batch_id}, {**document, "id": "; rm -rf /"}, {"state": "open"}):
            api.faults["GET"].append(Reply(body=lie))
            with pytest.raises(Refused, match="a Darkroom API"):
                darkroom.batch(batch.batch_id)
        api.faults["GET"].append(Reply(body={**document, "new": 1}))
        assert darkroom.batch(batch.batch_id)["id"] == batch.batch_id


@pytest.mark.parametrize("arguments", [("batches", "show", "../images"), ("upload", "a.jpg", "--batch", "ba_1")])
def test_what_is_no_id_is_not_sent(run: Run, api: FakeApi, arguments: tuple[str, ...]) -> None:
    assert (run(*arguments).exit_code, api.requests) == (2, [])


def test_a_manifest_is_uploaded_and_followed_and_its_rejected_rows_are_named(
    run: Run, api: FakeApi, world: BatchesWorld, tmp_path: Path
) -> None:
    (manifest := tmp_path / "m.csv").write_bytes(b"url,key\nhttps://photos.example/1.jpg,a\ns3://bucket/k,\x1bb\n")
    result = run("import", manifest, "--name", "spring", "--preset", "avatar")
    import_id = result.stdout.strip()
    assert result.exit_code == 1
    assert "completed: 2 rows, 1 images created, 0 already there, 1 rejected" in result.stderr
    assert "row 2" in result.stderr and "presign it" in result.stderr and "\x1b" not in result.stderr
    batch = world.batches.get(import_id)
    assert batch is not None and batch.name == "spring"
    assert f"GET /imports/{import_id}" in run("batches", "show", import_id).stdout
    again = run("import", manifest, "--json", "--idempotency-key", "k", "--preset", "avatar")
    document = json.loads(again.stdout)
    assert (document["already_there"], [row["row"] for row in document["rejected_rows"]]) == (1, [2])


def test_what_the_store_and_the_import_refuse_is_said(
    run: Run, api: FakeApi, world: BatchesWorld, tmp_path: Path
) -> None:
    (manifest := tmp_path / "m.jsonl").write_bytes(b"url\n")
    result = run("import", manifest)
    assert (result.exit_code, "not JSON Lines" in result.stderr) == (1, True)
    api.imports, answer = lambda seen: s3_error(403, "AccessDenied"), api.imports
    assert run("import", manifest).exit_code == 1
    api.imports = answer
    sent = run("import", manifest, "--no-wait")
    assert (sent.exit_code, "awaiting_manifest" in sent.stderr) == (0, True)
