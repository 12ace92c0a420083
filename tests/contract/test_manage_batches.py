"""A batch by its API: made, joined, read, listed, closed and cancelled."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from types import ModuleType
from typing import Any
from urllib.parse import urlsplit

import boto3
import pytest

from darkroom.domain.images.image import Status
from darkroom.domain.kernel.errors import Retryable
from tests.contract.conftest import Aws
from tests.contract.functions import Functions, call, document, http_event, load, problem, received, written
from tests.support.faults import failing


@pytest.fixture
def manage_batches(aws: Aws, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    return load("manage_batches", aws, monkeypatch)


def asked(function: ModuleType, method: str, path: str, **wanted: Any) -> dict[str, Any]:
    return call(function, http_event(method, path, **wanted))


def test_a_batch_is_made_joined_read_listed_closed_and_cancelled(
    functions: Functions, manage_batches: ModuleType
) -> None:
    new = {"name": "catalogue", "parallelism": 2, "on_failure": "stop"}
    key = {"idempotency-key": "night-1", "content-type": "application/json"}
    made = asked(manage_batches, "POST", "/batches", body=json.dumps(new).encode(), headers=key)
    batch = document(made)
    assert made["statusCode"] == 201 and made["headers"]["Location"] == f"/batches/{batch['id']}"
    assert {name: batch[name] for name in new} == new and (batch["state"], batch["progress"]) == ("open", 0.0)
    again = asked(manage_batches, "POST", "/batches", body=json.dumps(new).encode(), headers=key)
    assert (document(again)["id"], again["headers"]["Idempotent-Replayed"]) == (batch["id"], "true")

    image = document(functions.post(query={"batch": batch["id"]}))
    row = functions.row(image["id"])
    assert (row.batch, row.awaits_turn) == (batch["id"], True)
    assert (image["batch"], image["waits_for"], image["estimated_seconds"]) == (batch["id"], "batch", None)
    problem(functions.post(query={"batch": "ba_" + "0" * 26}), 404, "unknown_batch")

    assert document(asked(manage_batches, "POST", f"/batches/{batch['id']}/close"))["state"] == "closed"
    problem(functions.post(query={"batch": batch["id"]}), 409, "batch_closed")
    cancelled = document(asked(manage_batches, "DELETE", f"/batches/{batch['id']}"))
    assert (cancelled["state"], cancelled["stopped_by"]) == ("closed", "client")
    assert document(asked(manage_batches, "GET", f"/batches/{batch['id']}")) == cancelled
    page = document(asked(manage_batches, "GET", "/batches", query="limit=1"))
    assert [listed["id"] for listed in page["batches"]] == [batch["id"]]
    problem(asked(manage_batches, "GET", f"/batches/{'ba_' + '0' * 26}"), 404, "unknown_batch")


@pytest.mark.parametrize(
    ("body", "field"),
    [(b'{"parallelism": 0}', "parallelism"), (b'{"on_failure": "cry"}', "on_failure"), (b'{"size": 1}', "size")],
)
def test_a_bad_batch_is_refused_by_field(manage_batches: ModuleType, body: bytes, field: str) -> None:
    answer = asked(manage_batches, "POST", "/batches", body=body)
    problem(answer, 400, "invalid_batch")
    assert [error["field"] for error in document(answer)["errors"]] == [field]


def test_images_of_a_batch_get_their_turns_and_its_end_is_published_once(
    aws: Aws, functions: Functions, manage_batches: ModuleType
) -> None:
    batch_id = document(asked(manage_batches, "POST", "/batches", body=b'{"parallelism": 1}'))["id"]
    images = [document(functions.post(query={"batch": batch_id, "tags": tag}))["id"] for tag in ("a", "b")]
    asked(manage_batches, "POST", f"/batches/{batch_id}/close")
    told: set[str] = set()
    for _ in range(3):
        writes = [record for record in written(aws.images_table) if record["eventID"] not in told]
        told |= {record["eventID"] for record in writes}
        assert call(functions.count_batches, {"Records": writes}) == {"batchItemFailures": []}
        shown = [document(functions.get(f"/images/{name}/status")) for name in images]
        waiting = [name for name in images if functions.row(name).awaits_turn]
        for event in map(received, (aws.fast_queue_url, aws.slow_queue_url)):
            if event["Records"]:
                call(functions.transcode_image, event)
        assert sum(functions.row(name).status is Status.PENDING for name in images) == len(waiting), "one at a time"
        assert [each["id"] for each in shown if "waits_for" in each] == waiting
    assert call(functions.sweep_due_bulk, {})["complete"] is True
    ended = document(asked(manage_batches, "GET", f"/batches/{batch_id}"))
    assert (ended["state"], ended["images"]["done"], ended["progress"]) == ("completed", 2, 1.0)

    stream = {"Records": [record for record in written(aws.batches_table) if is_of_a_batch(record)]}
    received(aws.webhooks_queue_url)
    assert call(functions.publish_events, stream) == {"batchItemFailures": []}
    bodies = [json.loads(record["body"]) for record in received(aws.webhooks_queue_url)["Records"]]
    assert [(body["type"], body["subject"], body["data"]["images"]["done"]) for body in bodies] == [
        ("batch.completed", batch_id, 2)
    ]


def test_variants_join_a_batch_and_wait_for_their_turn_there(
    aws: Aws, functions: Functions, manage_batches: ModuleType
) -> None:
    image_id = document(functions.post())["id"]
    call(functions.transcode_image, received(aws.slow_queue_url))
    batch_id = document(asked(manage_batches, "POST", "/batches", body=b'{"parallelism": 1}'))["id"]
    wanted = {"recipe": {"variants": [{"name": "hero", "width": 9, "height": 9}]}, "batch": batch_id}
    added = asked(functions.submit_image, "POST", f"/images/{image_id}/variants", body=json.dumps(wanted).encode())
    shown = document(added)
    assert (shown["status"], "batch" in shown, "waits_for" in shown) == ("done", False, False)
    assert (shown["work"]["batch"], shown["work"]["waits_for"], shown["work"]["status"]) == (
        batch_id,
        "batch",
        "pending",
    )
    assert received(aws.slow_queue_url)["Records"] == []
    call(functions.count_batches, {"Records": written(aws.images_table)})
    call(functions.transcode_image, received(aws.slow_queue_url))
    asked(manage_batches, "POST", f"/batches/{batch_id}/close")
    call(functions.count_batches, {"Records": written(aws.images_table)})
    ended = document(asked(manage_batches, "GET", f"/batches/{batch_id}"))
    assert (ended["state"], ended["images"]["done"]) == ("completed", 1)
    assert "hero" in {variant.name for variant in functions.row(image_id).variants}


def test_an_import_is_made_read_and_run_and_its_batch_names_it(
    aws: Aws, functions: Functions, manage_batches: ModuleType
) -> None:
    manifest = b"url,key\nhttps://photos.example/1.jpg,one\nhttps://photos.example/2.jpg,\ns3://bucket/key,three\n"
    wanted = {"format": "csv", "bytes": len(manifest), "name": "spring", "preset": "avatar"}
    key = {"idempotency-key": "spring", "content-type": "application/json"}
    made = asked(manage_batches, "POST", "/imports", body=json.dumps(wanted).encode(), headers=key)
    begun = document(made)
    assert made["statusCode"] == 201 and made["headers"]["Location"] == f"/imports/{begun['id']}"
    assert (begun["state"], begun["name"], begun["progress"]) == ("awaiting_manifest", "spring", 0.0)
    again = asked(manage_batches, "POST", "/imports", body=json.dumps(wanted).encode(), headers=key)
    assert (document(again)["id"], again["headers"]["Idempotent-Replayed"]) == (begun["id"], "true")
    other = asked(manage_batches, "POST", "/imports", body=json.dumps(wanted | {"bytes": 1}).encode(), headers=key)
    problem(other, 422, "idempotency_key_reused")
    same_key = asked(manage_batches, "POST", "/batches", body=b"{}", headers=key)
    assert document(same_key)["id"] != begun["id"], "keys of batches are others"

    s3, fields = boto3.client("s3"), begun["upload"]["fields"]
    s3.put_object(Bucket=aws.uploads_bucket, Key=fields["key"], Body=manifest)
    with at_a_later_time(functions.sweep_due_bulk):
        assert call(functions.sweep_due_bulk, {})["outcomes"]["ended"] == 1
    ended = document(asked(manage_batches, "GET", f"/imports/{begun['id']}"))
    assert {name: ended[name] for name in ("state", "rows", "valid", "rejected", "created", "already_there")} == {
        "state": "completed",
        "rows": 3,
        "valid": 2,
        "rejected": 1,
        "created": 2,
        "already_there": 0,
    }
    report = urlsplit(ended["report"][0])
    line = s3.get_object(Bucket=aws.uploads_bucket, Key=report.path.lstrip("/"))["Body"].read()
    assert json.loads(line)["key"] == "three" and "X-Amz-Signature" in report.query
    asked_for = [json.loads(record["body"])["image_id"] for record in received(aws.fetch_queue_url)["Records"]]
    rows = [functions.row(image_id) for image_id in asked_for]
    assert {(row.batch, row.preset, row.status) for row in rows} == {(begun["id"], "avatar", Status.FETCHING)}
    batch = document(asked(manage_batches, "GET", f"/batches/{begun['id']}"))
    assert (batch["state"], batch["links"]["import"]) == ("closed", f"/imports/{begun['id']}")


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b'{"format": "xml", "bytes": 1}', 400, "invalid_import"),
        (b'{"format": "csv"}', 400, "invalid_import"),
        (b'{"format": "csv", "bytes": 100000001}', 413, "upload_too_large"),
        (b'{"format": "csv", "bytes": 1, "preset": "none"}', 400, "unknown_preset"),
    ],
)
def test_a_bad_import_is_refused(manage_batches: ModuleType, body: bytes, status: int, code: str) -> None:
    problem(asked(manage_batches, "POST", "/imports", body=body), status, code)


def test_an_image_that_is_fetched_for_a_request_joins_its_batch(
    functions: Functions, manage_batches: ModuleType
) -> None:
    batch = document(asked(manage_batches, "POST", "/batches", body=b"{}"))["id"]
    body = json.dumps({"url": "https://photos.example/1.jpg", "batch": batch}).encode()
    image = document(functions.post(body=body, content_type="application/json"))
    assert functions.row(image["id"]).batch == batch


@contextmanager
def at_a_later_time(function: Any, seconds: int = 120) -> Iterator[None]:
    """The sweep's clock is ahead: a manifest is looked for every half minute."""
    ports, imports = function.ports, function.ports.imports
    later = lambda: int(time.time() * 1000) + seconds * 1000  # noqa: E731
    function.ports = replace(ports, clock=later, imports=replace(imports, clock=later))
    yield
    function.ports = ports


@pytest.mark.guards("bulk-unretryable-left-to-the-look")
def test_what_no_repetition_counts_holds_up_no_stream_and_what_one_may_count_comes_again(
    aws: Aws, functions: Functions, manage_batches: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch_id = document(asked(manage_batches, "POST", "/batches", body=b"{}"))["id"]
    bad, _ = (document(functions.post(query={"batch": batch_id, "tags": tag}))["id"] for tag in ("a", "b"))
    stream = {"Records": written(aws.images_table)}
    counting, dynamodb = functions.count_batches, boto3.client("dynamodb")
    down = failing(counting.ports.batches, "get", Retryable("throttled"))
    with monkeypatch.context() as outage:
        outage.setattr(counting, "ports", replace(counting.ports, batches=down))
        first = stream["Records"][0]["dynamodb"]["SequenceNumber"]
        assert call(counting, stream) == {"batchItemFailures": [{"itemIdentifier": first}]}
    (item,) = (item for item in dynamodb.scan(TableName=aws.batches_table)["Items"] if item["part"]["S"] == bad)
    dynamodb.put_item(TableName=aws.batches_table, Item={**item, "state": {"S": "invented later"}})
    for _ in range(2):
        assert call(counting, stream) == {"batchItemFailures": []}
        assert document(asked(manage_batches, "GET", f"/batches/{batch_id}"))["images"]["working"] == 1


def is_of_a_batch(record: dict[str, Any]) -> bool:
    """What the stream's filter lets through, and more."""
    return bool(record["dynamodb"]["Keys"]["part"]["S"] == "batch")
