"""The emulator carries traces on as AWS does: next to the gaps in stock MiniStack."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest

from local_aws.tests.emulator_server import EmulatorServer, create_function, invoke, stack, wait_until
from local_aws.tests.http_apis import echo_api, routed_by_hand
from local_aws.tests.queues import Queue, queue

pytest_plugins = ("local_aws.tests.emulator_fixtures",)

TRACE = "Root=1-6ba7b810-9dad11d180b400c04fd430c8;Parent=53995c3f42cd8ad8;Sampled=1"
OTHER = "Root=1-6ba7b811-9dad11d180b400c04fd430c8;Parent=53995c3f42cd8ad8;Sampled=1"
ACTIVE = {"TracingConfig": {"Mode": "Active"}}


@contextmanager
def traced(server: EmulatorServer, service: str) -> Iterator[Any]:
    """A client that sends its requests in a trace."""

    def say_so(params: Any, **_: object) -> None:
        params["headers"]["X-Amzn-Trace-Id"] = TRACE

    client = server.client(service)
    client.meta.events.register("before-call", say_so)
    try:
        yield client
    finally:
        client.meta.events.unregister("before-call", say_so)


def send_each_way(server: EmulatorServer, some: Queue) -> None:
    entries = [{"Id": str(number), "MessageBody": f"batch {number}"} for number in range(2)]
    with traced(server, "sqs") as sqs:
        sqs.send_message(QueueUrl=some.url, MessageBody="alone")
        sqs.send_message_batch(QueueUrl=some.url, Entries=entries)


def publish(server: EmulatorServer, some: Queue, **attributes: str) -> None:
    with traced(server, "sns") as sns:
        topic = sns.create_topic(Name=f"topic-{uuid4().hex[:8]}")["TopicArn"]
        sns.subscribe(TopicArn=topic, Protocol="sqs", Endpoint=some.arn, Attributes=attributes)
        sns.publish(TopicArn=topic, Message="alone")
        sns.publish_batch(TopicArn=topic, PublishBatchRequestEntries=[{"Id": "a", "Message": "batch"}])


def headers_in(some: Queue, count: int) -> list[str | None]:
    """The trace headers of that many messages."""
    taken: list[dict[str, Any]] = []

    def all_are_there() -> bool:
        taken.extend(some.receive())
        return len(taken) >= count

    wait_until(all_are_there, "the messages have come")
    return [message["Attributes"].get("AWSTraceHeader") for message in taken]


def test_gap_stock_forgets_the_trace_of_a_request_that_sends(stock: EmulatorServer) -> None:
    some = queue(stock)
    send_each_way(stock, some)
    assert headers_in(some, 3) == [None] * 3


def test_messages_carry_the_trace_of_the_request_that_sent_them(emulator: EmulatorServer) -> None:
    some = queue(emulator)
    send_each_way(emulator, some)
    assert headers_in(some, 3) == [TRACE] * 3


def test_an_attribute_counts_more_than_the_header(emulator: EmulatorServer) -> None:
    some = queue(emulator)
    own = {"AWSTraceHeader": {"StringValue": OTHER, "DataType": "String"}}
    with traced(emulator, "sqs") as sqs:
        sqs.send_message(QueueUrl=some.url, MessageBody="alone", MessageSystemAttributes=own)
    assert headers_in(some, 1) == [OTHER]


def test_a_message_that_is_received_in_a_trace_does_not_get_it(emulator: EmulatorServer) -> None:
    some = queue(emulator)
    some.send("alone")
    with traced(emulator, "sqs"):
        (message,) = some.receive()
    assert "AWSTraceHeader" not in message["Attributes"]


@pytest.mark.parametrize("raw", ["true", "false"])
def test_gap_stock_forgets_the_trace_of_what_is_published(stock: EmulatorServer, raw: str) -> None:
    some = queue(stock)
    publish(stock, some, RawMessageDelivery=raw)
    assert headers_in(some, 2) == [None] * 2


@pytest.mark.parametrize("raw", ["true", "false"])
def test_what_is_published_carries_its_trace_to_the_queues(emulator: EmulatorServer, raw: str) -> None:
    some = queue(emulator)
    publish(emulator, some, RawMessageDelivery=raw)
    assert headers_in(some, 2) == [TRACE] * 2


# The functions' own traces. MiniStack makes them; these tests fail when it no longer does.

TELLER = """
import os
def handler(event, context):
    return os.environ["_X_AMZN_TRACE_ID"]
"""

RECEIVER = """
import json, os, pathlib
def handler(event, context):
    (record,) = event["Records"]
    told = {"own": os.environ["_X_AMZN_TRACE_ID"], "sent in": record["attributes"].get("AWSTraceHeader")}
    pathlib.Path(os.environ["FILE"]).write_text(json.dumps(told))
"""


def test_each_invocation_has_a_trace_of_its_own(emulator: EmulatorServer) -> None:
    name = f"teller-{uuid4().hex[:8]}"
    create_function(emulator, name, TELLER, **ACTIVE)
    traces = {invoke(emulator, name) for _ in range(3)}
    assert len(traces) == 3 and all(trace.startswith("Root=1-") for trace in traces)


def test_what_a_queue_invokes_has_a_trace_of_its_own_and_is_told_that_of_the_message(
    emulator: EmulatorServer, tmp_path: Path
) -> None:
    some, name, file = queue(emulator), f"receiver-{uuid4().hex[:8]}", tmp_path / "told"
    create_function(emulator, name, RECEIVER, Environment={"Variables": {"FILE": str(file)}}, **ACTIVE)
    with traced(emulator, "sqs") as sqs:
        sqs.send_message(QueueUrl=some.url, MessageBody="alone")
    emulator.client("lambda").create_event_source_mapping(EventSourceArn=some.arn, FunctionName=name, BatchSize=1)
    wait_until(lambda: some.counts() == (0, 0), "the message is processed")
    traces = json.loads(file.read_text())
    assert traces["sent in"] == TRACE
    assert traces["own"].startswith("Root=1-") and traces["own"].partition(";")[0] != TRACE.partition(";")[0]


TRACED = """
import json, os
def handler(event, context):
    told = {"own": os.environ.get("_X_AMZN_TRACE_ID"), "event": event["headers"].get("x-amzn-trace-id")}
    return {"statusCode": 200, "body": json.dumps(told)}
"""


def traced_api() -> dict[str, Any]:
    resources = echo_api({"GET /": {}})
    resources["Echo"]["Properties"] |= {"Code": {"ZipFile": TRACED}, **ACTIVE}
    return resources


def ask(http: httpx.Client, url: str, **headers: str) -> Any:
    return http.get(url, headers=headers).raise_for_status().json()


def test_gap_stock_answers_a_request_in_another_trace(stock: EmulatorServer, http: httpx.Client) -> None:
    url = routed_by_hand(stock, source=TRACED, **ACTIVE)
    answer = ask(http, f"{url}/", **{"X-Amzn-Trace-Id": TRACE})
    assert answer["event"] == TRACE
    assert answer["own"].partition(";")[0] != TRACE.partition(";")[0]


def test_a_request_is_answered_in_the_trace_of_its_event(emulator: EmulatorServer, http: httpx.Client) -> None:
    with stack(emulator, traced_api()):
        new = ask(http, f"{emulator.front_url}/")
        of_client = ask(http, f"{emulator.front_url}/", **{"X-Amzn-Trace-Id": TRACE})
        nonsense = ask(http, f"{emulator.front_url}/", **{"X-Amzn-Trace-Id": "nonsense"})
    assert new["own"].partition(";")[0] == new["event"]
    assert of_client["own"].partition(";")[0] == TRACE.partition(";")[0]
    assert nonsense["own"].startswith("Root=1-")
