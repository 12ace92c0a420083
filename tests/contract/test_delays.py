"""The delay plane by its handlers: a client schedules, `hold_images` holds, an execution's windows release."""

from __future__ import annotations

import json
from typing import Any

import boto3
import pytest
import time_machine

from tests.contract.conftest import Aws
from tests.contract.functions import call, http_event, load, received
from tests.contract.stores import executions
from tests.support.fakes.pictures import jpeg

PHOTO = jpeg(64, 48)
NINE = "2027-03-01T09:00:00Z"
START = "2026-11-21T09:00:00Z"


def submit(aws: Aws, monkeypatch: pytest.MonkeyPatch, query: str, **headers: str) -> dict[str, Any]:
    event = http_event("POST", "/images", body=PHOTO, query=query, headers=headers)
    return call(load("submit_image", aws, monkeypatch), event)


def acknowledge(queue_url: str, event: dict[str, Any]) -> None:
    """What an event source mapping does: it deletes what was not reported as failed."""
    for record in event["Records"]:
        boto3.client("sqs").delete_message(QueueUrl=queue_url, ReceiptHandle=record["receiptHandle"])


def test_a_scheduled_image_is_held_released_and_done_in_its_time(aws: Aws, monkeypatch: pytest.MonkeyPatch) -> None:
    with time_machine.travel(START, tick=False) as clock:
        answer = submit(aws, monkeypatch, f"process_at={NINE}&variants=thumb")
        document = json.loads(answer["body"])
        assert (answer["statusCode"], document["status"]) == (202, "scheduled")
        assert document["process_at"] == "2027-03-01T09:00:00.000Z"
        assert received(aws.slow_queue_url)["Records"] == []

        held = received(aws.hold_queue_url)
        hold = load("hold_images", aws, monkeypatch)
        assert call(hold, held) == {"batchItemFailures": []}
        acknowledge(aws.hold_queue_url, held)
        (turn,) = executions(aws)
        release = load("release_images", aws, monkeypatch)
        for _ in range(4):
            clock.move_to(turn["wake_at"])
            turn = call(release, turn)
            assert turn["done"]
            clock.shift(60)
            again = received(aws.hold_queue_url)
            if not again["Records"]:
                break
            call(hold, again)
            acknowledge(aws.hold_queue_url, again)
            turn = max(executions(aws), key=lambda execution: execution["wake_at"])
        assert boto3.client("s3").list_objects_v2(Bucket=aws.holds_bucket)["KeyCount"] == 0

        worker = load("transcode_image", aws, monkeypatch)
        clock.move_to("2027-03-01T08:59:58Z")
        assert received(aws.slow_queue_url)["Records"] == [], "its lane holds it to the second"
        clock.move_to("2027-03-01T09:00:00.001Z")  # moto shows a message only after its instant
        assert call(worker, received(aws.slow_queue_url)) == {"batchItemFailures": []}
        status = call(load("read_image", aws, monkeypatch), http_event("GET", f"/images/{document['id']}/status"))
        assert json.loads(status["body"])["status"] == "done"


def test_a_delivery_before_its_time_comes_back_then(aws: Aws, monkeypatch: pytest.MonkeyPatch) -> None:
    with time_machine.travel(START, tick=False) as clock:
        submit(aws, monkeypatch, "delay=PT1M&variants=thumb")
        clock.shift(60.001)
        event = received(aws.slow_queue_url)
        worker = load("transcode_image", aws, monkeypatch)
        clock.shift(-5)  # this worker's clock is five seconds behind
        (message_id,) = [record["messageId"] for record in event["Records"]]
        assert call(worker, event) == {"batchItemFailures": [{"itemIdentifier": message_id}]}
        clock.shift(5.001)
        assert received(aws.slow_queue_url)["Records"], "it shows again when it is time, and not minutes later"


def test_a_move_answers_with_the_document_and_bad_ones_with_problems(aws: Aws, monkeypatch: pytest.MonkeyPatch) -> None:
    move = load("reschedule_image", aws, monkeypatch)

    def patch(image_id: str, body: bytes) -> dict[str, Any]:
        answer = call(move, http_event("PATCH", f"/images/{image_id}", body=body))
        return {"statusCode": answer["statusCode"], **json.loads(answer["body"])}

    with time_machine.travel(START, tick=False):
        image_id = json.loads(submit(aws, monkeypatch, "delay=P2D")["body"])["id"]
        moved = patch(image_id, json.dumps({"process_at": NINE}).encode())
        assert (moved["statusCode"], moved["status"], moved["process_at"]) == (
            200,
            "scheduled",
            "2027-03-01T09:00:00.000Z",
        )
        for body in (b"", b"[]", b"{", b'{"when": "PT1H"}', b'{"delay": 5}', b"{}"):
            refused = patch(image_id, body)
            assert (refused["statusCode"], refused["code"]) == (400, "invalid_schedule"), body
        assert patch(image_id, b'{"delay": "1h"}')["code"] == "invalid_delay"
        assert patch("0" * 26, b'{"delay": "PT1H"}')["statusCode"] == 404
        assert patch(image_id, b'{"delay": "PT0S"}')["status"] == "pending"
        again = patch(image_id, b'{"delay": "PT1H"}')
        assert (again["statusCode"], again["code"]) == (409, "not_scheduled")
