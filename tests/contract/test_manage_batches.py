"""A batch by its API: made, joined, read, listed, closed and cancelled."""

from __future__ import annotations

import json
from dataclasses import replace
from types import ModuleType
from typing import Any

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
