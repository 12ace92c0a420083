"""The emulator does what SQS does: each of its shims next to the gap that it closes in stock MiniStack."""

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from local_aws.tests.emulator_server import (
    EmulatorServer,
    create_function,
    output_of,
    refusal,
    stack,
    update_stack,
    wait_until,
)
from local_aws.tests.queues import Queue, dead_letter, queue, queue_with_dead_letters

pytest_plugins = ("local_aws.tests.emulator_fixtures",)


# receipt_handles


def test_gap_stock_calls_the_handle_of_a_deleted_message_invalid(stock: EmulatorServer) -> None:
    some = queue(stock)
    some.send("once")
    handle = some.receive()[0]["ReceiptHandle"]
    some.delete(handle)
    assert refusal(some.delete, handle=handle)[0] == "ReceiptHandleIsInvalid"


def test_deleting_a_message_once_more_succeeds(emulator: EmulatorServer) -> None:
    some = queue(emulator)
    some.send("once")
    handle = some.receive()[0]["ReceiptHandle"]
    some.delete(handle)
    some.delete(handle)
    entries = [{"Id": "again", "ReceiptHandle": handle}, {"Id": "nonsense", "ReceiptHandle": "nonsense"}]
    answer = emulator.client("sqs").delete_message_batch(QueueUrl=some.url, Entries=entries)
    assert [entry["Id"] for entry in answer["Successful"]] == ["again"]
    assert [(entry["Id"], entry["Code"]) for entry in answer["Failed"]] == [("nonsense", "ReceiptHandleIsInvalid")]


def test_an_outdated_handle_deletes_nothing_without_a_word(emulator: EmulatorServer) -> None:
    some = queue(emulator)
    some.send("kept")
    outdated = some.receive(VisibilityTimeout=0)[0]["ReceiptHandle"]
    latest = some.receive(VisibilityTimeout=0)[0]["ReceiptHandle"]
    some.delete(outdated)
    assert some.counts() == (1, 0)
    some.delete(latest)
    assert some.counts() == (0, 0)


def test_a_handle_of_another_queue_is_invalid(emulator: EmulatorServer) -> None:
    some, other = queue(emulator), queue(emulator)
    some.send("kept")
    handle = some.receive()[0]["ReceiptHandle"]
    assert refusal(other.delete, handle=handle)[0] == "ReceiptHandleIsInvalid"


def test_gap_stock_changes_the_visibility_of_a_message_that_is_not_in_flight(stock: EmulatorServer) -> None:
    some = queue(stock)
    some.send("visible")
    handle = some.receive(VisibilityTimeout=0)[0]["ReceiptHandle"]
    stock.client("sqs").change_message_visibility(QueueUrl=some.url, ReceiptHandle=handle, VisibilityTimeout=60)
    assert some.counts() == (0, 1)


def test_visibility_changes_only_while_a_message_is_in_flight(emulator: EmulatorServer) -> None:
    sqs, some = emulator.client("sqs"), queue(emulator)
    some.send("visible")
    handle = some.receive(VisibilityTimeout=60)[0]["ReceiptHandle"]
    sqs.change_message_visibility(QueueUrl=some.url, ReceiptHandle=handle, VisibilityTimeout=0)
    late = {"QueueUrl": some.url, "ReceiptHandle": handle, "VisibilityTimeout": 60}
    code, message = refusal(sqs.change_message_visibility, **late)
    assert code == "InvalidParameterValue"
    assert "Message does not exist or is not available for visibility timeout change." in message
    entries = [{"Id": "late", "ReceiptHandle": handle, "VisibilityTimeout": 60}]
    answer = sqs.change_message_visibility_batch(QueueUrl=some.url, Entries=entries)
    assert [(entry["Id"], entry["Code"]) for entry in answer["Failed"]] == [("late", "InvalidParameterValue")]
    assert some.counts() == (1, 0)


# What looking through dead letters depends on. MiniStack does it; these tests fail when it no longer does.


def test_dead_letters_that_are_taken_and_given_back_are_there_again_and_can_be_deleted(
    emulator: EmulatorServer,
) -> None:
    dead_letters = queue(emulator)
    explanation = {"explanation": {"DataType": "String", "StringValue": json.dumps({"cause": "bug"})}}
    for number in range(3):
        dead_letters.send(f"dead letter {number}", MessageGroupId="tenant", MessageAttributes=explanation)
    taken = dead_letters.receive(VisibilityTimeout=60)
    assert dead_letters.counts() == (0, 3)
    assert dead_letters.receive() == []
    first = taken[0]
    assert first["MessageAttributes"] == explanation
    assert first["Attributes"]["MessageGroupId"] == "tenant"

    entries = [
        {"Id": str(number), "ReceiptHandle": dead_letter["ReceiptHandle"], "VisibilityTimeout": 0}
        for number, dead_letter in enumerate(taken)
    ]
    answer = emulator.client("sqs").change_message_visibility_batch(QueueUrl=dead_letters.url, Entries=entries)
    assert len(answer["Successful"]) == 3
    assert dead_letters.counts() == (3, 0)
    dead_letters.delete(first["ReceiptHandle"])
    assert {dead_letter["Body"] for dead_letter in dead_letters.receive()} == {"dead letter 1", "dead letter 2"}


def test_a_dead_letter_keeps_its_id_its_time_of_sending_and_its_receives_and_names_its_source(
    emulator: EmulatorServer,
) -> None:
    source, dead_letters = queue_with_dead_letters(emulator)
    message_id = source.send("letter", MessageGroupId="tenant")
    received = source.receive(VisibilityTimeout=0)[0]
    assert source.receive() == []
    dead_letter = dead_letters.receive()[0]
    assert dead_letter["MessageId"] == message_id
    assert dead_letter["Attributes"]["SentTimestamp"] == received["Attributes"]["SentTimestamp"]
    assert dead_letter["Attributes"]["ApproximateReceiveCount"] == "2"
    assert dead_letter["Attributes"]["DeadLetterQueueSourceArn"] == source.arn
    assert dead_letter["Attributes"]["MessageGroupId"] == "tenant"


# dead_letter_redrive


def move(dead_letters: Queue, **options: Any) -> str:
    """Start a task that moves a queue's dead letters, and return its handle."""
    handle: str = dead_letters.server.client("sqs").start_message_move_task(SourceArn=dead_letters.arn, **options)[
        "TaskHandle"
    ]
    return handle


def latest_move(dead_letters: Queue) -> dict[str, Any]:
    task: dict[str, Any] = dead_letters.server.client("sqs").list_message_move_tasks(SourceArn=dead_letters.arn)[
        "Results"
    ][0]
    return task


def ended_move(dead_letters: Queue) -> dict[str, Any]:
    def ended() -> dict[str, Any] | None:
        task = latest_move(dead_letters)
        return None if task["Status"] in ("RUNNING", "CANCELLING") else task

    task: dict[str, Any] = wait_until(ended, "the task has ended")
    return task


def test_gap_stock_moves_no_dead_letters(stock: EmulatorServer) -> None:
    _, dead_letters = queue_with_dead_letters(stock)
    assert refusal(move, dead_letters=dead_letters)[0] == "InvalidAction"


def test_dead_letters_move_back_to_the_queues_that_they_came_from_as_new_messages(emulator: EmulatorServer) -> None:
    source, dead_letters = queue_with_dead_letters(emulator)
    policy = json.dumps({"deadLetterTargetArn": dead_letters.arn, "maxReceiveCount": 1})
    other = queue(emulator, RedrivePolicy=policy)
    colour = {"colour": {"DataType": "String", "StringValue": "red"}}
    first_id = dead_letter(source, "first", MessageGroupId="tenant", MessageAttributes=colour)
    dead_letter(other, "second")
    assert dead_letters.counts() == (2, 0)

    move(dead_letters)
    task = ended_move(dead_letters)
    assert task["Status"] == "COMPLETED"
    assert (task["ApproximateNumberOfMessagesMoved"], task["ApproximateNumberOfMessagesToMove"]) == (2, 2)
    assert not {"TaskHandle", "DestinationArn", "MaxNumberOfMessagesPerSecond"} & set(task)
    assert dead_letters.counts() == (0, 0)
    moved = source.receive()[0]
    assert moved["Body"] == "first"
    assert moved["MessageId"] != first_id
    assert moved["MessageAttributes"] == colour
    assert moved["Attributes"]["MessageGroupId"] == "tenant"
    assert moved["Attributes"]["ApproximateReceiveCount"] == "1"
    assert "DeadLetterQueueSourceArn" not in moved["Attributes"]
    assert [message["Body"] for message in other.receive()] == ["second"]


def test_a_dead_letter_that_was_sent_directly_moves_only_to_a_named_queue(emulator: EmulatorServer) -> None:
    source, dead_letters = queue_with_dead_letters(emulator)
    dead_letters.send("placed")
    move(dead_letters)
    task = ended_move(dead_letters)
    assert (task["Status"], task["FailureReason"]) == ("FAILED", "CouldNotDetermineMessageSource")
    assert dead_letters.counts() == (1, 0)
    move(dead_letters, DestinationArn=source.arn)
    assert ended_move(dead_letters)["DestinationArn"] == source.arn
    assert [message["Body"] for message in source.receive()] == ["placed"]


def test_dead_letters_in_flight_stay(emulator: EmulatorServer) -> None:
    source, dead_letters = queue_with_dead_letters(emulator)
    dead_letters.send("taken")
    dead_letters.receive(VisibilityTimeout=60)
    dead_letters.send("there")
    move(dead_letters, DestinationArn=source.arn)
    assert ended_move(dead_letters)["ApproximateNumberOfMessagesMoved"] == 1
    assert dead_letters.counts() == (0, 1)


def test_a_move_keeps_its_pace_runs_alone_and_can_be_cancelled(emulator: EmulatorServer) -> None:
    sqs = emulator.client("sqs")
    source, dead_letters = queue_with_dead_letters(emulator)
    for number in range(100):
        dead_letters.send(f"dead letter {number}")
    started = time.monotonic()
    handle = move(dead_letters, DestinationArn=source.arn, MaxNumberOfMessagesPerSecond=1)
    task = latest_move(dead_letters)
    assert (task["Status"], task["TaskHandle"], task["MaxNumberOfMessagesPerSecond"]) == ("RUNNING", handle, 1)
    code, message = refusal(move, dead_letters=dead_letters)
    assert code == "InvalidParameterValue"
    assert message.startswith("There is already a task running.")

    wait_until(lambda: source.counts()[0], "a dead letter was moved")
    assert sqs.cancel_message_move_task(TaskHandle=handle)["ApproximateNumberOfMessagesMoved"] >= 1
    cancelled = ended_move(dead_letters)
    assert cancelled["Status"] == "CANCELLED"
    moved = cancelled["ApproximateNumberOfMessagesMoved"]
    assert (source.counts()[0], dead_letters.counts()[0]) == (moved, 100 - moved)
    assert moved <= time.monotonic() - started + 1, "one at once, and one a second"
    assert refusal(sqs.cancel_message_move_task, TaskHandle=handle)[0] == "InvalidParameterValue"


def test_a_move_whose_destination_goes_fails_and_loses_nothing(emulator: EmulatorServer) -> None:
    _, dead_letters = queue_with_dead_letters(emulator)
    destination = queue(emulator)
    for number in range(3):
        dead_letters.send(f"dead letter {number}")
    move(dead_letters, DestinationArn=destination.arn, MaxNumberOfMessagesPerSecond=1)
    emulator.client("sqs").delete_queue(QueueUrl=destination.url)
    task = ended_move(dead_letters)
    assert (task["Status"], task["FailureReason"]) == ("FAILED", "AWS.SimpleQueueService.NonExistentQueue")
    assert dead_letters.counts()[0] == 3 - task["ApproximateNumberOfMessagesMoved"]


def test_a_move_that_cannot_be_is_refused(emulator: EmulatorServer) -> None:
    sqs = emulator.client("sqs")
    source, dead_letters = queue_with_dead_letters(emulator)
    fifo = queue(emulator, ".fifo", FifoQueue="true")

    def move_refused(**request: Any) -> tuple[str, str]:
        return refusal(sqs.start_message_move_task, **{"SourceArn": dead_letters.arn, **request})

    no_dead_letters = ("InvalidParameterValue", "Source queue must be configured as a Dead Letter Queue.")
    assert move_refused(SourceArn=source.arn) == no_dead_letters
    for parameter in ("SourceArn", "DestinationArn"):
        message = f"The resource that you specified for the {parameter} parameter doesn't exist."
        assert move_refused(**{parameter: f"{dead_letters.arn}-gone"}) == ("ResourceNotFoundException", message)
    assert move_refused(DestinationArn=dead_letters.arn)[0] == "InvalidParameterValue"
    assert move_refused(DestinationArn=fifo.arn)[0] == "InvalidParameterValue"
    for rate in (0, 501):
        assert move_refused(MaxNumberOfMessagesPerSecond=rate)[0] == "InvalidParameterValue"
    nonsense = refusal(sqs.cancel_message_move_task, TaskHandle="nonsense")
    assert nonsense == ("InvalidParameterValue", "Value for parameter TaskHandle is invalid.")
    assert sqs.list_message_move_tasks(SourceArn=dead_letters.arn).get("Results", []) == []


# queue_atomicity

# Deletes one message while another thread sends one, at the moment when the list of the remaining ones is complete but
# not yet stored.
SEND_WHILE_DELETING = """
import sys, threading
from pathlib import Path
from local_aws.corrections import apply_corrections
from local_aws.emulator import Emulator
from local_aws.ministack_internals import internals

if sys.argv[1] == "corrected":
    apply_corrections(Emulator(gateway_url="", function_python=Path("python"), data_dir=Path(sys.argv[2])))
sqs = internals("services.sqs")
actions = sqs._HANDLERS
url = actions["CreateQueue"]({"QueueName": "some"}, "")["QueueUrl"]
queue = sqs._queues[url]
actions["SendMessage"]({"MessageBody": "deleted"}, url)
handle = sqs._collect_msgs(queue, 1, 60)[0]["receipt_handle"]
senders = []

class Interrupted(list):
    def __iter__(self):
        yield from super().__iter__()
        if not senders:
            sender = threading.Thread(target=actions["SendMessage"], args=({"MessageBody": "sent"}, url))
            senders.append(sender)
            sender.start()
            sender.join(timeout=1)

queue["messages"] = Interrupted(queue["messages"])
actions["DeleteMessage"]({"ReceiptHandle": handle}, url)
for sender in senders:
    sender.join()
print([message["body"] for message in queue["messages"]])
"""


def test_gap_stock_loses_a_message_that_is_sent_while_another_is_deleted(tmp_path: Path) -> None:
    assert output_of(SEND_WHILE_DELETING, "stock", tmp_path) == "[]"


def test_a_message_that_is_sent_while_another_is_deleted_stays(tmp_path: Path) -> None:
    assert output_of(SEND_WHILE_DELETING, "corrected", tmp_path) == "['sent']"


# How functions receive messages. MiniStack does it; these tests fail when it no longer does.

WORKER = """
import os, signal, time
from pathlib import Path

def handler(event, context):
    bodies = [record["body"] for record in event["Records"]]
    if "hang" in bodies:
        time.sleep(60)
    if "die" in bodies:
        os.kill(os.getpid(), signal.SIGKILL)
    folder = Path(os.environ["FOLDER"])
    own = folder / context.aws_request_id
    own.touch()
    time.sleep(0.2)
    with (folder / "seen").open("a") as seen:
        print(len(list(folder.iterdir())) - (folder / "seen").exists(), file=seen)
    own.unlink()
    return {"batchItemFailures": []}
"""


def consume(source: Queue, folder: Path, **configuration: Any) -> str:
    """Connect a function to a queue, and return the mapping's id."""
    name = f"worker-{uuid4().hex[:8]}"
    create_function(source.server, name, WORKER, Timeout=1, Environment={"Variables": {"FOLDER": str(folder)}})
    identifier: str = source.server.client("lambda").create_event_source_mapping(
        EventSourceArn=source.arn,
        FunctionName=name,
        FunctionResponseTypes=["ReportBatchItemFailures"],
        **configuration,
    )["UUID"]
    return identifier


@pytest.mark.parametrize("end", ["hang", "die"])
def test_a_function_that_hangs_or_dies_returns_its_whole_batch(
    emulator: EmulatorServer, tmp_path: Path, end: str
) -> None:
    source = queue(emulator, VisibilityTimeout="600")
    for body in ("good", end, "good"):
        source.send(body)
    mapping = consume(source, tmp_path)
    lambda_ = emulator.client("lambda")

    def outcome() -> str:
        result: str = lambda_.get_event_source_mapping(UUID=mapping).get("LastProcessingResult", "")
        return result if result != "No records processed" else ""

    assert wait_until(outcome, "the batch was processed") == "FAILED"
    assert source.counts() == (0, 3)
    assert list(tmp_path.iterdir()) == []


def test_no_more_functions_run_at_once_than_their_mapping_allows(emulator: EmulatorServer, tmp_path: Path) -> None:
    source = queue(emulator)
    for number in range(12):
        source.send(str(number))
    consume(source, tmp_path, BatchSize=1, ScalingConfig={"MaximumConcurrency": 2})
    wait_until(lambda: source.counts() == (0, 0), "all messages are processed")
    seen = [int(line) for line in (tmp_path / "seen").read_text().split()]
    assert len(seen) == 12
    assert max(seen) <= 2


# batching_window

COUNT = """
import json, os, pathlib
def handler(event, context):
    with (pathlib.Path(os.environ["FOLDER"]) / "batches").open("a") as batches:
        print(len(event["Records"]), len(json.dumps(event)), file=batches)
    return {"batchItemFailures": []}
"""


def batches_of(source: Queue, folder: Path, bodies: Sequence[str], **configuration: Any) -> list[list[int]]:
    """Let a function with this batch size and window take these messages; return the count and bytes of each batch."""
    for body in bodies:
        source.send(body)
    name = f"counter-{uuid4().hex[:8]}"
    create_function(source.server, name, COUNT, Environment={"Variables": {"FOLDER": str(folder)}})
    source.server.client("lambda").create_event_source_mapping(
        EventSourceArn=source.arn, FunctionName=name, **configuration
    )
    wait_until(lambda: source.counts() == (0, 0), "the messages are taken")
    return [[int(number) for number in line.split()] for line in (folder / "batches").read_text().splitlines()]


def test_gap_stock_has_batches_of_ten_at_most(stock: EmulatorServer, tmp_path: Path) -> None:
    sizes = batches_of(queue(stock), tmp_path, ["a"] * 25, BatchSize=25, MaximumBatchingWindowInSeconds=60)
    assert sorted(messages for messages, _ in sizes) == [5, 10, 10]


def test_a_batch_is_whole_when_it_is_full_however_long_the_window(emulator: EmulatorServer, tmp_path: Path) -> None:
    sizes = batches_of(queue(emulator), tmp_path, ["a"] * 50, BatchSize=25, MaximumBatchingWindowInSeconds=300)
    assert [messages for messages, _ in sizes] == [25, 25]


def test_a_batch_is_whole_when_its_window_is_over(emulator: EmulatorServer, tmp_path: Path) -> None:
    sizes = batches_of(queue(emulator), tmp_path, ["a"] * 12, BatchSize=10_000, MaximumBatchingWindowInSeconds=2)
    assert [messages for messages, _ in sizes] == [12]


def test_a_batch_is_whole_before_its_event_is_larger_than_a_function_takes(
    emulator: EmulatorServer, tmp_path: Path
) -> None:
    body = "a" * 1024 * 1023
    sizes = batches_of(queue(emulator), tmp_path, [body] * 8, BatchSize=100, MaximumBatchingWindowInSeconds=2)
    assert sum(messages for messages, _ in sizes) == 8 and len(sizes) == 2
    assert all(size_bytes <= 6 * 1024 * 1024 for _, size_bytes in sizes)


# mapping_concurrency


def mapping_of_a_stack(source: Queue, folder: Path, workers: str) -> dict[str, Any]:
    """A stack's event source mapping, with a concurrency as a parameter gives it."""
    name = f"counter-{uuid4().hex[:8]}"
    create_function(source.server, name, COUNT, Environment={"Variables": {"FOLDER": str(folder)}})
    scaling = {"MaximumConcurrency": workers}
    properties = {"EventSourceArn": source.arn, "FunctionName": name, "BatchSize": 1, "ScalingConfig": scaling}
    return {"Mapping": {"Type": "AWS::Lambda::EventSourceMapping", "Properties": properties}}


def workers_of(source: Queue) -> list[Any]:
    # The raw text of the answer: the SDK would convert it to a number.
    client, answers = source.server.client("lambda"), []
    event = "after-call.lambda.ListEventSourceMappings"
    client.meta.events.register(event, lambda http_response, **_: answers.append(json.loads(http_response.content)))
    client.list_event_source_mappings(EventSourceArn=source.arn)
    return [mapping["ScalingConfig"]["MaximumConcurrency"] for mapping in answers[0]["EventSourceMappings"]]


def test_gap_stock_takes_the_concurrency_of_a_parameter_for_text(stock: EmulatorServer, tmp_path: Path) -> None:
    some = queue(stock)
    with stack(stock, mapping_of_a_stack(some, tmp_path, "2")):
        assert workers_of(some) == ["2"]  # every poll fails on it: it is compared with a number


def test_a_mappings_concurrency_may_come_from_a_parameter(emulator: EmulatorServer, tmp_path: Path) -> None:
    some = queue(emulator)
    resources = mapping_of_a_stack(some, tmp_path, "2")
    with stack(emulator, resources) as name:
        assert workers_of(some) == [2]
        some.send("one")
        wait_until(lambda: some.counts() == (0, 0), "the message is taken")
        resources["Mapping"]["Properties"]["ScalingConfig"] = {"MaximumConcurrency": "3"}
        update_stack(emulator, name, resources)
        assert workers_of(some) == [3]
