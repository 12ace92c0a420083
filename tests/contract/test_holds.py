"""The delay plane's adapters: objects in S3, executions of Step Functions, batches of SQS and DynamoDB.

moto's Step Functions neither waits nor knows when a name is free: what an execution is, is said here by its answers.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from botocore.stub import ANY, Stubber

from darkroom.aws.calendar import ReleaseCalendar
from darkroom.aws.holds import HoldExecutions, HoldsBucket, timestamp
from darkroom.aws.images_table import ImagesTable
from darkroom.aws.queues import LaneQueues, SqsHoldQueue
from darkroom.domain.errors import Retryable
from darkroom.domain.hold import Turn
from darkroom.domain.image import message_for
from darkroom.domain.message import Message, read_message
from darkroom.ports import Calendar
from tests.contract.conftest import REGION, TEMPLATE, Aws
from tests.fakes.stores import FakeCalendar
from tests.unit.test_image import pending

MACHINE = f"arn:aws:states:{REGION}:123456789012:stateMachine:hold"
WAKE_AT = 1_795_251_600_000


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
    alarms, stubber = executions
    told = json.dumps({"begins_at": None, "key": "key", "position": 0, "wake_at": "2026-11-21T09:00:00Z"})
    stubber.add_response(
        "start_execution",
        {"executionArn": "arn:aws:states:execution", "startDate": 0},
        {"stateMachineArn": MACHINE, "name": "hold-1", "input": told},
    )
    alarms.set("hold-1", "key", WAKE_AT)
    stubber.assert_no_pending_responses()


@pytest.mark.parametrize("status", ["RUNNING", "SUCCEEDED"])
def test_an_execution_that_runs_or_has_succeeded_is_the_promise(
    executions: tuple[HoldExecutions, Stubber], status: str
) -> None:
    alarms, stubber = executions
    used_up(stubber, "hold-1", status)
    alarms.set("hold-1", "key", WAKE_AT)
    stubber.assert_no_pending_responses()


@pytest.mark.parametrize("status", ["FAILED", "TIMED_OUT", "ABORTED"])
def test_a_name_that_a_failed_execution_has_used_up_is_not_taken_for_a_promise(
    executions: tuple[HoldExecutions, Stubber], status: str
) -> None:
    alarms, stubber = executions
    used_up(stubber, "hold-1", status)
    used_up(stubber, "hold-1-1", status)
    started(stubber, "hold-1-2")
    alarms.set("hold-1", "key", WAKE_AT)
    stubber.assert_no_pending_responses()


@pytest.mark.parametrize("code", ["ThrottlingException", "ExecutionLimitExceeded"])
def test_a_service_without_room_may_have_some_later(executions: tuple[HoldExecutions, Stubber], code: str) -> None:
    alarms, stubber = executions
    stubber.add_client_error("start_execution", code)
    with pytest.raises(Retryable):
        alarms.set("hold-1", "key", WAKE_AT)


def test_any_other_answer_is_a_bug(executions: tuple[HoldExecutions, Stubber]) -> None:
    alarms, stubber = executions
    stubber.add_client_error("start_execution", "StateMachineDoesNotExist")
    with pytest.raises(ClientError):
        alarms.set("hold-1", "key", WAKE_AT)


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
    calendar: Calendar = (
        FakeCalendar() if kind == "fake" else ReleaseCalendar(boto3.client("dynamodb"), aws.calendar_table)
    )
    assert calendar.busy_until("slow") == 0
    assert calendar.reserve("slow", not_before=1_000, milliseconds=500) == 1_000
    assert calendar.reserve("slow", not_before=1_000, milliseconds=200) == 1_500
    assert calendar.reserve("slow", not_before=1_700, milliseconds=100) == 1_700
    assert calendar.reserve("slow", not_before=5_000, milliseconds=100) == 5_000
    assert (calendar.busy_until("slow"), calendar.busy_until("fast")) == (5_100, 0)


@pytest.mark.parametrize("kind", ["fake", "aws"])
def test_the_latest_turn_of_a_batch_is_remembered(kind: str, aws: Aws) -> None:
    calendar: Calendar = (
        FakeCalendar() if kind == "fake" else ReleaseCalendar(boto3.client("dynamodb"), aws.calendar_table)
    )
    assert calendar.turn_of("holds/a") is None
    for turn in (
        Turn(position=100, begins_at=1_000, is_of_all_left=False),
        Turn(position=200, begins_at=6_000, is_of_all_left=True),
    ):
        calendar.note_turn("holds/a", turn)
        assert calendar.turn_of("holds/a") == turn
    assert calendar.turn_of("holds/b") is None


def test_turns_are_forgotten_in_time(aws: Aws) -> None:
    calendar, client = ReleaseCalendar(boto3.client("dynamodb"), aws.calendar_table), boto3.client("dynamodb")
    calendar.note_turn("holds/a", Turn(position=0, begins_at=1_795_251_600_123, is_of_all_left=False))
    item = client.get_item(TableName=aws.calendar_table, Key={"lane": {"S": "holds/a"}})["Item"]
    assert int(item["forget_at"]["N"]) == 1_795_251_600 + 30 * 24 * 3600
    assert TEMPLATE["Resources"]["CalendarTable"]["Properties"]["TimeToLiveSpecification"]["AttributeName"] in item


def test_a_calendar_that_changes_between_two_writes_is_asked_again(aws: Aws) -> None:
    client = boto3.client("dynamodb")
    other = ReleaseCalendar(boto3.client("dynamodb"), aws.calendar_table)
    came_between: list[int] = []

    def answer(arguments: dict[str, Any], call: Any) -> Any:
        if arguments["UpdateExpression"].startswith("SET") and not came_between:
            came_between.append(other.reserve("slow", not_before=1_000, milliseconds=500))
        return call(arguments)

    spy(client, "UpdateItem", answer)
    assert ReleaseCalendar(client, aws.calendar_table).reserve("slow", not_before=1_000, milliseconds=500) == 1_500
    assert came_between == [1_000]


# ── Batches ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def message(number: int, lane: str = "slow") -> Message:
    return message_for(pending(image_id=f"{number:026d}", lane=lane))


def spy(client: Any, operation: str, answer: Callable[[dict[str, Any], Any], Any]) -> list[dict[str, Any]]:
    """Lets `answer` look at, and change, what each call of `operation` asks and is answered."""
    call, asked = client._make_api_call, []

    def make_api_call(name: str, arguments: dict[str, Any]) -> Any:
        if name != operation:
            return call(name, arguments)
        asked.append(arguments)
        return answer(arguments, lambda changed: call(name, changed))

    client._make_api_call = make_api_call
    return asked


def received(url: str) -> list[str]:
    client, bodies = boto3.client("sqs"), []
    while messages := client.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages", []):
        bodies += [read_message(one["Body"]).image_id for one in messages]
    return sorted(bodies)


def test_batches_go_to_their_lanes_ten_at_a_time_each_with_its_delay(aws: Aws) -> None:
    client = boto3.client("sqs")
    asked = spy(client, "SendMessageBatch", lambda arguments, call: call(arguments))
    parcels = [(message(number, "fast" if number % 2 else "slow"), number % 3) for number in range(25)]
    assert LaneQueues(client, aws.queue_urls).send_all(parcels) == 25
    assert max(len(arguments["Entries"]) for arguments in asked) <= 10
    delays = {
        read_message(entry["MessageBody"]).image_id: entry["DelaySeconds"]
        for arguments in asked
        for entry in arguments["Entries"]
    }
    assert delays == {one.image_id: delay for one, delay in parcels}
    assert {entry["MessageGroupId"] for arguments in asked for entry in arguments["Entries"]} == {"default"}


def test_what_a_batch_reports_as_failed_is_sent_again_alone(aws: Aws) -> None:
    client = boto3.client("sqs")

    def fail_one(arguments: dict[str, Any], call: Any) -> Any:
        if len(arguments["Entries"]) == 1:
            return call(arguments)
        one, *others = arguments["Entries"]
        answer = call(arguments | {"Entries": others})
        return answer | {"Failed": [{"Id": one["Id"], "SenderFault": False, "Code": "InternalError"}]}

    asked = spy(client, "SendMessageBatch", fail_one)
    assert LaneQueues(client, aws.queue_urls).send_all([(message(number), 0) for number in range(4)]) == 4
    assert [len(arguments["Entries"]) for arguments in asked] == [4, 1]
    assert received(aws.queue_urls["slow"]) == [message(number).image_id for number in range(4)]


def test_a_batch_that_keeps_failing_says_how_many_before_it_are_sent(aws: Aws) -> None:
    client = boto3.client("sqs")

    def fail_the_second(arguments: dict[str, Any], call: Any) -> Any:
        if message(0).image_id in arguments["Entries"][0]["MessageBody"]:
            return call(arguments)
        return {"Failed": [{"Id": entry["Id"], "SenderFault": False, "Code": "X"} for entry in arguments["Entries"]]}

    spy(client, "SendMessageBatch", fail_the_second)
    assert LaneQueues(client, aws.queue_urls).send_all([(message(number), 0) for number in range(25)]) == 10
    assert SqsHoldQueue(client, aws.queue_urls["slow"]).put_all([message(number) for number in range(25)]) == 10


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
