"""Alarms for the tests of the emulator, and the notifications of their topics."""

import json
from typing import Any
from uuid import uuid4

from local_aws.tests.emulator_server import EmulatorServer, wait_until
from local_aws.tests.queues import Queue, queue, topic


def alarm(server: EmulatorServer, **settings: Any) -> str:
    """Create an alarm on one datum above 0 in a minute, and return its name."""
    name = f"alarm-{uuid4().hex[:8]}"
    defaults = {
        "AlarmName": name,
        "Statistic": "Maximum",
        "Period": 60,
        "EvaluationPeriods": 1,
        "Threshold": 0,
        "ComparisonOperator": "GreaterThanThreshold",
        "TreatMissingData": "notBreaching",
    }
    if "ExtendedStatistic" in settings:
        del defaults["Statistic"]
    server.client("cloudwatch").put_metric_alarm(**{**defaults, **settings})
    return name


def described(server: EmulatorServer, name: str) -> dict[str, Any]:
    alarm: dict[str, Any] = server.client("cloudwatch").describe_alarms(AlarmNames=[name])["MetricAlarms"][0]
    return alarm


def await_state(server: EmulatorServer, name: str, expected: str) -> dict[str, Any]:
    def reached() -> dict[str, Any] | None:
        now = described(server, name)
        return now if now["StateValue"] == expected else None

    reached_alarm: dict[str, Any] = wait_until(reached, f"{name} is {expected}")
    return reached_alarm


def topic_with_queue(server: EmulatorServer) -> tuple[str, Queue]:
    """Create a topic, and a queue that gets what is published to it."""
    arn, subscriber = topic(server), queue(server)
    server.client("sns").subscribe(TopicArn=arn, Protocol="sqs", Endpoint=subscriber.arn)
    return arn, subscriber


def next_notification(subscriber: Queue) -> tuple[str, dict[str, Any]]:
    """Return the subject and the alarm of the next notification."""
    message = wait_until(lambda: subscriber.receive(limit=1), "a notification arrives")[0]
    subscriber.delete(message["ReceiptHandle"])
    envelope = json.loads(message["Body"])
    return envelope["Subject"], json.loads(envelope["Message"])
