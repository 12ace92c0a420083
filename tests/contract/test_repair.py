"""What was changed by hand is set back on AWS, by moto: each kind of resource that `doctor --repair` writes."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import boto3
import pytest

from darkroom_cli.doctor import collect
from darkroom_cli.doctor.alarms import DEPTH
from darkroom_cli.doctor.drift import drifts
from darkroom_cli.doctor.facts import Facts
from darkroom_cli.doctor.repair import WRITES
from tests.contract.conftest import Aws
from tests.contract.drilled import ALARM, Stack
from tests.unit.cli.doctor.sound import SOUND

type Clients = Callable[[str], Any]


@dataclass(frozen=True, kw_only=True)
class Case:
    """A resource: what the template says of it, what somebody changes by hand, and which settings then differ."""

    kind: str
    name: str
    properties: dict[str, Any]
    by_hand: Callable[[Clients, str], Any]
    settings: set[str]


def change_function(client: Clients, name: str) -> None:
    variables = {"SLOW_CONCURRENCY": "2", "NEW": "1"}
    client("lambda").update_function_configuration(
        FunctionName=name, Timeout=3, MemorySize=128, Handler="other.handler", Environment={"Variables": variables}
    )
    client("lambda").put_function_concurrency(FunctionName=name, ReservedConcurrentExecutions=0)


def change_mapping(client: Clients, uuid: str) -> None:
    changed = {"Enabled": False, "BatchSize": 9, "FunctionResponseTypes": []}
    client("lambda").update_event_source_mapping(UUID=uuid, ScalingConfig={"MaximumConcurrency": 2}, **changed)


def change_queue(client: Clients, url: str) -> None:
    attributes = {"VisibilityTimeout": "1", "MessageRetentionPeriod": "60", "RedrivePolicy": ""}
    client("sqs").set_queue_attributes(QueueUrl=url, Attributes=attributes)


def change_alarm(client: Clients, name: str) -> None:
    client("cloudwatch").put_metric_alarm(**ALARM | {"Threshold": 1.0, "AlarmActions": [], "ActionsEnabled": False})


SUM: dict[str, Any] = {
    "Metrics": [
        {"Id": "dead_letters", "ReturnData": True, "Expression": "fast + slow"},
        *(
            {
                "Id": lane,
                "ReturnData": False,
                "MetricStat": {
                    "Period": 60,
                    "Stat": "Maximum",
                    "Metric": {
                        "Namespace": "AWS/SQS",
                        "MetricName": DEPTH,
                        "Dimensions": [{"Name": "QueueName", "Value": lane}],
                    },
                },
            }
            for lane in ("fast", "slow")
        ),
    ],
    "Threshold": 1.0,
    "EvaluationPeriods": 3,
    "ComparisonOperator": "GreaterThanOrEqualToThreshold",
}


def change_sum(client: Clients, name: str) -> None:
    """Leaves of an alarm on the sum of two metrics one of them."""
    one_metric = SUM["Metrics"][1]["MetricStat"]["Metric"] | {"Period": 60, "Statistic": "Maximum"}
    rest = {key: value for key, value in SUM.items() if key != "Metrics"}
    client("cloudwatch").put_metric_alarm(AlarmName=name.rpartition(":")[2], **rest, **one_metric)


def change_rule(client: Clients, name: str) -> None:
    client("events").put_rule(Name=name, ScheduleExpression="rate(1 day)", State="DISABLED")


def change_logs(client: Clients, name: str) -> None:
    client("logs").delete_retention_policy(logGroupName=name)


def change_table(client: Clients, name: str) -> None:
    client("dynamodb").update_table(TableName=name, DeletionProtectionEnabled=False)
    client("dynamodb").update_continuous_backups(
        TableName=name, PointInTimeRecoverySpecification={"PointInTimeRecoveryEnabled": False}
    )


DEAD = "arn:aws:sqs:us-east-1:123456789012:dead"
CASES = [
    Case(
        kind="AWS::Lambda::Function",
        name="Worker",
        properties={
            "Timeout": 60,
            "MemorySize": "512",  # from a parameter
            "Handler": "app.handler",
            "Environment": {"Variables": {"SLOW_CONCURRENCY": "10", "OTHER": "stays"}},
        },
        by_hand=change_function,
        settings={
            "Timeout",
            "MemorySize",
            "Handler",
            "ReservedConcurrentExecutions",
            "Environment.Variables.SLOW_CONCURRENCY",
            "Environment.Variables.OTHER",
            "Environment.Variables.NEW",
        },
    ),
    Case(
        kind="AWS::Lambda::EventSourceMapping",
        name="Mapping",
        properties={
            "BatchSize": 1,
            "ScalingConfig": {"MaximumConcurrency": "20"},
            "FunctionResponseTypes": ["ReportBatchItemFailures"],
        },
        by_hand=change_mapping,
        settings={"Enabled", "BatchSize", "ScalingConfig.MaximumConcurrency", "FunctionResponseTypes"},
    ),
    Case(
        kind="AWS::SQS::Queue",
        name="SlowQueue",
        properties={
            "VisibilityTimeout": 360,
            "MessageRetentionPeriod": 345_600,
            "RedrivePolicy": {"deadLetterTargetArn": DEAD, "maxReceiveCount": 5},
        },
        by_hand=change_queue,
        settings={
            "VisibilityTimeout",
            "MessageRetentionPeriod",
            "RedrivePolicy.deadLetterTargetArn",
            "RedrivePolicy.maxReceiveCount",
        },
    ),
    Case(
        kind="AWS::CloudWatch::Alarm",
        name="Alarm",
        properties={name: ALARM[name] for name in ("Threshold", "AlarmActions", "AlarmDescription", "Period")},
        by_hand=change_alarm,
        settings={"Threshold", "AlarmActions", "ActionsEnabled"},
    ),
    Case(kind="AWS::CloudWatch::Alarm", name="SumAlarm", properties=SUM, by_hand=change_sum, settings={"Metrics"}),
    Case(
        kind="AWS::Events::Rule",
        name="Rule",
        properties={"ScheduleExpression": "rate(1 minute)"},
        by_hand=change_rule,
        settings={"ScheduleExpression", "State"},
    ),
    Case(
        kind="AWS::Logs::LogGroup",
        name="Logs",
        properties={"RetentionInDays": 30},
        by_hand=change_logs,
        settings={"RetentionInDays"},
    ),
    Case(
        kind="AWS::DynamoDB::Table",
        name="ImagesTable",
        properties={
            "DeletionProtectionEnabled": True,
            "PointInTimeRecoverySpecification": {"PointInTimeRecoveryEnabled": True},
        },
        by_hand=change_table,
        settings={"DeletionProtectionEnabled", "PointInTimeRecoverySpecification.PointInTimeRecoveryEnabled"},
    ),
]


@pytest.fixture
def stack(stack: Stack, aws: Aws) -> Stack:
    stack.client("sqs").create_queue(QueueName="dead")
    stack.client("logs").create_log_group(logGroupName="/logs")
    stack.client("cloudwatch").put_metric_alarm(AlarmName="sum", **SUM)
    stack.ids.update({"SlowQueue": aws.slow_queue_url, "Logs": "/logs", "SumAlarm": "arn:x:alarm:sum"})
    object.__setattr__(stack, "clock", lambda: 0)
    return stack


def facts_of(stack: Stack, case: Case) -> Facts:
    """What doctor reads of the one resource, and what it was deployed with."""
    kinds = {case.name: (case.kind, stack.physical_id(case.name))}
    session: Any = boto3.session.Session(region_name=stack.region)
    copied: Any = replace(stack, client=session.client)  # clients of its own, which refuse to change anything
    for name, value in {"resources": kinds, "ids": stack.ids, "clock": lambda: 0}.items():
        object.__setattr__(copied, name, value)
    with ThreadPoolExecutor() as pool:
        reader: Any = collect._StackReader(copied, pool, lambda _: None)
        read = {
            "AWS::Lambda::Function": ("functions", lambda: reader._each(case.kind, reader._function)),
            "AWS::Lambda::EventSourceMapping": ("event_sources", lambda: reader._event_sources({}, {})),
            "AWS::SQS::Queue": ("queues", reader._queues),
            "AWS::CloudWatch::Alarm": ("alarms", reader._alarms),
            "AWS::Events::Rule": ("rules", lambda: reader._each(case.kind, reader._rule)),
            "AWS::Logs::LogGroup": ("log_groups", reader._log_groups),
            "AWS::DynamoDB::Table": ("tables", lambda: reader._each(case.kind, reader._table)),
        }
        group, look = read[case.kind]
        sections: dict[str, Any] = {group: look()}
    return replace(SOUND, types={case.name: case.kind}, deployed={case.name: case.properties}, **sections)


@pytest.mark.guards("drift-default-switch-compared")
@pytest.mark.guards("doctor-alarm-calculation", case="SumAlarm")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_what_was_changed_by_hand_is_set_back_to_what_was_deployed(stack: Stack, case: Case) -> None:
    operated: Any = stack
    case.by_hand(stack.client, stack.physical_id(case.name))
    changes = list(drifts(facts_of(stack, case)))
    assert {drift.setting for drift in changes} == case.settings
    for change in changes:
        WRITES[change.kind](operated, change)
    assert list(drifts(facts_of(stack, case))) == []


def test_an_alarm_on_a_sum_is_read_with_all_its_queues(stack: Stack) -> None:
    case = next(case for case in CASES if case.name == "SumAlarm")
    alarm = facts_of(stack, case).alarms["SumAlarm"]
    assert (alarm.metric, alarm.namespace, sorted(alarm.queues)) == (DEPTH, "AWS/SQS", ["fast", "slow"])


def test_the_rest_of_an_alarm_stays_as_it_was(stack: Stack) -> None:
    operated: Any = stack
    case = next(case for case in CASES if case.name == "Alarm")
    case.by_hand(stack.client, "unusual")
    for drift in drifts(facts_of(stack, case)):
        WRITES[drift.kind](operated, drift)
    (alarm,) = stack.client("cloudwatch").describe_alarms(AlarmNames=["unusual"])["MetricAlarms"]
    assert alarm | ALARM == alarm
