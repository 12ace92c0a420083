"""What was changed by hand: where a stack differs from a template, and from the one that it was deployed with.

Deploying again does not mend that: CloudFormation compares templates with each other, and not with what there is
(https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/using-cfn-stack-drift.html).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from darkroom.ports.kernel import UnreadableRow
from darkroom_cli.doctor.facts import AlarmFacts, CouldNotBeRead, Facts
from darkroom_cli.doctor.template import UNKNOWN, agree, at

VARIABLES = "Environment.Variables"

type LiveSettings = Mapping[str, Any]
type ComparedSettings = Mapping[str, tuple[str, Callable[[Any], LiveSettings]]]
"""The settings of each kind of resource that are compared: by the template's property, what the stack has."""


@dataclass(frozen=True, kw_only=True)
class Difference:
    """One setting of a resource that is not what a template says, or what the words of `because` say instead.
    `properties` are all that the template says of the resource."""

    resource: str
    kind: str
    setting: str
    expected: Any
    actual: Any
    properties: Mapping[str, Any]
    because: str = ""

    def words(self, template_says: str) -> str:
        """It in a clause. What a variable holds is only shown beside a value that the template gives it, and not where
        that names a secret: anybody may have put anything there."""
        variable = self.setting.removeprefix(f"{VARIABLES}.")
        if variable == self.setting:
            says = self.because or template_says
            return f"its {self.setting} is {_shown(self.actual)}, and {says} {_shown(self.expected)}"
        actual = _shown(self.actual)
        # guard: drift-secret-not-shown
        if self.actual is not None and (self.expected is None or is_hidden(str(self.expected), str(self.actual))):
            actual = "something else"
        return f"its variable {variable} is {actual}, and {template_says} {_shown(self.expected)}"


def is_hidden(expected: str, actual: str) -> bool:
    """Whether a variable that should name a secret holds something else: perhaps the secret."""
    return ":secretsmanager:" in expected and not actual.startswith("arn:")


def _alarm(alarm: AlarmFacts) -> LiveSettings:
    return {"ActionsEnabled": alarm.is_acting, "AlarmActions": alarm.actions, "AlarmDescription": alarm.description}


SETTINGS: ComparedSettings = {
    "AWS::SQS::Queue": (
        "queues",
        lambda queue: {
            "VisibilityTimeout": queue.visibility_seconds,
            "MessageRetentionPeriod": queue.retention_seconds,
            "RedrivePolicy.maxReceiveCount": queue.max_receives,
            "RedrivePolicy.deadLetterTargetArn": queue.dead_letters,
        },
    ),
    "AWS::Lambda::Function": (
        "functions",
        lambda function: {
            "Timeout": function.timeout_seconds,
            "MemorySize": function.memory_mb,
            "Runtime": function.runtime,
            "Handler": function.handler,
            "ReservedConcurrentExecutions": function.reserved,
        },
    ),
    "AWS::Lambda::EventSourceMapping": (
        "event_sources",
        lambda source: {
            "BatchSize": source.batch_size,
            "ScalingConfig.MaximumConcurrency": source.maximum_concurrency,
            "MaximumRetryAttempts": source.maximum_retries,
            "MaximumRecordAgeInSeconds": source.maximum_age_seconds,
        },
    ),
    "AWS::CloudWatch::Alarm": (
        "alarms",
        lambda alarm: {
            "Namespace": alarm.namespace,
            "MetricName": alarm.metric,
            "Metrics": alarm.calculation,  # guard: doctor-alarm-calculation
            "Threshold": alarm.threshold,
            "Period": alarm.period_seconds,
            "EvaluationPeriods": alarm.periods,
            "ComparisonOperator": alarm.comparison,
            "TreatMissingData": alarm.missing_data,
        },
    ),
    "AWS::Events::Rule": ("rules", lambda rule: {"ScheduleExpression": rule.schedule}),
    "AWS::Logs::LogGroup": ("log_groups", lambda group: {"RetentionInDays": group.retention_days}),
    "AWS::DynamoDB::Table": ("tables", lambda table: {"TimeToLiveSpecification.AttributeName": table.expires_by}),
}
"""What the line `settings` asks."""

SWITCHES: ComparedSettings = {
    "AWS::Lambda::Function": (
        "functions",
        lambda function: {"TracingConfig.Mode": "Active" if function.is_traced else "PassThrough"},
    ),
    "AWS::Lambda::EventSourceMapping": (
        "event_sources",
        lambda source: {
            "Enabled": source.is_enabled,
            "MaximumBatchingWindowInSeconds": source.window_seconds,
            "FunctionResponseTypes": ["ReportBatchItemFailures"] * source.reports_items,
        },
    ),
    "AWS::CloudWatch::Alarm": ("alarms", _alarm),
    "AWS::CloudWatch::CompositeAlarm": ("alarms", _alarm),
    "AWS::Events::Rule": ("rules", lambda rule: {"State": "ENABLED" if rule.is_enabled else "DISABLED"}),
    "AWS::DynamoDB::Table": (
        "tables",
        lambda table: {
            "DeletionProtectionEnabled": table.is_protected,
            "PointInTimeRecoverySpecification.PointInTimeRecoveryEnabled": table.is_recoverable,
        },
    ),
}
"""What lines of their own ask."""

_DEFAULTS: Mapping[str, Any] = {
    "ReservedConcurrentExecutions": None,
    "RedrivePolicy.deadLetterTargetArn": None,
    "TimeToLiveSpecification.AttributeName": None,
    "Enabled": True,  # guard: drift-default-switch-compared
    "ActionsEnabled": True,
    "State": "ENABLED",
}
"""What a resource has where the template does not say; of other settings that is not asked."""


_WHILE_PAUSED = "while its lane is paused it should be"


def differences(
    facts: Facts, name: str, kind: str, properties: Mapping[str, Any], table: ComparedSettings
) -> Iterator[Difference]:
    """Where a resource is not what the properties of a template say, as far as they are known."""
    group, live = table.get(kind, ("", None))
    if live is None or name not in getattr(facts, group):
        return
    has = dict(live(getattr(facts, group)[name]))
    expected = {path: at(properties, path) for path in has}
    expected = {path: _DEFAULTS.get(path) if value is None else value for path, value in expected.items()}
    has = {path: actual for path, actual in has.items() if expected[path] is not None or path in _DEFAULTS}
    if kind == "AWS::Lambda::Function" and table is SETTINGS:
        written, deployed = at(properties, VARIABLES) or {}, facts.functions[name].variables
        for variable in sorted((written.keys() | deployed.keys()) if written is not UNKNOWN else ()):
            has[f"{VARIABLES}.{variable}"] = deployed.get(variable)
            expected[f"{VARIABLES}.{variable}"] = written.get(variable)
    because = ""
    if kind == "AWS::Lambda::EventSourceMapping" and "Enabled" in has and (pause := facts.pause_of(name)) is not None:
        expected["Enabled"], because = False, _WHILE_PAUSED  # guard: drift-paused-lane-stays-off
        if isinstance(pause, UnreadableRow):
            del has["Enabled"]  # guard: drift-unreadable-pause-left
    for path, actual in has.items():
        if not agree(expected[path], actual):
            yield Difference(
                resource=name,
                kind=kind,
                setting=path,
                expected=expected[path],
                actual=actual,
                properties=properties,
                because=because if path == "Enabled" else "",
            )


def drifts(facts: Facts) -> Iterator[Difference]:
    """What was changed by hand since the stack was deployed, of what `doctor` can set back. What could not be read is
    left out. Raises CouldNotBeRead without the template that was deployed."""
    for name, properties in facts.deployed.items():
        for table in (SETTINGS, SWITCHES):
            with suppress(CouldNotBeRead):
                yield from differences(facts, name, facts.types.get(name, ""), properties, table)


_OF_POLICIES = ("Policy", "Subscription")
_NAMED_BY_CONTENT = frozenset({"Code", "Content", "Layers", "DefinitionString", "DefinitionS3Location", "Tags"})


def is_written_alike(facts: Facts, name: str) -> bool:
    """Whether this checkout says of a resource, and of policies, what it was deployed with: deploying it would then
    change nothing there. Raises CouldNotBeRead without the template that was deployed."""
    kinds = facts.checkout.types
    related = {name, *(logical_id for logical_id in facts.deployed if kinds.get(logical_id, "").endswith(_OF_POLICIES))}
    written = facts.checkout.resources
    return all(
        (logical_id in written) is (logical_id in facts.deployed)
        and _alike(written.get(logical_id), facts.deployed.get(logical_id))
        for logical_id in related
    )


def _alike(left: Any, right: Any) -> bool:
    if UNKNOWN in (left, right):
        return True
    match left, right:
        case dict(), dict():
            names = (left.keys() | right.keys()) - _NAMED_BY_CONTENT
            return all(_alike(left.get(name), right.get(name)) for name in names)
        case list(), list():
            return len(left) == len(right) and all(map(_alike, left, right))
    return agree(left, right)


def _shown(value: Any) -> str:
    match value:
        case None:
            return "nothing"
        case list() | tuple():
            return ", ".join(map(str, value)) or "nothing"
    return str(value)
