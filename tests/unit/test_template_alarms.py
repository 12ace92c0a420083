"""The invariants of the template's alarms: failures are noticed, reported to the right people, and explained."""

from __future__ import annotations

import re
from typing import Any

import pytest

from checks.expand_template import referred, resources
from checks.report import ROOT
from darkroom.domain.hold import LANE_DELAY_SECONDS
from darkroom.domain.lanes import LANES, Lane
from darkroom.domain.retry import MAX_ATTEMPTS, RetryPolicy
from darkroom.domain.transitions import SWEEP_INTERVAL_SECONDS
from darkroom.operations.sweep_due_images import POSTPONED_SECONDS
from tests.unit.test_template import CONSUMERS

ALARMS = resources("AWS::CloudWatch::Alarm")
FUNCTIONS = resources("AWS::Lambda::Function")
RUNBOOK = (ROOT / "docs" / "runbook.md").read_text()

OWN = {"Fn::Sub": "Darkroom/${AWS::StackName}"}
"""The namespace of our own metrics."""

TOPICS = {
    "Late": "WarningAlarms",
    "Shed": "CriticalAlarms",
    "Errors": "WarningAlarms",
    "Throttles": "WarningAlarms",
    "Expiring": "WarningAlarms",
    "Stuck": "CriticalAlarms",
    "Failing": "CriticalAlarms",
    "Failures": "CriticalAlarms",
    "DeadLetters": "CriticalAlarms",
    "Counted": "CriticalAlarms",
    "Unreadable": "CriticalAlarms",
    "Unpublished": "CriticalAlarms",
}
"""Who is notified, by the last words of an alarm's name."""

AWS_METRICS: dict[tuple[str, str], tuple[str, str, Any]] = {
    ("AWS/SQS", "ApproximateNumberOfMessagesVisible"): ("QueueName", "AWS::SQS::Queue", "QueueName"),
    ("AWS/SQS", "ApproximateAgeOfOldestMessage"): ("QueueName", "AWS::SQS::Queue", "QueueName"),
    ("AWS/Lambda", "Errors"): ("FunctionName", "AWS::Lambda::Function", None),
    ("AWS/Lambda", "Throttles"): ("FunctionName", "AWS::Lambda::Function", None),
    ("AWS/Lambda", "IteratorAge"): ("FunctionName", "AWS::Lambda::Function", None),
    ("AWS/States", "ExecutionsFailed"): ("StateMachineArn", "AWS::StepFunctions::StateMachine", None),
    ("AWS/ApiGateway", "5xx"): ("ApiId", "AWS::ApiGatewayV2::Api", None),
}
"""Each AWS metric with its one dimension, the resource that this names, and the attribute that gives the name."""


def watching(namespace: Any, metric: str, **dimensions: Any) -> dict[str, dict[str, Any]]:
    """The alarms on one metric with exactly these dimensions."""
    return {
        name: alarm
        for name, alarm in ALARMS.items()
        if (alarm["Namespace"], alarm["MetricName"]) == (namespace, metric)
        and {dimension["Name"]: dimension["Value"] for dimension in alarm["Dimensions"]} == dimensions
    }


def topic_of(name: str) -> str:
    """The topic that an alarm's name implies."""
    (topic,) = [topic for words, topic in TOPICS.items() if name.endswith(f"{words}Alarm")]
    return topic


def sentence(alarm: dict[str, Any]) -> tuple[Any, ...]:
    """An alarm's rule: "the maximum of 60 s, 3 of 3 times, …"."""
    of = alarm["EvaluationPeriods"]
    return (
        alarm["Statistic"],
        alarm["Period"],
        (alarm.get("DatapointsToAlarm", of), of),
        {"GreaterThanThreshold": ">", "GreaterThanOrEqualToThreshold": ">="}[alarm["ComparisonOperator"]],
        alarm["Threshold"],
        alarm["TreatMissingData"],
    )


def told(alarms: dict[str, dict[str, Any]]) -> dict[str, tuple[Any, ...]]:
    """Each alarm's rule, by its name."""
    return {name: sentence(alarm) for name, alarm in alarms.items()}


@pytest.mark.parametrize("lane", [*LANES, "hold", "upload"])
def test_dead_letters_are_noticed_by_sqs_and_by_the_sweeper_and_before_they_expire(lane: str) -> None:
    queue = f"{lane.capitalize()}DeadLetters"
    by_sqs = watching("AWS/SQS", "ApproximateNumberOfMessagesVisible", QueueName={"Fn::GetAtt": [queue, "QueueName"]})
    assert {f"{queue}Alarm": ("Maximum", 60, (1, 1), ">=", 1, "notBreaching")} == told(by_sqs)
    by_sweeps = watching(OWN, "DeadLetters", service="darkroom", queue=lane)
    assert {f"{queue}CountedAlarm": ("Maximum", 60, (1, 1), ">=", 1, "ignore")} == told(by_sweeps)
    by_age = watching(OWN, "OldestDeadLetterSeconds", service="darkroom", queue=lane)
    retention_seconds = resources("AWS::SQS::Queue")[queue]["MessageRetentionPeriod"]
    assert {
        f"{queue}ExpiringAlarm": ("Maximum", 21_600, (1, 1), ">=", retention_seconds - 2 * 86_400, "ignore")
    } == told(by_age)


@pytest.mark.parametrize("consumer", CONSUMERS)
def test_what_a_consumer_gave_up_is_noticed(consumer: str) -> None:
    queue = f"{consumer}DeadLetters"
    by_sqs = watching("AWS/SQS", "ApproximateNumberOfMessagesVisible", QueueName={"Fn::GetAtt": [queue, "QueueName"]})
    assert {f"{queue}Alarm": ("Maximum", 60, (1, 1), ">=", 1, "notBreaching")} == told(by_sqs)


def test_events_that_are_not_published_are_noticed_long_before_the_stream_forgets_them() -> None:
    late = watching("AWS/Lambda", "IteratorAge", FunctionName={"Ref": "PublishEventsFunction"})
    assert told(late) == {"EventsStuckAlarm": ("Maximum", 60, (3, 3), ">", 900_000, "notBreaching")}
    notes = {"Fn::GetAtt": ["UnpublishedEvents", "QueueName"]}
    noted = watching("AWS/SQS", "ApproximateNumberOfMessagesVisible", QueueName=notes)
    assert told(noted) == {"EventsUnpublishedAlarm": ("Maximum", 60, (1, 1), ">=", 1, "notBreaching")}


@pytest.mark.parametrize("lane", LANES.values(), ids=LANES)
def test_a_lane_that_breaks_its_service_level_warns_and_then_pages(lane: Lane) -> None:
    name = lane.name.capitalize()
    # The retries of one failing image are no reason to wake anybody.
    retries_seconds = sum(RetryPolicy().delay_seconds(attempt, 0) for attempt in range(1, MAX_ATTEMPTS))
    stuck_seconds = max(3 * lane.sla_seconds, retries_seconds)
    # A silent sweeper is as bad as one that says that images wait.
    assert told(watching(OWN, "OldestUnfinishedSeconds", service="darkroom", lane=lane.name)) == {
        f"{name}ImagesLateAlarm": ("Maximum", 60, (3, 3), ">", lane.sla_seconds, "breaching"),
        f"{name}ImagesStuckAlarm": ("Maximum", 60, (5, 5), ">", stuck_seconds, "breaching"),
    }
    queue = f"{name}Queue"
    retention_seconds = resources("AWS::SQS::Queue")[queue]["MessageRetentionPeriod"]
    by_sqs = watching("AWS/SQS", "ApproximateAgeOfOldestMessage", QueueName={"Fn::GetAtt": [queue, "QueueName"]})
    assert told(by_sqs) == {
        f"{name}MessagesLateAlarm": ("Maximum", 60, (3, 3), ">", lane.sla_seconds, "notBreaching"),
        f"{name}MessagesStuckAlarm": ("Maximum", 60, (5, 5), ">", stuck_seconds, "notBreaching"),
        f"{name}MessagesExpiringAlarm": ("Maximum", 300, (1, 1), ">=", retention_seconds - 86_400, "notBreaching"),
    }


@pytest.mark.parametrize(("name", "stuck_seconds"), [("Hold", LANE_DELAY_SECONDS), ("Upload", 900)])
def test_what_is_to_be_held_and_what_was_uploaded_may_not_wait_for_long(name: str, stuck_seconds: int) -> None:
    queue = f"{name}Queue"
    by_sqs = watching("AWS/SQS", "ApproximateAgeOfOldestMessage", QueueName={"Fn::GetAtt": [queue, "QueueName"]})
    retention_seconds = resources("AWS::SQS::Queue")[queue]["MessageRetentionPeriod"]
    assert told(by_sqs) == {
        f"{name}MessagesLateAlarm": ("Maximum", 60, (3, 3), ">", 300, "notBreaching"),
        f"{name}MessagesStuckAlarm": ("Maximum", 60, (5, 5), ">", stuck_seconds, "notBreaching"),
        f"{name}MessagesExpiringAlarm": ("Maximum", 300, (1, 1), ">=", retention_seconds - 86_400, "notBreaching"),
    }


def test_a_batch_that_cannot_be_released_pages() -> None:
    failed = watching("AWS/States", "ExecutionsFailed", StateMachineArn={"Ref": "HoldBatchStateMachine"})
    assert told(failed) == {"HoldBatchFailuresAlarm": ("Sum", 300, (1, 1), ">=", 1, "notBreaching")}


@pytest.mark.parametrize("function", FUNCTIONS)
def test_every_functions_errors_and_throttles_are_noticed(function: str) -> None:
    errors = watching("AWS/Lambda", "Errors", FunctionName={"Ref": function})
    throttles = watching("AWS/Lambda", "Throttles", FunctionName={"Ref": function})
    assert errors and throttles
    for alarm in (errors | throttles).values():
        assert (alarm["Statistic"], alarm["Threshold"], alarm["TreatMissingData"]) == ("Sum", 1, "notBreaching")


def test_two_failed_sweeps_in_a_row_page() -> None:
    errors = watching("AWS/Lambda", "Errors", FunctionName={"Ref": "SweepDueImagesFunction"})
    assert told(errors) == {"SweepDueImagesFailingAlarm": ("Sum", 60, (2, 3), ">=", 1, "notBreaching")}


def test_rows_that_cannot_be_read_page_for_as_long_as_sweeps_meet_them() -> None:
    (alarm,) = watching(OWN, "RowsUnreadable", service="darkroom").values()
    assert sentence(alarm) == ("Maximum", 60, (1, 15), ">=", 1, "ignore")
    between_looks_seconds = POSTPONED_SECONDS + SWEEP_INTERVAL_SECONDS
    assert alarm["Period"] * alarm["EvaluationPeriods"] > between_looks_seconds, "or it would say OK in between"


def test_an_api_that_refuses_requests_warns_and_then_pages() -> None:
    assert told(watching("AWS/ApiGateway", "5xx", ApiId={"Ref": "Api"})) == {
        "ApiErrorsAlarm": ("Sum", 300, (1, 1), ">=", 3, "notBreaching"),
        "ApiFailingAlarm": ("Sum", 60, (5, 5), ">=", 1, "notBreaching"),
    }


def test_an_alarm_and_its_end_are_told_to_the_topic_that_its_name_promises() -> None:
    for name, alarm in ALARMS.items():
        told_to = [{"Ref": topic_of(name)}]
        assert (alarm["AlarmActions"], alarm["OKActions"]) == (told_to, told_to), name


@pytest.mark.parametrize("topic", sorted(set(TOPICS.values())))
def test_every_topic_reaches_the_address_that_the_deployer_gave(topic: str) -> None:
    (subscription,) = [
        subscription
        for subscription in resources("AWS::SNS::Subscription").values()
        if subscription["TopicArn"] == {"Ref": topic}
    ]
    assert (subscription["Protocol"], subscription["Endpoint"]) == ("email", {"Ref": "AlarmEmail"})


def test_no_alarm_watches_a_metric_of_aws_that_does_not_exist() -> None:
    for name, alarm in ALARMS.items():
        if alarm["Namespace"] != OWN:
            dimension, kind, attribute = AWS_METRICS[alarm["Namespace"], alarm["MetricName"]]
            (given,) = alarm["Dimensions"]
            resource = referred(given["Value"])
            reference = {"Ref": resource} if attribute is None else {"Fn::GetAtt": [resource, attribute]}
            assert given == {"Name": dimension, "Value": reference} and resource in resources(kind), name


def test_our_own_metrics_are_looked_for_where_the_functions_put_them() -> None:
    # tests/contract/test_metrics.py compares their names and dimensions with what is emitted.
    for function in FUNCTIONS.values():
        assert function["Environment"]["Variables"]["POWERTOOLS_METRICS_NAMESPACE"] == OWN
        assert function["Environment"]["Variables"]["POWERTOOLS_SERVICE_NAME"] == "darkroom"


def test_every_alarm_is_one_that_cloudwatch_takes_and_every_stack_can_have() -> None:
    for name, alarm in ALARMS.items():
        assert "Metrics" not in alarm, f"{name}: metric math is unknown to the embedded stack"
        assert alarm["Period"] % 60 == 0 and alarm["Period"] * alarm["EvaluationPeriods"] <= 86_400, name
        assert "AlarmName" not in alarm, f"{name}: two stacks in one account could not both have it"


def sections() -> dict[str, str]:
    """The runbook's sections by their anchors."""
    parts = re.split(r"^## (.+)$", RUNBOOK, flags=re.MULTILINE)[1:]
    return {
        re.sub(r"[^a-z0-9 -]", "", heading.lower()).strip().replace(" ", "-"): text
        for heading, text in zip(parts[::2], parts[1::2], strict=True)
    }


def test_every_alarm_leads_to_the_runbooks_section_that_names_it() -> None:
    for name, alarm in ALARMS.items():
        found = re.search(r"\. See docs/runbook\.md#([a-z-]+)\.$", alarm["AlarmDescription"])
        assert found, f"{name}: whoever is paged reads the description first"
        assert f"`{name}`" in sections()[found[1]], name


def test_the_runbook_names_no_alarm_that_is_gone() -> None:
    assert set(re.findall(r"\b[A-Z]\w+Alarm\b", RUNBOOK)) == ALARMS.keys()
