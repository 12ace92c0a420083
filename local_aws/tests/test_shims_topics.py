"""Topics deliver to queues as SNS does: each shim next to the gap that it closes in stock MiniStack."""

from __future__ import annotations

import json
from typing import Any

import pytest

from local_aws.tests.emulator_server import EmulatorServer, physical_ids, stack, update_stack, wait_until
from local_aws.tests.queues import Queue, queue, topic

pytest_plugins = ("local_aws.tests.emulator_fixtures",)

RAW = {"RawMessageDelivery": "true"}


def subscribe(topic_arn: str, subscriber: Queue, **attributes: str) -> None:
    subscriber.server.client("sns").subscribe(
        TopicArn=topic_arn, Protocol="sqs", Endpoint=subscriber.arn, Attributes=attributes
    )


def redriven_to(dead_letters: Queue) -> dict[str, str]:
    return {"RedrivePolicy": json.dumps({"deadLetterTargetArn": dead_letters.arn})}


def texts(**values: str) -> dict[str, Any]:
    return {name: {"DataType": "String", "StringValue": value} for name, value in values.items()}


def delete(subscriber: Queue) -> None:
    subscriber.server.client("sqs").delete_queue(QueueUrl=subscriber.url)


def received(subscriber: Queue) -> dict[str, Any]:
    (message,) = wait_until(lambda: subscriber.receive(limit=1), "a message arrives")
    body: dict[str, Any] = message
    return body


# subscription_dead_letters


def test_gap_stock_loses_a_message_whose_queue_is_gone(stock: EmulatorServer) -> None:
    some, gone, dead_letters = topic(stock), queue(stock), queue(stock)
    subscribe(some, gone, **RAW, **redriven_to(dead_letters))
    delete(gone)
    stock.client("sns").publish(TopicArn=some, Message="hello")
    assert dead_letters.counts() == (0, 0)


def test_a_raw_message_whose_queue_is_gone_becomes_a_dead_letter_with_its_attributes(emulator: EmulatorServer) -> None:
    some, gone, dead_letters = topic(emulator), queue(emulator), queue(emulator)
    other, others_dead_letters = queue(emulator), queue(emulator)
    subscribe(some, other, **RAW, **redriven_to(others_dead_letters))
    subscribe(some, gone, **RAW, **redriven_to(dead_letters))
    delete(gone)
    attributes = texts(type="image.ready", tenant_id="t1")
    emulator.client("sns").publish(TopicArn=some, Message="hello", MessageAttributes=attributes)
    for delivered in (received(dead_letters), received(other)):
        assert (delivered["Body"], delivered["MessageAttributes"]) == ("hello", attributes)
    assert others_dead_letters.counts() == (0, 0)


def test_another_message_becomes_a_dead_letter_in_its_envelope(emulator: EmulatorServer) -> None:
    some, gone, dead_letters = topic(emulator), queue(emulator), queue(emulator)
    subscribe(some, gone, **redriven_to(dead_letters))
    delete(gone)
    entries = [{"Id": "1", "Message": "hello"}]
    emulator.client("sns").publish_batch(TopicArn=some, PublishBatchRequestEntries=entries)
    envelope = json.loads(received(dead_letters)["Body"])
    assert (envelope["Type"], envelope["TopicArn"], envelope["Message"]) == ("Notification", some, "hello")


@pytest.mark.parametrize("kept", ["a queue", "a dead-letter queue"])
def test_a_message_is_delivered_or_becomes_a_dead_letter_and_not_both(emulator: EmulatorServer, kept: str) -> None:
    some, own, dead_letters = topic(emulator), queue(emulator), queue(emulator)
    subscribe(some, own, **RAW, **redriven_to(dead_letters))
    delete(dead_letters if kept == "a queue" else own)
    emulator.client("sns").publish(TopicArn=some, Message="hello")
    left = own if kept == "a queue" else dead_letters
    assert received(left)["Body"] == "hello"
    assert left.counts() == (0, 1)


def test_a_message_without_any_queue_is_lost(emulator: EmulatorServer) -> None:
    some, gone, gone_too, dead_letters = topic(emulator), queue(emulator), queue(emulator), queue(emulator)
    subscribe(some, gone, **redriven_to(dead_letters))
    subscribe(some, gone_too)
    for each in (gone, gone_too, dead_letters):
        delete(each)
    assert emulator.client("sns").publish(TopicArn=some, Message="hello")["MessageId"]


def test_a_message_that_is_filtered_out_becomes_no_dead_letter(emulator: EmulatorServer) -> None:
    some, gone, dead_letters = topic(emulator), queue(emulator), queue(emulator)
    subscribe(some, gone, FilterPolicy=json.dumps({"type": ["image.ready"]}), **redriven_to(dead_letters))
    delete(gone)
    emulator.client("sns").publish(TopicArn=some, Message="no", MessageAttributes=texts(type="image.failed"))
    assert dead_letters.counts() == (0, 0)
    emulator.client("sns").publish(TopicArn=some, Message="yes", MessageAttributes=texts(type="image.ready"))
    assert json.loads(received(dead_letters)["Body"])["Message"] == "yes"


ELEVEN = texts(**{f"attribute{number}": "some" for number in range(11)})


def test_a_message_that_is_too_large_for_its_queue_becomes_a_dead_letter(emulator: EmulatorServer) -> None:
    some, small, dead_letters = topic(emulator), queue(emulator, MaximumMessageSize="1024"), queue(emulator)
    subscribe(some, small, **RAW, **redriven_to(dead_letters))
    sns = emulator.client("sns")
    sns.publish(TopicArn=some, Message="x" * 1024)
    assert small.counts() == (1, 0)
    sns.publish(TopicArn=some, Message="x" * 1025)
    assert (small.counts(), dead_letters.counts()) == ((1, 0), (1, 0))


def test_a_raw_message_has_ten_attributes_at_most(emulator: EmulatorServer) -> None:
    some, raw, other, dead_letters = topic(emulator), queue(emulator), queue(emulator), queue(emulator)
    subscribe(some, raw, **RAW, **redriven_to(dead_letters))
    subscribe(some, other)
    emulator.client("sns").publish(TopicArn=some, Message="many", MessageAttributes=ELEVEN)
    assert (raw.counts(), other.counts(), dead_letters.counts()) == ((0, 0), (1, 0), (1, 0))
    ten = dict(list(ELEVEN.items())[:10])
    emulator.client("sns").publish(TopicArn=some, Message="ten", MessageAttributes=ten)
    assert (raw.counts(), dead_letters.counts()) == ((1, 0), (1, 0))


def allow_sending(subscriber: Queue, topic_arn: str) -> None:
    statement = {
        "Effect": "Allow",
        "Principal": {"Service": "sns.amazonaws.com"},
        "Action": "sqs:SendMessage",
        "Resource": subscriber.arn,
        "Condition": {"ArnEquals": {"aws:SourceArn": topic_arn}},
    }
    policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    subscriber.server.client("sqs").set_queue_attributes(QueueUrl=subscriber.url, Attributes={"Policy": policy})


def test_a_message_that_a_queue_does_not_allow_becomes_a_dead_letter(enforcing: EmulatorServer) -> None:
    some, closed, dead_letters = topic(enforcing), queue(enforcing), queue(enforcing)
    subscribe(some, closed, **RAW, **redriven_to(dead_letters))
    sns = enforcing.client("sns")
    sns.publish(TopicArn=some, Message="lost")
    assert (closed.counts(), dead_letters.counts()) == ((0, 0), (0, 0))
    allow_sending(dead_letters, some)
    sns.publish(TopicArn=some, Message="redriven")
    assert (closed.counts(), dead_letters.counts()) == ((0, 0), (1, 0))
    allow_sending(closed, some)
    sns.publish(TopicArn=some, Message="delivered")
    assert (closed.counts(), dead_letters.counts()) == ((1, 0), (1, 0))


def test_a_stack_subscribes_a_queue_with_a_filter_and_dead_letters(emulator: EmulatorServer) -> None:
    def resources(wanted: str) -> dict[str, Any]:
        subscription = {
            "TopicArn": {"Ref": "Topic"},
            "Protocol": "sqs",
            "Endpoint": {"Fn::GetAtt": ["Queue", "Arn"]},
            "RawMessageDelivery": True,
            "FilterPolicyScope": "MessageAttributes",
            "FilterPolicy": {"type": [wanted], "tenant_id": ["t1"]},
            "RedrivePolicy": {"deadLetterTargetArn": {"Fn::GetAtt": ["DeadLetters", "Arn"]}},
        }
        return {
            "Topic": {"Type": "AWS::SNS::Topic", "Properties": {}},
            "Queue": {"Type": "AWS::SQS::Queue", "Properties": {}},
            "DeadLetters": {"Type": "AWS::SQS::Queue", "Properties": {}},
            "Subscription": {"Type": "AWS::SNS::Subscription", "Properties": subscription},
        }

    with stack(emulator, resources("image.ready")) as name:
        ids = physical_ids(emulator, name)
        own, dead_letters = (
            Queue(server=emulator, name=ids[logical].rsplit("/", 1)[1], url=ids[logical])
            for logical in ("Queue", "DeadLetters")
        )
        sns = emulator.client("sns")

        def publish(kind: str, tenant: str) -> None:
            attributes = texts(type=kind, tenant_id=tenant)
            sns.publish(TopicArn=ids["Topic"], Message=f"{kind} {tenant}", MessageAttributes=attributes)

        publish("image.ready", "t2")
        publish("image.failed", "t1")
        publish("image.ready", "t1")
        assert received(own)["Body"] == "image.ready t1"
        update_stack(emulator, name, resources("image.failed"))
        publish("image.ready", "t1")
        publish("image.failed", "t1")
        assert received(own)["Body"] == "image.failed t1"
        assert dead_letters.counts() == (0, 0)
        delete(own)
        publish("image.failed", "t1")
        assert received(dead_letters)["Body"] == "image.failed t1"


# topic_groups


def publish_batch(server: EmulatorServer, topic_arn: str, *entries: dict[str, Any]) -> None:
    numbered = [{"Id": str(number), "Message": "same", **entry} for number, entry in enumerate(entries)]
    answer = server.client("sns").publish_batch(TopicArn=topic_arn, PublishBatchRequestEntries=numbered)
    assert len(answer["Successful"]) == len(entries)


def groups(subscriber: Queue, number: int) -> list[Any]:
    """The groups of so many messages."""
    wait_until(lambda: subscriber.counts() == (number, 0), "all messages are there")
    return [message["Attributes"].get("MessageGroupId") for message in subscriber.receive()]


def test_gap_stock_drops_the_groups_of_a_batch(stock: EmulatorServer) -> None:
    some, own = topic(stock), queue(stock)
    subscribe(some, own)
    publish_batch(stock, some, {"MessageGroupId": "t1"})
    assert groups(own, 1) == [None]


def test_the_groups_of_a_batch_are_passed_on(emulator: EmulatorServer) -> None:
    some, own = topic(emulator), queue(emulator)
    subscribe(some, own, **RAW)
    same = {"MessageAttributes": texts(type="same")}
    publish_batch(
        emulator,
        some,
        {"MessageGroupId": "t1", **same},
        same,
        {"MessageGroupId": "t2", **same},
        {"MessageGroupId": "t1"},
    )
    assert groups(own, 4) == ["t1", None, "t2", "t1"]


def test_the_groups_of_a_batch_are_those_of_its_own_messages(emulator: EmulatorServer) -> None:
    some, own = topic(emulator), queue(emulator)
    subscribe(some, own)
    publish_batch(emulator, some, {"MessageGroupId": "t1"})
    emulator.client("sns").publish(TopicArn=some, Message="single")
    publish_batch(emulator, some, {})
    assert groups(own, 3) == ["t1", None, None]
