"""Messages that this stack has not sent, before the real handlers: each becomes one dead letter that says why."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Callable
from typing import Any

import boto3
import pytest
from botocore.client import BaseClient
from botocore.exceptions import EndpointConnectionError
from moto.backends import get_backend
from moto.core.models import DEFAULT_ACCOUNT_ID

from darkroom.aws.images.images_table import ImagesTable
from darkroom.domain.dead_letters.dead_letter import explanation_of, without_texts
from darkroom.domain.images.image import Image, Status, message_for
from darkroom.domain.kernel.signature import SIGNATURE
from darkroom.domain.uploads.upload_notification import upload_key
from tests.contract.conftest import MESSAGE_KEY, REGION, Aws
from tests.contract.functions import PHOTO, Functions, call, http_event, load, received, written
from tests.support.dead_letters import given_up
from tests.support.notifications import TEST_EVENT
from tests.support.notifications import event as notification


@pytest.fixture
def functions(aws: Aws, monkeypatch: pytest.MonkeyPatch) -> Functions:
    """The functions of a stack that has signed for a day."""
    secret = get_backend("secretsmanager")[DEFAULT_ACCOUNT_ID][REGION].secrets[aws.message_key]
    for version in secret.versions.values():
        version["createdate"] -= 24 * 3600
    return Functions(aws, monkeypatch)


def send(url: str, body: str, **attributes: Any) -> None:
    boto3.client("sqs").send_message(QueueUrl=url, MessageBody=body, MessageAttributes=attributes)


def dead_letters(aws: Aws, queue: str) -> list[dict[str, Any]]:
    """The dead letters in a queue: body and explanation."""
    answer = boto3.client("sqs").receive_message(
        QueueUrl=aws.dead_letter_urls[queue], MaxNumberOfMessages=10, MessageAttributeNames=["All"]
    )
    return [
        {
            "body": json.loads(message["Body"]),
            "explanation": json.loads(message["MessageAttributes"]["explanation"]["StringValue"]),
        }
        for message in answer.get("Messages", [])
    ]


def silence(monkeypatch: pytest.MonkeyPatch, service: str, operation: str) -> None:
    """Makes every client's call of that operation fail from now on."""
    make = BaseClient._make_api_call  # type: ignore[attr-defined]

    def fail(self: Any, name: str, arguments: dict[str, Any]) -> Any:
        if (self.meta.service_model.service_name, name) == (service, operation):
            raise EndpointConnectionError(endpoint_url="https://nowhere")
        return make(self, name, arguments)

    monkeypatch.setattr(BaseClient, "_make_api_call", fail)


def stored(functions: Functions) -> Image:
    answer = functions.post()
    return functions.row(json.loads(answer["body"])["id"])


# ── The lanes ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_forged_message_beside_a_genuine_one_becomes_a_dead_letter_and_reads_no_row(
    functions: Functions, log: io.StringIO, capsys: pytest.CaptureFixture[str]
) -> None:
    victim = stored(functions)
    received(functions.aws.slow_queue_url)  # its own message is elsewhere
    good = stored(functions)
    forged = message_for(victim).model_dump_json()
    send(functions.aws.slow_queue_url, forged)
    assert functions.work() == {"batchItemFailures": []}
    assert functions.row(victim.image_id) == victim
    assert functions.row(good.image_id).status is Status.DONE
    (dead_letter,) = dead_letters(functions.aws, "slow")
    assert dead_letter["body"]["rejected"] == forged
    assert dead_letter["body"]["sha256"] == hashlib.sha256(forged.encode()).hexdigest()
    assert dead_letter["explanation"]["cause"] == "unsigned"
    (line,) = [json.loads(line) for line in log.getvalue().splitlines() if '"message rejected"' in line]
    assert (line["level"], line["reason"], line["message_id"]) == (
        "ERROR",
        "unsigned",
        dead_letter["body"]["message_id"],
    )
    assert "image_id" not in line, "nothing of it is believed"
    assert '"MessagesRejected":[1.0]' in capsys.readouterr().out.replace(" ", "")


@pytest.mark.parametrize("body", ["anything", "", '{"v":1}'])
def test_a_message_that_is_not_even_one_is_rejected_at_once(functions: Functions, body: str) -> None:
    send(functions.aws.slow_queue_url, body or " ")
    assert functions.work() == {"batchItemFailures": []}
    assert [dead_letter["explanation"]["cause"] for dead_letter in dead_letters(functions.aws, "slow")] == ["unsigned"]


@pytest.mark.guards("signatures-lane-worker")
def test_a_message_that_was_copied_into_another_lane_is_rejected_there(functions: Functions) -> None:
    image = stored(functions)
    (record,) = received(functions.aws.slow_queue_url)["Records"]
    signature = record["messageAttributes"][SIGNATURE]["stringValue"]
    send(functions.aws.fast_queue_url, record["body"], signature={"DataType": "String", "StringValue": signature})
    event = received(functions.aws.fast_queue_url)
    assert call(functions.transcode_image, event) == {"batchItemFailures": []}
    assert functions.row(image.image_id) == image
    assert [dead_letter["explanation"]["cause"] for dead_letter in dead_letters(functions.aws, "fast")] == ["forged"]


@pytest.mark.guards("signatures-own-dead-letter")
def test_a_dead_letter_of_our_own_counts_when_it_is_moved_back(functions: Functions) -> None:
    image = given_up(1)
    ImagesTable(boto3.client("dynamodb"), functions.aws.images_table).create(image)
    ports = functions.sweep_due_images.ports
    ports.dead_letters.put("slow", message_for(image), without_texts(explanation_of(image)))
    sqs = boto3.client("sqs")
    (dead_letter,) = sqs.receive_message(
        QueueUrl=functions.aws.dead_letter_urls["slow"], MessageAttributeNames=["All"]
    )["Messages"]
    send(functions.aws.slow_queue_url, dead_letter["Body"], **dead_letter["MessageAttributes"])
    assert functions.work() == {"batchItemFailures": []}
    assert dead_letters(functions.aws, "slow") == [], "it is not rejected"


def test_if_its_dead_letter_cannot_be_placed_the_message_comes_again(
    functions: Functions, monkeypatch: pytest.MonkeyPatch
) -> None:
    send(functions.aws.slow_queue_url, "forged")
    event = received(functions.aws.slow_queue_url)
    silence(monkeypatch, "sqs", "SendMessage")
    assert call(functions.transcode_image, event)["batchItemFailures"]
    assert dead_letters(functions.aws, "slow") == []


@pytest.mark.guards("signatures-no-key-postpones")
@pytest.mark.parametrize(("count", "comes_back"), [(1, True), (4, True), (5, False)])
def test_while_no_key_can_be_read_a_delivery_is_postponed_and_never_ends_as_a_dead_letter(
    functions: Functions, monkeypatch: pytest.MonkeyPatch, count: int, *, comes_back: bool
) -> None:
    image = stored(functions)
    event = received(functions.aws.slow_queue_url)
    event["Records"][0]["attributes"]["ApproximateReceiveCount"] = str(count)
    silence(monkeypatch, "secretsmanager", "GetSecretValue")
    assert bool(call(functions.transcode_image, event)["batchItemFailures"]) is comes_back
    assert functions.row(image.image_id) == image, "it keeps the time of its next look"
    assert dead_letters(functions.aws, "slow") == []


@pytest.mark.guards("unsent-message-logged")
def test_while_no_key_can_be_read_an_upload_is_accepted_and_due_at_once_and_the_log_says_why(
    functions: Functions, monkeypatch: pytest.MonkeyPatch, log: io.StringIO
) -> None:
    silence(monkeypatch, "secretsmanager", "GetSecretValue")
    image = stored(functions)
    (line,) = [json.loads(line) for line in log.getvalue().splitlines() if "message not sent" in line]
    assert (line["image_id"], line["cause"].partition(":")[0]) == (image.image_id, "reading a secret")
    assert image.due_at is not None and image.due_at <= functions.submit_image.ports.clock()
    assert received(functions.aws.slow_queue_url) == {"Records": []}


def test_the_key_is_read_for_the_first_message_and_not_again(functions: Functions, log: io.StringIO) -> None:
    for _ in range(3):
        functions.post()
        functions.work()
    calls = [
        json.loads(line)["aws_calls"].get("secretsmanager:GetSecretValue", {"count": 0})["count"]
        for line in log.getvalue().splitlines()
        if '"timing"' in line
    ]
    assert calls == [1, 1, 0, 0, 0, 0], "of the API's function and of the worker"


# ── The hold queue and the upload queue ──────────────────────────────────────────────────────────────────────────────


def test_what_is_to_be_held_is_held_only_if_it_is_signed(functions: Functions) -> None:
    functions.post(query={"delay": "P2D"})
    aws = functions.aws
    (genuine,) = received(aws.hold_queue_url)["Records"]
    send(aws.hold_queue_url, genuine["body"])
    forged = received(aws.hold_queue_url)["Records"]
    assert call(functions.hold_images, {"Records": [*forged, genuine]}) == {"batchItemFailures": []}
    held = boto3.client("s3").list_objects_v2(Bucket=aws.holds_bucket)
    assert held["KeyCount"] == 1
    assert [dead_letter["body"]["rejected"] for dead_letter in dead_letters(aws, "hold")] == [genuine["body"]]


def announced(functions: Functions) -> Image:
    body = json.dumps({"bytes": len(PHOTO), "sha256": hashlib.sha256(PHOTO).hexdigest()}).encode()
    answer = call(functions.begin_upload, http_event("POST", "/uploads", body=body))
    image = functions.row(json.loads(answer["body"])["id"])
    bucket = functions.aws.uploads_bucket
    boto3.client("s3").put_object(Bucket=bucket, Key=upload_key(image.image_id), Body=PHOTO)
    return image


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (lambda image: notification(upload_key(image.image_id)), Status.PENDING),
        (lambda image: TEST_EVENT, Status.AWAITING_UPLOAD),
    ],
    ids=["an event", "its test"],
)
def test_what_s3_sends_needs_no_signature(functions: Functions, body: Callable[[Image], str], status: Status) -> None:
    image = announced(functions)
    send(functions.aws.upload_queue_url, body(image))
    assert call(functions.accept_upload, received(functions.aws.upload_queue_url)) == {"batchItemFailures": []}
    assert functions.row(image.image_id).status is status
    assert dead_letters(functions.aws, "upload") == []


@pytest.mark.guards("signatures-upload-queue")
def test_a_forged_reminder_of_an_upload_is_rejected(functions: Functions) -> None:
    image = announced(functions)
    send(functions.aws.upload_queue_url, message_for(image).model_dump_json())
    assert call(functions.accept_upload, received(functions.aws.upload_queue_url)) == {"batchItemFailures": []}
    assert functions.row(image.image_id) == image
    assert [dead_letter["explanation"]["cause"] for dead_letter in dead_letters(functions.aws, "upload")] == [
        "unsigned"
    ]


@pytest.mark.parametrize("count", [1, 5])
def test_while_no_key_can_be_read_a_notification_of_s3_is_accepted_and_a_reminder_postponed(
    functions: Functions, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    image = announced(functions)
    functions.sweep_due_images.ports.upload_queue.put(message_for(image))
    reminder = received(functions.aws.upload_queue_url)
    reminder["Records"][0]["attributes"]["ApproximateReceiveCount"] = str(count)
    silence(monkeypatch, "secretsmanager", "GetSecretValue")
    assert len(call(functions.accept_upload, reminder)["batchItemFailures"]) == (1 if count == 1 else 0)
    assert functions.row(image.image_id) == image
    send(functions.aws.upload_queue_url, notification(upload_key(image.image_id)))
    event = received(functions.aws.upload_queue_url)
    assert call(functions.accept_upload, event) == {"batchItemFailures": []}
    assert functions.row(image.image_id).status is Status.PENDING


# ── The queue of deliveries ──────────────────────────────────────────────────────────────────────────────────────────


def pinged(functions: Functions) -> tuple[str, dict[str, Any]]:
    """The path of a new webhook's deliveries, where nothing listens, and an event with the message of its ping."""
    made = call(functions.manage_webhooks, http_event("POST", "/webhooks", body=b'{"url":"http://127.0.0.1:9/"}'))
    path = f"/webhooks/{json.loads(made['body'])['id']}"
    assert call(functions.manage_webhooks, http_event("POST", f"{path}/ping"))["statusCode"] == 202
    return f"{path}/deliveries", received(functions.aws.delivery_queue_url)


def tries(functions: Functions, path: str) -> int:
    """How often the delivery of the ping was tried."""
    (delivery,) = json.loads(call(functions.manage_webhooks, http_event("GET", path))["body"])["deliveries"]
    return len(delivery["attempts"])


@pytest.mark.guards("signatures-delivery-worker")
def test_a_delivery_is_tried_only_if_its_message_is_signed(functions: Functions) -> None:
    aws = functions.aws
    path, event = pinged(functions)
    (genuine,) = event["Records"]
    send(aws.delivery_queue_url, genuine["body"])
    forged = received(aws.delivery_queue_url)
    assert call(functions.deliver_event, forged) == {"batchItemFailures": []}
    assert tries(functions, path) == 0
    assert [dead_letter["body"]["rejected"] for dead_letter in dead_letters(aws, "delivery")] == [genuine["body"]]
    assert call(functions.deliver_event, {"Records": [*forged["Records"], genuine]}) == {"batchItemFailures": []}
    assert tries(functions, path) == 1
    assert [dead_letter["explanation"]["cause"] for dead_letter in dead_letters(aws, "delivery")] == ["unsigned"]


def test_a_message_for_another_endpoint_is_rejected(functions: Functions) -> None:
    path, event = pinged(functions)
    event["Records"][0]["attributes"]["MessageGroupId"] = "we_0000000000000000"
    assert call(functions.deliver_event, event) == {"batchItemFailures": []}
    assert tries(functions, path) == 0
    assert [dead_letter["explanation"]["cause"] for dead_letter in dead_letters(functions.aws, "delivery")] == [
        "forged"
    ]


@pytest.mark.guards("signatures-endpoint-group")
def test_a_message_of_a_delivery_verifies_where_its_group_is_not_told(functions: Functions) -> None:
    path, event = pinged(functions)
    del event["Records"][0]["attributes"]["MessageGroupId"]
    assert call(functions.deliver_event, event) == {"batchItemFailures": []}
    assert tries(functions, path) == 1


@pytest.mark.guards("signatures-delivery-isolated", "signatures-delivery-retried")
def test_if_its_dead_letter_cannot_be_placed_a_message_beside_a_delivery_comes_again(
    functions: Functions, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, event = pinged(functions)
    send(functions.aws.delivery_queue_url, "forged")
    forged = received(functions.aws.delivery_queue_url)
    silence(monkeypatch, "sqs", "SendMessage")
    both = {"Records": [*forged["Records"], *event["Records"]]}
    (failed,) = call(functions.deliver_event, both)["batchItemFailures"]
    assert failed == {"itemIdentifier": forged["Records"][0]["messageId"]}
    assert tries(functions, path) == 1


def test_while_no_key_can_be_read_a_delivery_is_left_to_the_sweeper(
    functions: Functions, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, event = pinged(functions)
    with monkeypatch.context() as outage:
        silence(outage, "secretsmanager", "GetSecretValue")
        assert call(functions.deliver_event, event) == {"batchItemFailures": []}
    assert tries(functions, path) == 0
    assert dead_letters(functions.aws, "delivery") == []


def test_a_batch_of_deliveries_reads_each_secret_once(functions: Functions, log: io.StringIO) -> None:
    path, event = pinged(functions)
    call(functions.deliver_event, {"Records": event["Records"] * 5})
    assert tries(functions, path) == 1
    (timing,) = [
        json.loads(line)
        for line in log.getvalue().splitlines()
        if '"timing"' in line and '"function_name":"deliver_event"' in line
    ]
    assert timing["aws_calls"]["secretsmanager:GetSecretValue"]["count"] == 2


# ── The queues of consumers ──────────────────────────────────────────────────────────────────────────────────────────


def counted(functions: Functions) -> int:
    """How many events were counted."""
    table = boto3.client("dynamodb").scan(TableName=functions.aws.counted_events_table, Select="COUNT")
    return int(table["Count"])


def published(functions: Functions, url: str) -> dict[str, Any]:
    """A new image's event as that consumer gets it."""
    image = stored(functions)
    records = [
        record
        for record in written(functions.aws.images_table)
        if record["dynamodb"]["Keys"]["image_id"]["S"] == image.image_id
    ]
    assert call(functions.publish_events, {"Records": records}) == {"batchItemFailures": []}
    return received(url)


@pytest.mark.guards("signatures-usage-events")
def test_an_event_is_counted_only_if_it_is_signed(functions: Functions) -> None:
    aws = functions.aws
    event = published(functions, aws.usage_queue_url)
    (genuine,) = event["Records"]
    send(aws.usage_queue_url, genuine["body"].replace('-1"', '-2"'))
    forged = received(aws.usage_queue_url)
    assert call(functions.count_usage, forged) == {"batchItemFailures": []}
    assert counted(functions) == 0
    assert [dead_letter["explanation"]["cause"] for dead_letter in dead_letters(aws, "events")] == ["unsigned"]
    assert call(functions.count_usage, {"Records": [*forged["Records"], genuine]}) == {"batchItemFailures": []}
    assert counted(functions) == 1


@pytest.mark.guards("signatures-webhook-events")
def test_an_event_is_sent_to_webhooks_only_if_it_is_signed(functions: Functions) -> None:
    aws = functions.aws
    path, _ = pinged(functions)
    event = published(functions, aws.webhooks_queue_url)
    (genuine,) = event["Records"]
    send(aws.webhooks_queue_url, genuine["body"])
    forged = received(aws.webhooks_queue_url)
    assert call(functions.create_deliveries, forged) == {"batchItemFailures": []}
    assert tries(functions, path) == 0, "there is the ping alone"
    assert [dead_letter["body"]["rejected"] for dead_letter in dead_letters(aws, "events")] == [genuine["body"]]
    assert call(functions.create_deliveries, {"Records": [*forged["Records"], genuine]}) == {"batchItemFailures": []}
    assert len(received(aws.delivery_queue_url)["Records"]) == 1


@pytest.mark.guards("signatures-event-group")
def test_an_event_verifies_where_its_group_is_not_told(functions: Functions) -> None:
    event = published(functions, functions.aws.usage_queue_url)
    event["Records"][0]["attributes"].pop("MessageGroupId", None)
    assert call(functions.count_usage, event) == {"batchItemFailures": []}
    assert counted(functions) == 1


@pytest.mark.guards("signatures-unchecked-event")
@pytest.mark.parametrize("consumer", ["count_usage", "create_deliveries"])
@pytest.mark.parametrize(("service", "operation"), [("secretsmanager", "GetSecretValue"), ("sqs", "SendMessage")])
def test_an_event_that_cannot_be_checked_or_explained_comes_again(
    functions: Functions, monkeypatch: pytest.MonkeyPatch, consumer: str, service: str, operation: str
) -> None:
    url = functions.aws.usage_queue_url
    event = published(functions, url)
    send(url, "forged")
    event["Records"] += received(url)["Records"] if service == "sqs" else []
    bad = event["Records"][-1]["messageId"]
    silence(monkeypatch, service, operation)
    answer = call(getattr(functions, consumer), event)
    assert answer == {"batchItemFailures": [{"itemIdentifier": bad}]}
    assert dead_letters(functions.aws, "events") == []


# ── The key ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_key_is_replaced_while_messages_are_under_way(aws: Aws, monkeypatch: pytest.MonkeyPatch) -> None:
    functions = Functions(aws, monkeypatch)
    before = stored(functions)
    new = MESSAGE_KEY.replace("s", "t")
    boto3.client("secretsmanager").put_secret_value(SecretId=aws.message_key, SecretString=new)
    fresh = Functions(aws, monkeypatch)
    after = stored(fresh)
    assert len(received_by(fresh)) == 2
    assert {fresh.row(image.image_id).status for image in (before, after)} == {Status.DONE}
    assert dead_letters(aws, "slow") == []


def received_by(functions: Functions) -> list[Any]:
    """The messages that the slow lane's worker has received."""
    event = received(functions.aws.slow_queue_url)
    worker = load("transcode_image", functions.aws, functions._monkeypatch)
    assert call(worker, event) == {"batchItemFailures": []}
    return list(event["Records"])
