"""The delay plane's adapters: objects in S3, executions of Step Functions, batches of SQS and DynamoDB.

moto's Step Functions neither waits nor frees names: here stubbed answers define what an execution is.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping
from typing import Any

import boto3
import pytest
import time_machine
import yaml
from botocore.exceptions import ClientError
from botocore.stub import ANY, Stubber

from darkroom import telemetry
from darkroom.aws.images.images_table import ImagesTable
from darkroom.aws.images.queues import LaneQueues, SqsHoldQueue
from darkroom.aws.schedules.holds import HoldExecutions, HoldsBucket
from darkroom.aws.schedules.reservations_table import ReservationsTable
from darkroom.domain.images.image import Status, message_for
from darkroom.domain.kernel.errors import Retryable, Unplaceable
from darkroom.domain.kernel.instants import timestamp
from darkroom.domain.kernel.message import Message, read_message
from darkroom.domain.kernel.signature import Received
from darkroom.domain.schedules.hold import (
    MAX_BATCH_BYTES,
    Batch,
    HeldMessage,
    ReleaseWindow,
    UnreadableBatch,
    batch_key,
)
from darkroom.operations.kernel.check_message import verify
from darkroom.ports.schedules import Reservations
from darkroom_cli.operator.aws.hold_releases import HoldReleases
from tests.contract.conftest import REGION, TEMPLATE, Aws
from tests.contract.functions import ROOT, call, load, record
from tests.contract.stores import spy
from tests.support.fakes.messages import KEYS, SIGNER, keys_of, signature_in
from tests.support.fakes.secrets import FakeSecret
from tests.support.fakes.stores import FakeHolds, FakeLanes, FakeReservations
from tests.support.images import pending

MACHINE = f"arn:aws:states:{REGION}:123456789012:stateMachine:hold"
MAPPING = "00000000-0000-4000-8000-000000000000"
WAKE_AT = 1_795_251_600_000
RECEIVED_ONCE = {"ApproximateReceiveCount": "1", "SentTimestamp": "1795251600123"}


@pytest.fixture
def executions() -> Any:
    client = boto3.client("stepfunctions", region_name=REGION)
    with Stubber(client) as stubber:
        yield HoldExecutions(client, MACHINE), stubber


def started(stubber: Stubber, name: str) -> None:
    expected = {"stateMachineArn": MACHINE, "name": name, "input": ANY}
    stubber.add_response(
        "start_execution", {"executionArn": "arn:aws:states:execution", "startDate": WAKE_AT / 1000}, expected
    )


def used_up(stubber: Stubber, name: str, status: str) -> None:
    stubber.add_client_error("start_execution", "ExecutionAlreadyExists", expected_params=any_start(name))
    stubber.add_response(
        "describe_execution",
        {
            "executionArn": "arn:aws:states:execution",
            "stateMachineArn": MACHINE,
            "startDate": WAKE_AT / 1000,
            "status": status,
        },
        {"executionArn": f"arn:aws:states:{REGION}:123456789012:execution:hold:{name}"},
    )


def any_start(name: str) -> dict[str, Any]:
    return {"stateMachineArn": MACHINE, "name": name, "input": ANY}


def test_an_execution_is_told_what_to_release_and_when(executions: tuple[HoldExecutions, Stubber]) -> None:
    wake_ups, stubber = executions
    execution_input = json.dumps({"begins_at": None, "key": "key", "position": 0, "wake_at": "2026-11-21T09:00:00Z"})
    stubber.add_response(
        "start_execution",
        {"executionArn": "arn:aws:states:execution", "startDate": 0},
        {"stateMachineArn": MACHINE, "name": "hold-1", "input": execution_input},
    )
    wake_ups.set("hold-1", "key", WAKE_AT)
    stubber.assert_no_pending_responses()


@pytest.mark.parametrize("status", ["RUNNING", "SUCCEEDED"])
def test_an_execution_that_runs_or_has_succeeded_is_the_promise(
    executions: tuple[HoldExecutions, Stubber], status: str
) -> None:
    wake_ups, stubber = executions
    used_up(stubber, "hold-1", status)
    wake_ups.set("hold-1", "key", WAKE_AT)
    stubber.assert_no_pending_responses()


@pytest.mark.guards("hold-failed-execution-not-started")
@pytest.mark.parametrize("status", ["FAILED", "TIMED_OUT", "ABORTED"])
def test_a_name_that_a_failed_execution_has_used_up_is_not_taken_for_a_promise(
    executions: tuple[HoldExecutions, Stubber], status: str
) -> None:
    wake_ups, stubber = executions
    used_up(stubber, "hold-1", status)
    used_up(stubber, "hold-1-1", status)
    started(stubber, "hold-1-2")
    wake_ups.set("hold-1", "key", WAKE_AT)
    stubber.assert_no_pending_responses()


@pytest.mark.parametrize("code", ["ThrottlingException", "ExecutionLimitExceeded"])
def test_a_service_without_room_may_have_some_later(executions: tuple[HoldExecutions, Stubber], code: str) -> None:
    wake_ups, stubber = executions
    stubber.add_client_error("start_execution", code)
    with pytest.raises(Retryable):
        wake_ups.set("hold-1", "key", WAKE_AT)


def test_any_other_answer_is_a_bug(executions: tuple[HoldExecutions, Stubber]) -> None:
    wake_ups, stubber = executions
    stubber.add_client_error("start_execution", "StateMachineDoesNotExist")
    with pytest.raises(ClientError):
        wake_ups.set("hold-1", "key", WAKE_AT)


@pytest.fixture
def releases() -> Iterator[tuple[HoldReleases, Stubber, Stubber]]:
    executions = boto3.client("stepfunctions", region_name=REGION)
    functions = boto3.client("lambda", region_name=REGION)
    with Stubber(executions) as of_executions, Stubber(functions) as of_functions:
        yield HoldReleases(executions, functions, MACHINE, MAPPING), of_executions, of_functions
        of_executions.assert_no_pending_responses()
        of_functions.assert_no_pending_responses()


def test_the_batches_that_wait_are_the_running_executions_of_all_pages(
    releases: tuple[HoldReleases, Stubber, Stubber],
) -> None:
    port, stubber, _ = releases
    asked = {"stateMachineArn": MACHINE, "statusFilter": "RUNNING"}
    execution = {"stateMachineArn": MACHINE, "name": "n", "status": "RUNNING", "startDate": 0}
    stubber.add_response(
        "list_executions", {"executions": [{**execution, "executionArn": "arn:a"}], "nextToken": "more"}, asked
    )
    stubber.add_response(
        "list_executions", {"executions": [{**execution, "executionArn": "arn:b"}]}, {**asked, "nextToken": "more"}
    )
    assert list(port.waiting()) == ["arn:a", "arn:b"]


@pytest.mark.parametrize("code", ["ExecutionDoesNotExist", "ValidationException", None])
def test_a_batch_that_has_ended_is_as_good_as_stopped(
    releases: tuple[HoldReleases, Stubber, Stubber], code: str | None
) -> None:
    port, stubber, _ = releases
    expected = {"executionArn": "arn:a", "cause": ANY}
    if code is None:
        stubber.add_response("stop_execution", {"stopDate": 0}, expected)
    else:
        stubber.add_client_error("stop_execution", code, expected_params=expected)
    port.stop("arn:a")


def test_a_throttled_stop_is_tried_again_later_and_any_other_refusal_is_a_bug(
    releases: tuple[HoldReleases, Stubber, Stubber],
) -> None:
    port, stubber, _ = releases
    stubber.add_client_error("stop_execution", "ThrottlingException")
    with pytest.raises(Retryable):
        port.stop("arn:a")
    stubber.add_client_error("stop_execution", "AccessDeniedException")
    with pytest.raises(ClientError):
        port.stop("arn:a")


@pytest.mark.parametrize("code", [None, "ResourceNotFoundException"])
def test_the_consumer_that_makes_batches_is_switched_off_or_already_gone(
    releases: tuple[HoldReleases, Stubber, Stubber], code: str | None
) -> None:
    port, _, stubber = releases
    expected = {"UUID": MAPPING, "Enabled": False}
    if code is None:
        stubber.add_response("update_event_source_mapping", {}, expected)
    else:
        stubber.add_client_error("update_event_source_mapping", code, expected_params=expected)
    port.hold_no_more()


def test_a_consumer_that_is_being_changed_is_switched_off_later(
    releases: tuple[HoldReleases, Stubber, Stubber],
) -> None:
    port, _, stubber = releases
    stubber.add_client_error("update_event_source_mapping", "ResourceInUseException")
    with pytest.raises(Retryable):
        port.hold_no_more()


def test_a_wait_is_never_cut_to_an_earlier_second() -> None:
    assert timestamp(WAKE_AT) == "2026-11-21T09:00:00Z"
    with pytest.raises(ValueError, match="no whole second"):
        timestamp(WAKE_AT + 1)


def test_an_object_is_there_until_it_is_removed_and_removing_it_twice_is_no_error(aws: Aws) -> None:
    holds = HoldsBucket(boto3.client("s3"), aws.outputs_bucket)
    assert holds.get("holds/a") is None
    holds.put("holds/a", b"bytes")
    holds.put("holds/a", b"bytes")
    assert holds.get("holds/a") == b"bytes"
    holds.delete("holds/a")
    holds.delete("holds/a")
    assert holds.get("holds/a") is None


# ── The calendar ─────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("kind", ["fake", "aws"])
def test_stretches_of_a_lane_follow_each_other_and_idle_time_is_not_saved_up(kind: str, aws: Aws) -> None:
    reservations: Reservations = (
        FakeReservations() if kind == "fake" else ReservationsTable(boto3.client("dynamodb"), aws.reservations_table)
    )
    assert reservations.busy_until("slow") == 0
    assert reservations.reserve("slow", not_before=1_000, milliseconds=500) == 1_000
    assert reservations.reserve("slow", not_before=1_000, milliseconds=200) == 1_500
    assert reservations.reserve("slow", not_before=1_700, milliseconds=100) == 1_700
    assert reservations.reserve("slow", not_before=5_000, milliseconds=100) == 5_000
    assert (reservations.busy_until("slow"), reservations.busy_until("fast")) == (5_100, 0)


@pytest.mark.parametrize("kind", ["fake", "aws"])
def test_the_latest_turn_of_a_batch_is_remembered(kind: str, aws: Aws) -> None:
    reservations: Reservations = (
        FakeReservations() if kind == "fake" else ReservationsTable(boto3.client("dynamodb"), aws.reservations_table)
    )
    assert reservations.window_of("holds/a") is None
    for turn in (
        ReleaseWindow(position=100, begins_at=1_000, is_of_all_left=False),
        ReleaseWindow(position=200, begins_at=6_000, is_of_all_left=True),
    ):
        reservations.note_window("holds/a", turn)
        assert reservations.window_of("holds/a") == turn
    assert reservations.window_of("holds/b") is None


def test_turns_are_forgotten_in_time(aws: Aws) -> None:
    reservations, client = ReservationsTable(boto3.client("dynamodb"), aws.reservations_table), boto3.client("dynamodb")
    reservations.note_window("holds/a", ReleaseWindow(position=0, begins_at=1_795_251_600_123, is_of_all_left=False))
    item = client.get_item(TableName=aws.reservations_table, Key={"lane": {"S": "holds/a"}})["Item"]
    assert int(item["forget_at"]["N"]) == 1_795_251_600 + 30 * 24 * 3600
    assert TEMPLATE["Resources"]["ReservationsTable"]["Properties"]["TimeToLiveSpecification"]["AttributeName"] in item


def test_a_reservations_that_changes_between_two_writes_is_asked_again(aws: Aws) -> None:
    client = boto3.client("dynamodb")
    other = ReservationsTable(boto3.Session().client("dynamodb"), aws.reservations_table)
    came_between: list[int] = []

    def answer(arguments: dict[str, Any], call: Any) -> Any:
        if arguments["UpdateExpression"].startswith("SET") and not came_between:
            came_between.append(other.reserve("slow", not_before=1_000, milliseconds=500))
        return call(arguments)

    spy(client, "UpdateItem", answer)
    assert (
        ReservationsTable(client, aws.reservations_table).reserve("slow", not_before=1_000, milliseconds=500) == 1_500
    )
    assert came_between == [1_000]


# ── Batches ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def message(number: int, lane: str = "slow") -> Message:
    return message_for(pending(image_id=f"{number:026d}", lane=lane))


def received(url: str) -> list[str]:
    client, bodies = boto3.client("sqs"), []
    while messages := client.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages", []):
        bodies += [read_message(message["Body"]).image_id for message in messages]
    return sorted(bodies)


def test_batches_go_to_their_lane_ten_at_a_time_each_with_its_delay(aws: Aws) -> None:
    client = boto3.client("sqs")
    asked = spy(client, "SendMessageBatch", lambda arguments, call: call(arguments))
    messages = [(message(number), number % 3) for number in range(25)]
    assert LaneQueues(client, aws.queue_urls, SIGNER).send_all("slow", messages) == {}
    assert max(len(arguments["Entries"]) for arguments in asked) <= 10
    delays = {
        read_message(entry["MessageBody"]).image_id: entry["DelaySeconds"]
        for arguments in asked
        for entry in arguments["Entries"]
    }
    assert delays == {sent.image_id: delay for sent, delay in messages}
    assert {entry["MessageGroupId"] for arguments in asked for entry in arguments["Entries"]} == {"default"}


@pytest.mark.guards("batches-failed-sent-again")
def test_what_a_batch_reports_as_failed_is_sent_again_alone(aws: Aws) -> None:
    client = boto3.client("sqs")

    def fail_one(arguments: dict[str, Any], call: Any) -> Any:
        if len(arguments["Entries"]) == 1:
            return call(arguments)
        first, *others = arguments["Entries"]
        answer = call(arguments | {"Entries": others})
        return answer | {"Failed": [{"Id": first["Id"], "SenderFault": False, "Code": "InternalError"}]}

    asked = spy(client, "SendMessageBatch", fail_one)
    lanes = LaneQueues(client, aws.queue_urls, SIGNER)
    assert lanes.send_all("slow", [(message(number), 0) for number in range(4)]) == {}
    assert [len(arguments["Entries"]) for arguments in asked] == [4, 1]
    assert received(aws.queue_urls["slow"]) == [message(number).image_id for number in range(4)]


@pytest.mark.guards("bulk-signed-for-shared-queue")
def test_what_is_sent_to_another_lanes_queue_is_signed_for_that_lane(aws: Aws) -> None:
    client = boto3.client("sqs")
    lanes = LaneQueues(client, aws.queue_urls | {"bulk": aws.queue_urls["slow"]}, SIGNER)
    lanes.send(message(1, "bulk"))
    lanes.send_all("bulk", [(message(2, "bulk"), 0)])
    sent = client.receive_message(
        QueueUrl=aws.queue_urls["slow"], MaxNumberOfMessages=10, MessageAttributeNames=["All"]
    )["Messages"]
    for each in sent:
        verify(
            KEYS,
            "slow",
            Received(message_id="1", body=each["Body"], group="default", signature=signature_in(each), sent_at=1),
        )
    assert len(sent) == 2


@pytest.mark.parametrize("kind", ["lane", "hold queue"])
def test_a_queue_that_keeps_failing_says_which_messages_may_not_be_sent(aws: Aws, kind: str) -> None:
    client = boto3.client("sqs")

    def fail_the_second(arguments: dict[str, Any], call: Any) -> Any:
        if message(0).image_id in arguments["Entries"][0]["MessageBody"]:
            return call(arguments)
        return {"Failed": [{"Id": entry["Id"], "SenderFault": False, "Code": "X"} for entry in arguments["Entries"]]}

    asked = spy(client, "SendMessageBatch", fail_the_second)
    unsent = send_all(client, aws, kind, [message(number) for number in range(25)])
    assert {place: type(error) for place, error in unsent.items()} == dict.fromkeys(range(10, 25), Retryable)
    assert len(asked) == 1 + 3, "what follows is not tried: each call may take seconds"


@pytest.mark.guards("batches-refused-message-isolated")
@pytest.mark.parametrize("kind", ["lane", "hold queue"])
def test_a_message_that_sqs_refuses_keeps_none_of_its_batch_from_being_sent(aws: Aws, kind: str) -> None:
    client = boto3.client("sqs")

    def refuse_one(arguments: dict[str, Any], call: Any) -> Any:
        others = [entry for entry in arguments["Entries"] if message(3).image_id not in entry["MessageBody"]]
        refused = [entry for entry in arguments["Entries"] if entry not in others]
        answer = call(arguments | {"Entries": others})
        failed = [{"Id": entry["Id"], "SenderFault": True, "Code": "InvalidMessageContents"} for entry in refused]
        return answer | {"Failed": failed}

    spy(client, "SendMessageBatch", refuse_one)
    unsent = send_all(client, aws, kind, [message(number) for number in range(12)])
    assert {place: type(error) for place, error in unsent.items()} == {3: Unplaceable}
    assert received(aws.queue_urls["slow"]) == [message(number).image_id for number in range(12) if number != 3]


@pytest.mark.guards("batches-throttled-not-refused")
def test_a_sender_who_sends_too_much_is_not_refused(aws: Aws) -> None:
    client = boto3.client("sqs")
    throttled = {"SenderFault": True, "Code": "ThrottlingException"}
    spy(
        client,
        "SendMessageBatch",
        lambda arguments, _: {"Failed": [throttled | {"Id": entry["Id"]} for entry in arguments["Entries"]]},
    )
    assert [type(error) for error in send_all(client, aws, "lane", [message(1)]).values()] == [Retryable]


@pytest.mark.guards("signatures-no-key-batch")
def test_without_a_key_no_message_of_a_batch_is_sent_and_all_are_told(aws: Aws) -> None:
    client = boto3.client("sqs")
    asked = spy(client, "SendMessageBatch", lambda arguments, call: call(arguments))
    lanes = LaneQueues(client, aws.queue_urls, keys_of(FakeSecret(is_down=True)))
    unsent = lanes.send_all("slow", [(message(number), 0) for number in range(12)])
    assert [type(unsent[number]) for number in range(12)] == [Retryable] * 12
    assert asked == []


def send_all(client: Any, aws: Aws, kind: str, messages: list[Message]) -> Mapping[int, Exception]:
    if kind == "lane":
        return LaneQueues(client, aws.queue_urls, SIGNER).send_all("slow", [(message, 0) for message in messages])
    return SqsHoldQueue(client, aws.queue_urls["slow"], SIGNER).put_all(messages)


@pytest.mark.parametrize("kind", ["fake", "aws"])
def test_a_lane_of_another_version_has_no_queue(kind: str, aws: Aws) -> None:
    lanes = FakeLanes() if kind == "fake" else LaneQueues(boto3.client("sqs"), aws.queue_urls, SIGNER)
    with pytest.raises(KeyError):
        lanes.send_all("newer", [(message(1, "newer"), 0)])


@pytest.mark.guards("hold-object-size-bound")
@pytest.mark.parametrize("kind", ["fake", "aws"])
def test_an_object_that_is_larger_than_any_batch_is_not_read(kind: str, aws: Aws) -> None:
    holds = FakeHolds() if kind == "fake" else HoldsBucket(boto3.client("s3"), aws.outputs_bucket)
    holds.put("holds/a", bytes(MAX_BATCH_BYTES))
    assert holds.get("holds/a") == bytes(MAX_BATCH_BYTES)
    holds.put("holds/a", bytes(MAX_BATCH_BYTES + 1))
    with pytest.raises(UnreadableBatch):
        holds.get("holds/a")


def test_rows_come_by_the_hundred_and_only_those_that_there_are(aws: Aws) -> None:
    table = ImagesTable(boto3.client("dynamodb"), aws.images_table)
    images = [pending(image_id=f"{number:026d}") for number in range(3)]
    for image in images:
        table.create(image)
    ids = [f"{number:026d}" for number in range(100)]
    assert table.get_all([*ids[:99], ids[0]]) == {image.image_id: image for image in images}
    assert table.get_all([]) == {}


def test_rows_are_read_consistently(aws: Aws) -> None:
    client = boto3.client("dynamodb")
    asked = spy(client, "BatchGetItem", lambda arguments, call: call(arguments))
    ImagesTable(client, aws.images_table).get_all(["0" * 26])
    assert asked[0]["RequestItems"][aws.images_table]["ConsistentRead"]


@pytest.mark.guards("batches-unprocessed-rows-reread")
def test_rows_that_a_batch_leaves_out_are_read_again(aws: Aws) -> None:
    client = boto3.client("dynamodb")
    table = ImagesTable(client, aws.images_table)
    images = {image.image_id: image for image in (pending(image_id=f"{number:026d}") for number in range(5))}
    for image in images.values():
        table.create(image)

    def leave_out(arguments: dict[str, Any], call: Any) -> Any:
        wanted = arguments["RequestItems"][aws.images_table]
        first, rest = wanted["Keys"][:2], wanted["Keys"][2:]
        answer = call({"RequestItems": {aws.images_table: wanted | {"Keys": first}}})
        return answer | {"UnprocessedKeys": {aws.images_table: wanted | {"Keys": rest}} if rest else {}}

    asked = spy(client, "BatchGetItem", leave_out)
    assert table.get_all(list(images)) == images
    assert len(asked) == 3


def test_rows_that_are_left_out_every_time_are_not_taken_for_gone(aws: Aws) -> None:
    client = boto3.client("dynamodb")
    spy(
        client,
        "BatchGetItem",
        lambda arguments, _: {"Responses": {}, "UnprocessedKeys": arguments["RequestItems"]},
    )
    with pytest.raises(Retryable):
        ImagesTable(client, aws.images_table).get_all(["0" * 26])


# ── The handlers ─────────────────────────────────────────────────────────────────────────────────────────────────────


NOW = 1_795_251_600_000
FAR = NOW + 30 * 24 * 3600 * 1000


def event_of(bodies: Mapping[str, str]) -> dict[str, Any]:
    """An event of the hold queue with those bodies, by their message ids."""
    return {
        "Records": [
            record(
                {
                    "MessageId": message_id,
                    "ReceiptHandle": "-",
                    "Body": body,
                    "Attributes": RECEIVED_ONCE,
                    "MD5OfBody": "",
                },
                queue="HoldQueue",
            )
            for message_id, body in bodies.items()
        ]
    }


def body(number: int, process_at: int, lane: str = "slow") -> str:
    return message(number, lane).model_copy(update={"process_at": process_at}).model_dump_json()


def dead_letter(key: str) -> str:
    return json.dumps({"v": 1, "batch": key, "error": "UnreadableBatch", "cause": "", "execution": "arn"})


@pytest.mark.guards("hold-unplaceable-refused")
def test_bad_messages_are_reported_logged_and_counted_and_the_good_beside_them_are_held_and_sent(
    aws: Aws, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    damaged, altered = f"holds/x/{'0' * 40}.json.gz", f"holds/x/{'1' * 40}.json.gz"
    holds = HoldsBucket(boto3.client("s3"), aws.holds_bucket)
    holds.put(damaged, bytes.fromhex("1f8b0800000000000002ffff"))
    holds.put(altered, Batch(level="release", wake_at=NOW, entries=()).dumped())
    bad = {
        "unknown-lane-near": (body(10, NOW + 60_000, "newer"), "no lane of this version is called 'newer'"),
        "unknown-lane-far": (body(11, FAR, "newer"), "no lane of this version is called 'newer'"),
        "thirty-digits": (body(12, 10**30), "its time is more than 364 days ahead"),
        "year-11476": (body(13, 300_000_000_000_000), "its time is more than 364 days ahead"),
        "negative": (body(14, -1), "process_at"),
        "junk": ("nothing of ours", "body"),
        "damaged-batch": (dead_letter(damaged), "do not match the digest in its key"),
        "altered-batch": (dead_letter(altered), "do not match the digest in its key"),
        "key-beyond-s3": (dead_letter(f"holds/{'x' * 1100}/{'0' * 40}.json.gz"), ""),
    }
    good = {
        "near": body(1, NOW + 60_000),
        "fast": body(2, NOW + 60_000, "fast"),
        "far": body(3, FAR),
        "gone-batch": dead_letter(f"holds/x/{'2' * 40}.json.gz"),
    }
    mixed = good | {name: text for name, (text, _) in bad.items()}
    stream = io.StringIO()
    monkeypatch.setattr(telemetry.logger.registered_handler, "stream", stream)
    with time_machine.travel(NOW / 1000, tick=False):
        answer = call(load("hold_images", aws, monkeypatch), event_of(dict(sorted(mixed.items()))))
    failed = {failure["itemIdentifier"] for failure in answer["batchItemFailures"]}
    assert failed - {"key-beyond-s3"} == bad.keys() - {"key-beyond-s3"}, "moto takes keys of any length"
    errors = [line for line in map(json.loads, stream.getvalue().splitlines()) if line["level"] == "ERROR"]
    reasons = {line["message_id"]: line["reason"] for line in errors}
    assert reasons.keys() == failed
    assert all(reason in reasons[name] for name, (_, reason) in bad.items() if name in reasons)
    (measures,) = [json.loads(line) for line in capsys.readouterr().out.splitlines() if "HoldMessagesBad" in line]
    assert (measures["HoldMessagesBad"], measures["ImagesHeld"]) == ([len(failed)], [1])
    with time_machine.travel(NOW / 1000 + 61, tick=False):
        assert received(aws.queue_urls["slow"]) == [message(1).image_id]
        assert received(aws.queue_urls["fast"]) == [message(2).image_id]
    executions = boto3.client("stepfunctions").list_executions(stateMachineArn=aws.hold_state_machine)["executions"]
    assert len(executions) == 1


@pytest.mark.guards("hold-batch-bug-isolated", "hold-lane-bug-isolated")
@pytest.mark.parametrize("call_that_fails", ["PutObject", "StartExecution", "SendMessageBatch"])
def test_a_call_that_aws_refuses_costs_only_what_it_was_for(
    aws: Aws, monkeypatch: pytest.MonkeyPatch, call_that_fails: str
) -> None:
    module = load("hold_images", aws, monkeypatch)
    client = {"PutObject": module.ports.holds, "StartExecution": module.ports.wake_ups}.get(
        call_that_fails, module.ports.lanes
    )._client
    calls: list[int] = []

    def refuse_the_first(arguments: dict[str, Any], call: Any) -> Any:
        calls.append(1)
        if len(calls) == 1:
            raise ClientError({"Error": {"Code": "AccessDenied", "Message": ""}}, call_that_fails)
        return call(arguments)

    spy(client, call_that_fails, refuse_the_first)
    bodies = {
        "fast": body(1, NOW + 60_000, "fast"),
        "slow": body(2, NOW + 60_000),
        "soon": body(3, NOW + 3_600_000),
        "later": body(4, FAR),
        "latest": body(5, FAR),
    }
    with time_machine.travel(NOW / 1000, tick=False):
        answer = call(module, event_of(bodies))
    expected = {"PutObject": "soon", "StartExecution": "soon", "SendMessageBatch": "fast"}[call_that_fails]
    assert answer == {"batchItemFailures": [{"itemIdentifier": expected}]}


@pytest.mark.guards("release-unplaceable-skipped")
def test_a_release_leaves_out_what_it_cannot_place_and_says_so(
    aws: Aws, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    table = ImagesTable(boto3.client("dynamodb"), aws.images_table)
    entries = [
        HeldMessage(message=message(number, lane), process_at=NOW + 60_000)
        for number, lane in enumerate(("slow", "newer", "slow"))
    ]
    for entry in entries:
        # The row is readable: one in a lane that this version does not know would be left out as unreadable.
        image_id, process_at = entry.message.image_id, entry.process_at
        table.create(pending(image_id=image_id, status=Status.SCHEDULED, process_at=process_at, schedule=0))
    batch = Batch(level="release", wake_at=NOW, entries=tuple(entries))
    key = batch_key(batch, batch.dumped())
    HoldsBucket(boto3.client("s3"), aws.holds_bucket).put(key, batch.dumped())
    stream = io.StringIO()
    monkeypatch.setattr(telemetry.logger.registered_handler, "stream", stream)
    turn = {"key": key, "position": 0, "begins_at": None, "wake_at": timestamp(NOW)}
    with time_machine.travel(NOW / 1000, tick=False):
        answer = call(load("release_images", aws, monkeypatch), turn)
    # What an execution that began a year ago reads, by the definition of that day.
    assert set(answer) == {"key", "position", "begins_at", "wake_at", "done"}
    assert answer["done"]
    with time_machine.travel(NOW / 1000 + 61, tick=False):
        assert received(aws.queue_urls["slow"]) == [message(0).image_id, message(2).image_id]
    (error,) = [line for line in map(json.loads, stream.getvalue().splitlines()) if line["level"] == "ERROR"]
    assert (error["images"], error["image_ids"]) == (1, [message(1).image_id])
    assert '"ImagesSkipped":[1.0]' in capsys.readouterr().out.replace(" ", "")


@pytest.mark.guards("release-unreadable-final")
@pytest.mark.filterwarnings("ignore:No application metrics")
def test_a_damaged_batch_ends_its_execution_by_the_name_that_its_state_machine_knows(
    aws: Aws, monkeypatch: pytest.MonkeyPatch
) -> None:
    dumped = Batch(level="release", wake_at=NOW, entries=()).dumped()
    key = batch_key(Batch(level="release", wake_at=NOW, entries=()), dumped)
    HoldsBucket(boto3.client("s3"), aws.holds_bucket).put(key, dumped[:12] + b"\xff" * 8 + dumped[20:])
    turn = {"key": key, "position": 0, "begins_at": None, "wake_at": timestamp(NOW)}
    with pytest.raises(Exception) as raised:
        call(load("release_images", aws, monkeypatch), turn)
    machine = yaml.safe_load((ROOT / "statemachines" / "hold_batch.asl.yaml").read_text())
    first = machine["States"]["Release"]["Retry"][0]  # the first match counts
    assert (first["ErrorEquals"], first["MaxAttempts"]) == ([type(raised.value).__name__], 0)
