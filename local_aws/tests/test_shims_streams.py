"""Streams reach functions as Lambda passes them on: each shim next to the gap that it closes in stock MiniStack."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from local_aws.tests.batch_reports import not_understood
from local_aws.tests.emulator_server import (
    EmulatorServer,
    create_function,
    function_resource,
    output_of,
    stack,
    update_stack,
    wait_until,
)
from local_aws.tests.metrics import statistic
from local_aws.tests.queues import Queue, queue
from local_aws.tests.streams import BY_PK, NOTING, Reader, reader, table

pytest_plugins = ("local_aws.tests.emulator_fixtures",)

REPORTS = {"FunctionResponseTypes": ["ReportBatchItemFailures"]}

# How long a test waits for what must not happen.
A_WHILE = 1.5


def discarding_to(queue: Queue) -> dict[str, Any]:
    return {"DestinationConfig": {"OnFailure": {"Destination": queue.arn}}}


def discarded(destination: Queue) -> dict[str, Any]:
    """Wait for the message of a batch that was discarded."""
    received = wait_until(lambda: destination.receive(limit=1), "something is discarded")
    message: dict[str, Any] = json.loads(received[0]["Body"])
    return message


def worker_of_queue(server: EmulatorServer) -> Queue:
    """A queue whose messages are deleted by a function at once."""
    work = queue(server)
    name = f"worker-{uuid4().hex[:8]}"
    create_function(server, name, "def handler(event, context):\n    return None")
    server.client("lambda").create_event_source_mapping(FunctionName=name, EventSourceArn=work.arn)
    return work


# stream_mappings: in a thread of its own


def test_gap_stock_stops_queues_while_a_function_of_a_stream_runs(stock: EmulatorServer, tmp_path: Path) -> None:
    slow, changes, work = reader(stock, tmp_path, waits_at=["slow"]), table(stock), worker_of_queue(stock)
    slow.read(changes)
    changes.put("slow")
    slow.batches_until(["slow"])
    work.send("some")
    time.sleep(A_WHILE)
    assert work.counts() == (1, 0)
    slow.open()


def test_a_slow_function_of_a_stream_stops_no_queue_and_no_other_stream(
    emulator: EmulatorServer, tmp_path: Path
) -> None:
    slow, quick = reader(emulator, tmp_path, waits_at=["slow"]), reader(emulator, tmp_path)
    changes, others, work = table(emulator), table(emulator), worker_of_queue(emulator)
    slow.read(changes)
    quick.read(changes)
    other = reader(emulator, tmp_path)
    other.read(others)
    changes.put("slow")
    slow.batches_until(["slow"])
    quick.batches_until(["slow"])
    others.put("other")
    other.batches_until(["other"])
    work.send("some")
    wait_until(lambda: work.counts() == (0, 0), "the message is processed")
    changes.put("later")
    quick.batches_until(["later"])
    assert slow.batches() == [["slow"]]
    slow.open()
    assert slow.batches_until(["later"]) == [["slow"], ["later"]]


def test_a_slow_function_of_a_queue_stops_no_stream(emulator: EmulatorServer, tmp_path: Path) -> None:
    work, changes, quick = queue(emulator, VisibilityTimeout="60"), table(emulator), reader(emulator, tmp_path)
    source = (
        "import pathlib, time\n\ndef handler(event, context):\n"
        f"    while not pathlib.Path({str(tmp_path / 'open')!r}).exists():\n        time.sleep(0.01)\n"
    )
    name = f"slow-{uuid4().hex[:8]}"
    create_function(emulator, name, source, Timeout=60)
    emulator.client("lambda").create_event_source_mapping(FunctionName=name, EventSourceArn=work.arn)
    quick.read(changes)
    work.send("slow")
    wait_until(lambda: work.counts() == (0, 1), "the queue's function runs")
    changes.put("a")
    quick.batches_until(["a"])
    assert work.counts() == (0, 1)
    (tmp_path / "open").touch()


def test_a_failing_stream_stops_no_other_stream(emulator: EmulatorServer, tmp_path: Path) -> None:
    failing, quick, changes = reader(emulator, tmp_path, raises_at=["a"]), reader(emulator, tmp_path), table(emulator)
    failing.read(changes)
    quick.read(changes)
    changes.put("a")
    wait_until(lambda: len(failing.batches()) > 1, "it is retried")
    changes.put("b")
    quick.batches_until(["b"])
    assert {tuple(batch) for batch in failing.batches()} == {("a",)}


# stream_mappings: mappings


def test_a_mapping_begins_where_it_says(emulator: EmulatorServer, tmp_path: Path) -> None:
    changes, first, latest = table(emulator), reader(emulator, tmp_path), reader(emulator, tmp_path)
    changes.put("before")
    first.read(changes)
    latest.read(changes, StartingPosition="LATEST")
    changes.put("after")
    latest.batches_until(["after"])
    wait_until(lambda: first.keys() == ["before", "after"], "both are passed on")
    assert latest.batches() == [["after"]]


def test_a_disabled_mapping_goes_on_where_it_was_and_a_deleted_one_does_not(
    emulator: EmulatorServer, tmp_path: Path
) -> None:
    changes, some = table(emulator), reader(emulator, tmp_path)
    mapping_id = some.read(changes)
    changes.put("a")
    some.batches_until(["a"])
    some.change(mapping_id, Enabled=False)
    changes.put("b")
    time.sleep(A_WHILE)
    assert some.batches() == [["a"]]
    some.change(mapping_id, Enabled=True)
    some.batches_until(["b"])
    emulator.client("lambda").delete_event_source_mapping(UUID=mapping_id)
    changes.put("c")
    time.sleep(A_WHILE)
    assert some.batches() == [["a"], ["b"]]


def test_a_failing_mapping_can_be_disabled_and_deleted(emulator: EmulatorServer, tmp_path: Path) -> None:
    changes, failing = table(emulator), reader(emulator, tmp_path, raises_at=["a"])
    changes.put("a")
    mapping_id = failing.read(changes)
    wait_until(failing.batches, "it fails")
    failing.change(mapping_id, Enabled=False)
    seen = len(failing.batches())
    time.sleep(A_WHILE)
    assert len(failing.batches()) <= seen + 1, "one may have begun before"
    seen = len(failing.batches())
    failing.change(mapping_id, Enabled=True)
    wait_until(lambda: len(failing.batches()) > seen, "it is retried")
    emulator.client("lambda").delete_event_source_mapping(UUID=mapping_id)
    seen = len(failing.batches())
    time.sleep(A_WHILE)
    assert len(failing.batches()) <= seen + 1, "one may have begun before"


def test_retries_take_pauses(emulator: EmulatorServer, tmp_path: Path) -> None:
    changes, failing = table(emulator), reader(emulator, tmp_path, reports=["a"])
    changes.put("a")
    failing.read(changes, **REPORTS)
    wait_until(lambda: len(failing.batches()) == 3, "it is retried")
    seen = len(failing.batches())
    time.sleep(A_WHILE)
    assert len(failing.batches()) - seen < 10


# The emulator without a server and without functions: `execute` is what invokes one, and `some` is a table.
WITHIN = """
import sys, threading, time
from pathlib import Path
from local_aws.corrections import apply_corrections
from local_aws.emulator import Emulator
from local_aws.ministack_internals import internals

apply_corrections(Emulator(gateway_url="", function_python=Path("python"), data_dir=Path(sys.argv[1])))
internals("app")
from local_aws.shims import stream_mappings

dynamodb, lambda_service = internals("services.dynamodb"), internals("services.lambda_svc")
lambda_service._functions["some"] = {"config": {"FunctionName": "some"}}
dynamodb._create_table({
    "TableName": "some",
    "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
    "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
    "BillingMode": "PAY_PER_REQUEST",
    "StreamSpecification": {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"},
})
seen = []

def put(key):
    dynamodb._put_item({"TableName": "some", "Item": {"pk": {"S": key}}})

def age_all():
    for record in dynamodb.stream_live_records("some"):
        record["dynamodb"]["ApproximateCreationDateTime"] -= 25 * 3600

def keys(event):
    return [record["dynamodb"]["Keys"]["pk"]["S"] for record in event["Records"]]

def read(execute, **settings):
    lambda_service._execute_function = lambda function, event: execute(event)
    lambda_service._create_esm({
        "FunctionName": "some",
        "EventSourceArn": dynamodb._tables["some"]["LatestStreamArn"],
        "StartingPosition": "TRIM_HORIZON",
        **settings,
    })
    (mapping,) = lambda_service._esms.values()
    return mapping

def wait_until(condition):
    deadline = time.monotonic() + 20
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.01)
"""

# The poller looks for changes by itself once an hour only.
PASS_ON_SOON = """
time.sleep(2 * stream_mappings._LOOK_SECONDS)
stream_mappings._LOOK_SECONDS = 3600
time.sleep(1)
read(lambda event: seen.append(keys(event)) or {})
put("a")
wait_until(lambda: seen)
print(seen)
"""


# While "a" fails, it leaves the stream.
LEAVE_WHILE_FAILING = """
read(lambda event: seen.append(keys(event)) or {"error": "a" in keys(event)})
put("a")
wait_until(lambda: seen)
age_all()
put("b")
wait_until(lambda: ["b"] in seen)
print(seen[0], seen[-1])
"""

# While the mapping is disabled, "a" and "b" leave the stream.
LEAVE_UNREAD = """
mapping = read(lambda event: seen.append(keys(event)) or {}, Enabled=False)
put("a")
put("b")
age_all()
put("c")
mapping["Enabled"] = True
wait_until(lambda: seen)
put("d")
wait_until(lambda: len(seen) > 1)
print(seen)
"""

# The emulator itself goes wrong.
GO_WRONG = """
def execute(event):
    seen.append(keys(event))
    if len(seen) < 3:
        raise OSError
    return {}

read(execute)
put("a")
wait_until(lambda: len(seen) > 2)
put("b")
wait_until(lambda: len(seen) > 3)
print(seen)
"""


KEEP_GOING_WRONG = """
def execute(event):
    seen.append(keys(event))
    raise OSError

read(execute)
put("a")
wait_until(lambda: len(seen) > 2)
time.sleep(1)
print(len(seen) < 10)
"""


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        pytest.param(PASS_ON_SOON, "[['a']]", id="soon"),
        pytest.param(LEAVE_WHILE_FAILING, "['a'] ['b']", id="leaving while failing"),
        pytest.param(LEAVE_UNREAD, "[['c'], ['d']]", id="leaving unread"),
        pytest.param(GO_WRONG, "[['a'], ['a'], ['a'], ['b']]", id="going wrong"),
        pytest.param(KEEP_GOING_WRONG, "True", id="not too often"),
    ],
)
def test_the_poller_passes_on_soon_and_once_what_is_in_the_stream(tmp_path: Path, program: str, expected: str) -> None:
    assert output_of(WITHIN + program, tmp_path) == expected


def test_a_mapping_of_a_table_that_was_replaced_reads_nothing_of_the_new_one(
    emulator: EmulatorServer, tmp_path: Path
) -> None:
    old, before, after = table(emulator), reader(emulator, tmp_path), reader(emulator, tmp_path)
    before.read(old)
    old.put("old")
    before.batches_until(["old"])
    emulator.client("dynamodb").delete_table(TableName=old.name)
    new = table(emulator, old.name)
    after.read(new)
    new.put("a", "b")
    wait_until(lambda: after.keys() == ["a", "b"], "the new table's changes are passed on")
    time.sleep(A_WHILE)
    assert before.batches() == [["old"]]


def test_a_mapping_with_settings_that_are_no_numbers_stops_no_other(emulator: EmulatorServer, tmp_path: Path) -> None:
    changes, unread, some = table(emulator), reader(emulator, tmp_path), reader(emulator, tmp_path)
    mapping = {
        "FunctionName": unread.name,
        "EventSourceArn": changes.stream_arn,
        "StartingPosition": "TRIM_HORIZON",
        "MaximumRetryAttempts": "many",
    }
    with stack(emulator, {"Mapping": {"Type": "AWS::Lambda::EventSourceMapping", "Properties": mapping}}):
        some.read(changes)
        changes.put("a")
        assert some.batches_until(["a"]) == [["a"]]
        assert unread.batches() == []


def test_a_stack_creates_changes_and_deletes_a_mapping(emulator: EmulatorServer, tmp_path: Path) -> None:
    (tmp_path / "conduct").write_text("{}")
    noted = Reader(server=emulator, name="", folder=tmp_path)
    name = f"table-{uuid4().hex[:8]}"

    def put(key: str) -> None:
        emulator.client("dynamodb").put_item(TableName=name, Item={"pk": {"S": key}})

    def resources(*, enabled: Any) -> dict[str, Any]:
        mapping = {
            "FunctionName": {"Ref": "Function"},
            "EventSourceArn": {"Fn::GetAtt": ["Table", "StreamArn"]},
            "StartingPosition": "LATEST",
            "BatchSize": "2",
            "Enabled": enabled,
        }
        return {
            "Table": {"Type": "AWS::DynamoDB::Table", "Properties": table_properties(name)},
            "Function": function_resource(NOTING, Environment={"Variables": {"FOLDER": str(tmp_path)}}),
            "Mapping": {"Type": "AWS::Lambda::EventSourceMapping", "Properties": mapping},
        }

    with stack(emulator, resources(enabled=True)) as created:
        put("a")
        noted.batches_until(["a"])
        update_stack(emulator, created, resources(enabled="false"))
        put("b")
        time.sleep(A_WHILE)
        assert noted.batches() == [["a"]]
        update_stack(emulator, created, resources(enabled="true"))
        assert noted.batches_until(["b"]) == [["a"], ["b"]]
    assert emulator.client("lambda").list_event_source_mappings(FunctionName=name)["EventSourceMappings"] == []


def table_properties(name: str) -> dict[str, Any]:
    return {"TableName": name, **BY_PK, "StreamSpecification": {"StreamViewType": "NEW_AND_OLD_IMAGES"}}


def test_a_stack_adds_a_stream_to_a_table_and_maps_it(emulator: EmulatorServer, tmp_path: Path) -> None:
    some, name = reader(emulator, tmp_path), f"table-{uuid4().hex[:8]}"
    before = {"Table": {"Type": "AWS::DynamoDB::Table", "Properties": {"TableName": name, **BY_PK}}}
    mapping = {
        "FunctionName": some.name,
        "EventSourceArn": {"Fn::GetAtt": ["Table", "StreamArn"]},
        "StartingPosition": "TRIM_HORIZON",
    }
    after = {
        "Table": {"Type": "AWS::DynamoDB::Table", "Properties": table_properties(name)},
        "Mapping": {"Type": "AWS::Lambda::EventSourceMapping", "Properties": mapping},
    }
    with stack(emulator, before) as created:
        emulator.client("dynamodb").put_item(TableName=name, Item={"pk": {"S": "old"}})
        update_stack(emulator, created, after)
        emulator.client("dynamodb").put_item(TableName=name, Item={"pk": {"S": "new"}})
        assert some.batches_until(["new"]) == [["new"]]


# stream_mappings: what is reported as failed


def test_what_follows_the_first_reported_record_is_retried_before_anything_newer(
    emulator: EmulatorServer, tmp_path: Path
) -> None:
    changes, some = table(emulator), reader(emulator, tmp_path, reports=["c", "b"])
    changes.put("a", "b", "c", "d")
    some.read(changes, **REPORTS)
    wait_until(lambda: len(some.batches()) > 2, "it is retried")
    changes.put("e")
    some.behave()
    batches = some.batches_until(["e"])
    assert batches[0] == ["a", "b", "c", "d"]
    assert batches[1:-1] == [["b", "c", "d"]] * (len(batches) - 2)
    assert batches[-1] == ["e"]


def test_only_what_is_left_of_a_batch_is_retried(emulator: EmulatorServer, tmp_path: Path) -> None:
    changes, some = table(emulator), reader(emulator, tmp_path, reports=["b"])
    changes.put("a", "b", "c", "d")
    some.read(changes, **REPORTS)
    some.batches_until(["b", "c", "d"])
    some.behave(reports=["d"])
    some.batches_until(["d"])
    some.behave()
    changes.put("e")
    assert [batch for batch in some.batches_until(["e"]) if "a" in batch] == [["a", "b", "c", "d"]]


def test_a_report_that_is_not_understood_fails_the_whole_batch(emulator: EmulatorServer, tmp_path: Path) -> None:
    misspelt = not_understood("sequenceNumber")["a misspelt key"]
    changes, some = table(emulator), reader(emulator, tmp_path, answers=misspelt)
    changes.put("a", "b")
    mapping_id = some.read(changes, **REPORTS)
    wait_until(lambda: len(some.batches()) > 1, "it is retried")
    emulator.client("lambda").delete_event_source_mapping(UUID=mapping_id)
    assert some.batches()[:2] == [["a", "b"], ["a", "b"]]


def test_a_report_that_the_mapping_does_not_want_is_ignored(emulator: EmulatorServer, tmp_path: Path) -> None:
    changes, some = table(emulator), reader(emulator, tmp_path, reports=["a"])
    changes.put("a")
    some.read(changes)
    some.batches_until(["a"])
    changes.put("b")
    assert some.batches_until(["b"]) == [["a"], ["b"]]


# stream_mappings: what is discarded


def test_a_batch_is_discarded_after_its_retries(emulator: EmulatorServer, tmp_path: Path) -> None:
    changes, failing, lost = table(emulator), reader(emulator, tmp_path, raises_at=["b"]), queue(emulator)
    changes.put("a", "b")
    failing.read(changes, MaximumRetryAttempts=2, **discarding_to(lost))
    message = discarded(lost)
    changes.put("c")
    assert failing.batches_until(["c"]) == [["a", "b"], ["a", "b"], ["a", "b"], ["c"]]
    assert lost.counts() == (0, 1)

    records = failing.records()[0]
    assert message["requestContext"]["condition"] == "RetryAttemptsExhausted"
    assert message["requestContext"]["approximateInvokeCount"] == 3
    assert message["requestContext"]["functionArn"].endswith(f":function:{failing.name}")
    assert message["responseContext"]["functionError"] == "Unhandled"
    described = message["DDBStreamBatchInfo"]
    assert described["startSequenceNumber"] == records[0]["dynamodb"]["SequenceNumber"]
    assert described["endSequenceNumber"] == records[1]["dynamodb"]["SequenceNumber"]
    assert (described["batchSize"], described["streamArn"]) == (2, changes.stream_arn)
    shards = emulator.client("dynamodbstreams").describe_stream(StreamArn=changes.stream_arn)["StreamDescription"]
    assert described["shardId"] in [shard["ShardId"] for shard in shards["Shards"]]


def test_what_is_discarded_can_be_read_from_the_stream_by_its_description(
    emulator: EmulatorServer, tmp_path: Path
) -> None:
    changes, failing, lost = table(emulator), reader(emulator, tmp_path, raises_at=["b"]), queue(emulator)
    changes.put("a", "b", "c")
    failing.read(changes, BatchSize=1, MaximumRetryAttempts=0, **discarding_to(lost))
    described = discarded(lost)["DDBStreamBatchInfo"]
    streams = emulator.client("dynamodbstreams")
    iterator = streams.get_shard_iterator(
        StreamArn=described["streamArn"],
        ShardId=described["shardId"],
        ShardIteratorType="AT_SEQUENCE_NUMBER",
        SequenceNumber=described["startSequenceNumber"],
    )["ShardIterator"]
    records = streams.get_records(ShardIterator=iterator, Limit=described["batchSize"])["Records"]
    assert [record["dynamodb"]["Keys"]["pk"]["S"] for record in records] == ["b"]


def test_what_is_left_of_a_reported_batch_is_discarded_after_its_retries(
    emulator: EmulatorServer, tmp_path: Path
) -> None:
    changes, failing, lost = table(emulator), reader(emulator, tmp_path, reports=["b"]), queue(emulator)
    changes.put("a", "b", "c")
    failing.read(changes, MaximumRetryAttempts=1, **REPORTS, **discarding_to(lost))
    message = discarded(lost)
    assert failing.batches() == [["a", "b", "c"], ["b", "c"]]
    assert message["DDBStreamBatchInfo"]["batchSize"] == 2
    assert message["responseContext"]["functionError"] is None


def test_a_batch_that_is_split_leaves_only_its_bad_record_behind(emulator: EmulatorServer, tmp_path: Path) -> None:
    changes, failing, lost = table(emulator), reader(emulator, tmp_path, raises_at=["c"]), queue(emulator)
    changes.put("a", "b", "c", "d")
    failing.read(changes, BisectBatchOnFunctionError=True, MaximumRetryAttempts=0, **discarding_to(lost))
    message = discarded(lost)
    assert failing.batches_until(["d"]) == [["a", "b", "c", "d"], ["a", "b"], ["c", "d"], ["c"], ["d"]]
    assert message["DDBStreamBatchInfo"]["batchSize"] == 1
    assert message["requestContext"]["approximateInvokeCount"] == 3


def test_a_report_splits_a_batch_without_a_retry(emulator: EmulatorServer, tmp_path: Path) -> None:
    changes, failing, lost = table(emulator), reader(emulator, tmp_path, reports=["c"]), queue(emulator)
    changes.put("a", "b", "c", "d")
    settings = {"BisectBatchOnFunctionError": True, "MaximumRetryAttempts": 0, **REPORTS}
    failing.read(changes, **settings, **discarding_to(lost))
    assert discarded(lost)["DDBStreamBatchInfo"]["batchSize"] == 2
    assert failing.batches() == [["a", "b", "c", "d"], ["c", "d"]]


def test_records_that_are_too_old_are_discarded_without_an_invocation(emulator: EmulatorServer, tmp_path: Path) -> None:
    changes, some, lost = table(emulator), reader(emulator, tmp_path), queue(emulator)
    changes.put("old", "older")
    time.sleep(3)
    changes.put("new")
    some.read(changes, MaximumRecordAgeInSeconds=2, **discarding_to(lost))  # AWS wants 60 at least
    message = discarded(lost)
    assert some.batches_until(["new"]) == [["new"]]
    assert message["requestContext"]["condition"] == "RecordAgeExceeded"
    assert message["DDBStreamBatchInfo"]["batchSize"] == 2
    assert "responseContext" not in message


def test_records_that_grow_too_old_while_they_fail_are_discarded(emulator: EmulatorServer, tmp_path: Path) -> None:
    changes, failing, lost = table(emulator), reader(emulator, tmp_path, raises_at=["a"]), queue(emulator)
    changes.put("a")
    failing.read(changes, MaximumRecordAgeInSeconds=3, **discarding_to(lost))
    message = discarded(lost)
    assert message["requestContext"]["condition"] == "RecordAgeExceeded"
    assert message["requestContext"]["approximateInvokeCount"] == len(failing.batches()) > 0


def test_a_throttle_is_no_failure(emulator: EmulatorServer, tmp_path: Path) -> None:
    changes, some, lost = table(emulator), reader(emulator, tmp_path), queue(emulator)
    lambda_ = emulator.client("lambda")
    lambda_.put_function_concurrency(FunctionName=some.name, ReservedConcurrentExecutions=0)
    changes.put("a", "b")
    some.read(changes, MaximumRetryAttempts=0, BisectBatchOnFunctionError=True, **discarding_to(lost))
    time.sleep(A_WHILE)
    lambda_.delete_function_concurrency(FunctionName=some.name)
    assert some.batches_until(["a", "b"]) == [["a", "b"]]
    assert lost.counts() == (0, 0)


def test_what_is_discarded_may_be_published_to_a_topic(emulator: EmulatorServer, tmp_path: Path) -> None:
    changes, failing, subscriber = table(emulator), reader(emulator, tmp_path, raises_at=["a"]), queue(emulator)
    sns = emulator.client("sns")
    topic_arn = sns.create_topic(Name=f"topic-{uuid4().hex[:8]}")["TopicArn"]
    raw = {"RawMessageDelivery": "true"}
    sns.subscribe(TopicArn=topic_arn, Protocol="sqs", Endpoint=subscriber.arn, Attributes=raw)
    changes.put("a")
    destination = {"DestinationConfig": {"OnFailure": {"Destination": topic_arn}}}
    failing.read(changes, MaximumRetryAttempts=0, **destination)
    assert discarded(subscriber)["DDBStreamBatchInfo"]["batchSize"] == 1


# stream_mappings: how old records are


def ages(server: EmulatorServer, some: Reader) -> list[float]:
    return statistic(server, "AWS/Lambda", "IteratorAge", {"FunctionName": some.name}, "Maximum")


def test_the_age_of_a_batch_is_that_of_its_last_record(emulator: EmulatorServer, tmp_path: Path) -> None:
    changes, some = table(emulator), reader(emulator, tmp_path)
    changes.put("a")
    time.sleep(4)
    changes.put("b")
    time.sleep(2)
    some.read(changes)
    some.batches_until(["a", "b"])
    age = max(ages(emulator, some))
    assert age >= 2000
    other = reader(emulator, tmp_path)
    other.read(changes, BatchSize=1)
    other.batches_until(["b"])
    assert max(ages(emulator, other)) >= age + 3000


# stream_mappings: several batches at once


def test_batches_of_other_partition_keys_overtake_one_that_lasts_but_none_of_its_own(
    emulator: EmulatorServer, tmp_path: Path
) -> None:
    changes, some = table(emulator), reader(emulator, tmp_path, waits_at=["0"])
    keys = [str(number) for number in range(10)]
    changes.put(*keys, *keys)
    some.read(changes, BatchSize=1, ParallelizationFactor=2)
    wait_until(lambda: len(some.batches()) > 4, "others overtake it")
    time.sleep(A_WHILE)
    assert some.batches().count(["0"]) == 1
    some.open()
    wait_until(lambda: len(some.batches()) == 20, "all are passed on")
    versions: dict[str, list[str]] = {}
    for (record,) in some.records():
        versions.setdefault(record["dynamodb"]["Keys"]["pk"]["S"], []).append(record["dynamodb"]["SequenceNumber"])
    assert sorted(versions) == keys
    assert all(numbers == sorted(numbers) and len(numbers) == 2 for numbers in versions.values())


def test_a_changed_number_of_batches_at_once_loses_nothing_and_overtakes_nothing(
    emulator: EmulatorServer, tmp_path: Path
) -> None:
    changes, some = table(emulator), reader(emulator, tmp_path, waits_at=["0"])
    keys = [str(number) for number in range(10)]
    changes.put(*keys, *keys)
    mapping_id = some.read(changes, BatchSize=1, ParallelizationFactor=2)
    wait_until(lambda: ["0"] in some.batches() and len(some.batches()) > 4, "the other batches are passed on")
    some.change(mapping_id, ParallelizationFactor=5)
    time.sleep(A_WHILE)
    assert some.batches().count(["0"]) == 1
    some.open()
    wait_until(lambda: set(some.keys()) == set(keys), "all are passed on")


# event_filters


def filters(*patterns: dict[str, Any]) -> dict[str, Any]:
    return {"FilterCriteria": {"Filters": [{"Pattern": json.dumps(pattern)} for pattern in patterns]}}


NEW = {"dynamodb": {"OldImage": {"pk": {"S": [{"exists": False}]}}}}
END = {"dynamodb": {"Keys": {"pk": {"S": ["end"]}}}}


def test_gap_stock_lets_no_event_through_for_the_image_that_it_lacks(stock: EmulatorServer, tmp_path: Path) -> None:
    changes, some = table(stock), reader(stock, tmp_path)
    changes.put("a", "end")
    some.read(changes, **filters(NEW, END))
    assert some.batches_until(["end"]) == [["end"]]


def test_events_are_filtered_by_what_they_lack(emulator: EmulatorServer, tmp_path: Path) -> None:
    changes, some = table(emulator), reader(emulator, tmp_path)
    changes.put("a", "a", "b", "end")
    some.read(changes, **filters(NEW))
    assert some.batches_until(["a", "b", "end"]) == [["a", "b", "end"]]


def test_batches_are_filled_with_what_the_filters_let_through(emulator: EmulatorServer, tmp_path: Path) -> None:
    changes, some = table(emulator), reader(emulator, tmp_path)
    for number in range(6):
        changes.put(str(number), state={"S": "ready" if number % 2 else "held"})
    changes.put("end")
    ready = {"eventName": ["INSERT"], "dynamodb": {"NewImage": {"state": {"S": [{"anything-but": ["held"]}]}}}}
    some.read(changes, BatchSize=3, **filters(ready, END))
    assert some.batches_until(["end"]) == [["1", "3", "5"], ["end"]]


# time_to_live


def expiring(name: str, specification: dict[str, Any] | None) -> dict[str, Any]:
    properties = table_properties(name)
    if specification is not None:
        properties["TimeToLiveSpecification"] = specification
    return {"Table": {"Type": "AWS::DynamoDB::Table", "Properties": properties}}


def expiry(server: EmulatorServer, name: str) -> Any:
    """The status of a table's time to live, and its attribute."""
    described = server.client("dynamodb").describe_time_to_live(TableName=name)["TimeToLiveDescription"]
    return described["TimeToLiveStatus"], described.get("AttributeName")


UNTIL = {"AttributeName": "until", "Enabled": True}


def test_gap_stock_lets_nothing_in_a_stacks_table_expire(stock: EmulatorServer) -> None:
    name = f"table-{uuid4().hex[:8]}"
    with stack(stock, expiring(name, UNTIL)):
        assert expiry(stock, name) == ("DISABLED", None)


def test_a_stack_says_which_items_expire(emulator: EmulatorServer) -> None:
    name = f"table-{uuid4().hex[:8]}"
    with stack(emulator, expiring(name, UNTIL)) as created:
        assert expiry(emulator, name) == ("ENABLED", "until")
        update_stack(emulator, created, expiring(name, {"AttributeName": "later", "Enabled": "true"}))
        assert expiry(emulator, name) == ("ENABLED", "later")
        update_stack(emulator, created, expiring(name, None))
        assert expiry(emulator, name) == ("DISABLED", None)
        update_stack(emulator, created, expiring(name, UNTIL))
    with stack(emulator, expiring(name, {**UNTIL, "Enabled": "false"})):
        assert expiry(emulator, name) == ("DISABLED", None)


# expired_items

# Lets the thread that removes expired items do so once.
EXPIRE = """
import json, sys, threading, time, types
from pathlib import Path
from local_aws.corrections import apply_corrections
from local_aws.emulator import Emulator
from local_aws.ministack_internals import internals

if sys.argv[1] == "corrected":
    apply_corrections(Emulator(gateway_url="", function_python=Path("python"), data_dir=Path(sys.argv[2])))
dynamodb = internals("services.dynamodb")
dynamodb._create_table({
    "TableName": "some",
    "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
    "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
    "BillingMode": "PAY_PER_REQUEST",
    "StreamSpecification": {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"},
})
dynamodb._update_ttl({"TableName": "some", "TimeToLiveSpecification": {"Enabled": True, "AttributeName": "until"}})
for key, until in (("old", "1"), ("lasting", "99999999999"), ("deleted", "99999999999")):
    dynamodb._put_item({"TableName": "some", "Item": {"pk": {"S": key}, "until": {"N": until}}})
dynamodb._delete_item({"TableName": "some", "Key": {"pk": {"S": "deleted"}}})

rounds = iter([None])
dynamodb.time = types.SimpleNamespace(time=time.time, sleep=lambda _: next(rounds))
threading.excepthook = lambda _: None
reaper = threading.Thread(target=dynamodb._ttl_reaper, name="dynamodb-ttl-reaper")
reaper.start()
reaper.join()
removed = [record for record in dynamodb.stream_live_records("some") if record["eventName"] == "REMOVE"]
print(json.dumps([[record["dynamodb"].get("OldImage"), record.get("userIdentity")] for record in removed]))
"""


def removals_in_the_stream(which: str, data_dir: Path) -> Any:
    return json.loads(output_of(EXPIRE, which, data_dir))


DELETED = [{"pk": {"S": "deleted"}, "until": {"N": "99999999999"}}, None]


def test_gap_stock_removes_an_expired_item_without_a_record(tmp_path: Path) -> None:
    assert removals_in_the_stream("stock", tmp_path) == [DELETED]


def test_an_expired_item_is_recorded_as_removed_by_dynamodb_itself(tmp_path: Path) -> None:
    identity = {"type": "Service", "principalId": "dynamodb.amazonaws.com"}
    expired = [{"pk": {"S": "old"}, "until": {"N": "1"}}, identity]
    assert removals_in_the_stream("corrected", tmp_path) == [DELETED, expired]


def test_a_record_has_the_whole_item_before_and_after_its_own_change(emulator: EmulatorServer, tmp_path: Path) -> None:
    changes, some, dynamodb = table(emulator), reader(emulator, tmp_path), emulator.client("dynamodb")
    key = {"pk": {"S": "a"}}
    first = {**key, "list": {"L": [{"N": "1"}]}, "map": {"M": {"b": {"S": "c"}}}}
    second = {**first, "list": {"L": [{"N": "1"}, {"N": "2"}]}, "map": {"M": {"b": {"S": "d"}}}}
    third = {**key, "state": {"S": "replaced"}}
    dynamodb.put_item(TableName=changes.name, Item=first)
    dynamodb.update_item(
        TableName=changes.name,
        Key=key,
        UpdateExpression="SET #list = list_append(#list, :more), #map.b = :d",
        ExpressionAttributeNames={"#list": "list", "#map": "map"},
        ExpressionAttributeValues={":more": {"L": [{"N": "2"}]}, ":d": {"S": "d"}},
    )
    # Neither is a change.
    dynamodb.put_item(TableName=changes.name, Item=second)
    dynamodb.update_item(
        TableName=changes.name,
        Key=key,
        UpdateExpression="SET #map.b = :d",
        ExpressionAttributeNames={"#map": "map"},
        ExpressionAttributeValues={":d": {"S": "d"}},
    )
    dynamodb.put_item(TableName=changes.name, Item=third)
    dynamodb.transact_write_items(TransactItems=[{"Delete": {"TableName": changes.name, "Key": key}}])
    some.read(changes)
    (records,) = wait_until(some.records, "the changes are passed on")
    assert [
        (record["eventName"], record["dynamodb"].get("OldImage"), record["dynamodb"].get("NewImage"))
        for record in records
    ] == [
        ("INSERT", None, first),
        ("MODIFY", first, second),
        ("MODIFY", second, third),
        ("REMOVE", third, None),
    ]
    assert all(record["dynamodb"]["Keys"] == key for record in records)
