"""Sets back what was changed by hand since a stack was deployed: `doctor --repair`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import typer
from botocore.exceptions import ClientError

from darkroom_cli.doctor import collect
from darkroom_cli.doctor.drift import VARIABLES, Difference, drifts
from darkroom_cli.doctor.facts import CouldNotBeRead, Facts, Missing
from darkroom_cli.doctor.template import Unknown
from darkroom_cli.drill.switches import KINDS, SwitchTimeout, await_update
from darkroom_cli.drill.work import another_is_open, open_drills
from darkroom_cli.stack.operators import Stack
from darkroom_cli.terminal import display
from darkroom_client.client import ApiError

_WAS_DEPLOYED_AS = "it was deployed as"

type Write = Callable[[Stack, Difference], object]


def repair(stack: Stack, reading: Stack, *, only: Sequence[str], yes: bool, as_json: bool) -> None:
    """`doctor --repair`. `reading` is the same stack, by clients that from now on refuse to change anything."""
    with display.ProgressReport(display.errors()) as report, stack.explained():

        def on_progress(what: str) -> None:
            report.show("asking", completed=0, total=None, detail=what)

        facts = collect.gather(reading, on_progress)
        differences = _chosen(facts, only)
        if differences and (opened := open_drills(stack).find()) is not None:  # guard: drift-open-drill-excluded
            raise ApiError(another_is_open(stack, opened))
        failed: dict[str, str] = {}
        left = differences
        if yes and differences:  # guard: drift-repair-consent
            failed = _set_back(stack, differences)
            left = _chosen(collect.gather(reading, on_progress), only)
    unread = sorted({fact.reason for fact in vars(facts).values() if isinstance(fact, Missing)})
    if as_json:
        display.print_json(_document(stack, differences, left, failed, unread, yes=yes))
    else:
        _print(stack, differences, left, failed, unread, yes=yes)
    if unread or (yes and left):
        raise typer.Exit(1)


def _chosen(facts: Facts, only: Sequence[str]) -> list[Difference]:
    """The drifts to set back, a resource's together. Raises ApiError if that cannot be said, or a name is wrong."""
    if not facts.status.endswith("_COMPLETE"):  # guard: drift-no-repair-while-deploying
        raise ApiError(
            f"{facts.name} is {facts.status}: wait until its deployment has ended, or see docs/runbook.md, "
            "A bad deployment."
        )
    try:
        differences = sorted(drifts(facts), key=lambda difference: (difference.resource, difference.setting))
        if unknown := sorted(set(only) - facts.deployed.keys()):
            raise ApiError(f"{facts.name} has no resource {', '.join(unknown)}. Without --only all are set back.")
    except CouldNotBeRead as error:
        raise ApiError(f"What {facts.name} was deployed with could not be read: {error}") from error
    return [difference for difference in differences if not only or difference.resource in only]


def _set_back(stack: Stack, differences: Sequence[Difference]) -> dict[str, str]:
    """Sets each back, and says why by its name where that failed: one that cannot be set keeps none of the others."""
    failed: dict[str, str] = {}
    with stack.audit.action("repair", *map(_name, differences)) as audited:
        for difference in differences:
            try:
                WRITES[difference.kind](stack, difference)
            except (ClientError, SwitchTimeout, CouldNotBeRead) as error:  # guard: drift-repair-failure-isolated
                failed[_name(difference)] = str(error)
                audited.add(None, "failed")
            else:
                audited.add(_name(difference), "set_back")
    return failed


def _name(difference: Difference) -> str:
    return f"{difference.resource}.{difference.setting}"


# ── How each kind of resource is written ─────────────────────────────────────────────────────────────────────────────


def _function(stack: Stack, difference: Difference) -> None:
    if difference.setting.startswith(f"{VARIABLES}."):
        variable = difference.setting.removeprefix(f"{VARIABLES}.")
        KINDS["variable"].write(stack, f"{difference.resource}.{variable}", difference.expected)
    elif difference.setting == "ReservedConcurrentExecutions":
        KINDS["concurrency"].write(
            stack, difference.resource, None if difference.expected is None else int(difference.expected)
        )
    else:
        name = stack.physical_id(difference.resource)
        stack.client("lambda").update_function_configuration(FunctionName=name, **_argument(difference))
        await_update(stack, difference.resource)


def _event_source(stack: Stack, difference: Difference) -> None:
    if difference.setting == "Enabled":
        KINDS["event_source"].write(stack, difference.resource, _number(difference.expected))
    else:
        stack.client("lambda").update_event_source_mapping(
            UUID=stack.physical_id(difference.resource), **_argument(difference)
        )
        KINDS["event_source"].read(stack, difference.resource)  # which waits until it is in force


def _queue(stack: Stack, difference: Difference) -> None:
    ((name, value),) = _argument(difference).items()
    text = "" if value is None else json.dumps(value) if isinstance(value, Mapping) else str(value)
    stack.client("sqs").set_queue_attributes(QueueUrl=stack.physical_id(difference.resource), Attributes={name: text})


_OF_ONE_METRIC = {"MetricName", "Namespace", "Statistic", "ExtendedStatistic", "Period", "Dimensions", "Unit"}
"""What an alarm that calculates with several metrics must not have."""


def _alarm(stack: Stack, difference: Difference) -> None:
    client, name = stack.client("cloudwatch"), stack.physical_id(difference.resource).rpartition(":alarm:")[2]
    kind = "MetricAlarm" if difference.kind == "AWS::CloudWatch::Alarm" else "CompositeAlarm"
    (alarm,) = client.describe_alarms(AlarmNames=[name], AlarmTypes=[kind])[f"{kind}s"]
    put = client.put_metric_alarm if kind == "MetricAlarm" else client.put_composite_alarm
    settings = _known(client, f"Put{kind}", alarm) | _argument(difference)
    put(
        **{name: value for name, value in settings.items() if not settings.get("Metrics") or name not in _OF_ONE_METRIC}
    )


def _rule(stack: Stack, difference: Difference) -> None:
    client, name = stack.client("events"), stack.physical_id(difference.resource)
    if difference.setting == "State":
        KINDS["schedule"].write(stack, difference.resource, difference.expected == "ENABLED")
    else:
        client.put_rule(**_known(client, "PutRule", client.describe_rule(Name=name)) | _argument(difference))


def _log_group(stack: Stack, difference: Difference) -> None:
    client, name = stack.client("logs"), stack.physical_id(difference.resource)
    client.put_retention_policy(logGroupName=name, retentionInDays=int(difference.expected))


def _table(stack: Stack, difference: Difference) -> None:
    client, name = stack.client("dynamodb"), stack.physical_id(difference.resource)
    ((setting, value),) = _argument(difference).items()
    match setting:
        case "PointInTimeRecoverySpecification":
            client.update_continuous_backups(TableName=name, PointInTimeRecoverySpecification=value)
        case "TimeToLiveSpecification":
            value = value or {"Enabled": False, "AttributeName": difference.actual}
            client.update_time_to_live(TableName=name, TimeToLiveSpecification=value)
        case _:
            client.update_table(TableName=name, DeletionProtectionEnabled=value)


WRITES: Mapping[str, Write] = {
    "AWS::Lambda::Function": _function,
    "AWS::Lambda::EventSourceMapping": _event_source,
    "AWS::SQS::Queue": _queue,
    "AWS::CloudWatch::Alarm": _alarm,
    "AWS::CloudWatch::CompositeAlarm": _alarm,
    "AWS::Events::Rule": _rule,
    "AWS::Logs::LogGroup": _log_group,
    "AWS::DynamoDB::Table": _table,
}


def _argument(difference: Difference) -> dict[str, Any]:
    """The argument that sets it, under the template's name: of `RedrivePolicy.maxReceiveCount` the whole policy,
    because its parts cannot be set alone."""
    name, _, inner = difference.setting.partition(".")
    return {name: _number(difference.properties.get(name) if inner else difference.expected)}


def _number(value: Any) -> Any:
    """A value as operations take it: what comes from a parameter is text in a template. Raises CouldNotBeRead for what
    only CloudFormation knows."""
    match value:
        case Unknown():
            raise CouldNotBeRead(
                "only CloudFormation knows the whole of it: docs/runbook.md, Drift, has its change set"
            )
        case list():
            return [_number(inner) for inner in value]
        case dict():
            return {name: _number(inner) for name, inner in value.items()}
        case str() if value.isdecimal():
            return int(value)
        case "true" | "false":
            return value == "true"
    return value


def _known(client: Any, operation: str, answer: Mapping[str, Any]) -> dict[str, Any]:
    """Of an answer, what the operation takes that writes all of it again."""
    known = client.meta.service_model.operation_model(operation).input_shape.members
    return {name: value for name, value in answer.items() if name in known}


# ── What is said ─────────────────────────────────────────────────────────────────────────────────────────────────────


def _print(
    stack: Stack,
    differences: Sequence[Difference],
    left: Sequence[Difference],
    failed: Mapping[str, str],
    unread: Sequence[str],
    *,
    yes: bool,
) -> None:
    out = display.output()
    for line in _lines(stack, differences, left, failed, yes=yes):
        display.line(out, display.printable(line))
    for reason in unread:
        display.line(out, display.printable(f"Not all could be compared: {reason}"))


def _lines(
    stack: Stack, differences: Sequence[Difference], left: Sequence[Difference], failed: Mapping[str, str], *, yes: bool
) -> Iterator[str]:
    if not differences:
        yield f"Nothing of {stack.name} that can be set back was changed since it was deployed."
        yield f"What else differs: ./darkroom doctor{stack.options}, and docs/runbook.md, Drift."
        return
    settings = display.of(len(differences), "setting")
    yield f"{'Changed' if yes else 'Would change'} {settings} of {stack.name} to what it was deployed with:"
    remaining = set(map(_name, left))
    for difference in differences:
        yield f"  {difference.resource}: {difference.words(_WAS_DEPLOYED_AS)}"
        if yes and _name(difference) in remaining:
            yield f"    not set back: {failed.get(_name(difference), 'it has another value again, or still')}"
    if yes:
        yield f"Examine it: ./darkroom doctor{stack.options}"
    else:
        yield "Nothing was changed. --yes does it; --only RESOURCE leaves out the others."


def _document(
    stack: Stack,
    differences: Sequence[Difference],
    left: Sequence[Difference],
    failed: Mapping[str, str],
    unread: Sequence[str],
    *,
    yes: bool,
) -> dict[str, Any]:
    remaining = set(map(_name, left))
    return {
        "stack": stack.name,
        "done": yes,
        "settings": [
            {
                "resource": difference.resource,
                "setting": difference.setting,
                "problem": difference.words(_WAS_DEPLOYED_AS),
                "set_back": yes and _name(difference) not in remaining,
                "failure": failed.get(_name(difference)),
            }
            for difference in differences
        ],
        "unread": list(unread),
    }
