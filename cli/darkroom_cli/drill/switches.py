"""The switches that a drill throws: each is read, set and put back, and what they were is plain data in between."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Protocol

from botocore.exceptions import ClientError

from darkroom.aws.images.images_table import to_item
from darkroom.aws.kernel.errors import code_of
from darkroom.domain.bulk.reconciliation import Difference, DifferenceKind, Reconciliation
from darkroom.domain.images.image import Source
from darkroom.domain.images.stored_by import original_key
from darkroom.domain.images.transitions import accept
from darkroom.domain.kernel.lanes import SLOW
from darkroom.domain.recipes.presets import PRESETS
from darkroom_cli.operator.operations.kernel.retry_transient import TransientRetry
from darkroom_cli.operator.operations.pauses.pause_work import in_force, pause_work
from darkroom_cli.operator.operations.pauses.resume_work import resume_work
from darkroom_cli.pauses import ports
from local_aws.stacks.running import RunningStack

type Value = bool | int | float | str | list[str] | None
"""The position of a switch, as JSON can hold it."""

DRILL_POLICY = "darkroom-drill"
"""The name of the inline policy with which a drill takes a permission from a role."""

PLANTED_FOR = "drill"
"""The tenant of a planted row."""

_PATIENCE_SECONDS = 300
_LOOK_SECONDS = 0.2
_NO_LIMIT = -1


class SwitchTimeout(Exception):
    """A switch did not take its new position in time."""


@dataclass(frozen=True, kw_only=True)
class Setting:
    """A switch that a drill throws: its kind and what it belongs to, by its logical id; where it was, and where the
    drill puts it."""

    kind: str
    target: str
    before: Value
    during: Value


class RestoreResult(StrEnum):
    """How a switch was put back."""

    RESTORED = "restored"
    AS_BEFORE = "as_before"
    CHANGED = "changed"


@dataclass(frozen=True, kw_only=True)
class Restoration:
    """What became of one switch: `CHANGED` if somebody else has set it to `now` meanwhile, and it was left so."""

    setting: Setting
    back: RestoreResult
    now: Value


class Switch(Protocol):
    """One kind of switch. `write` returns once the position is in force, and raises Stubborn if that takes too long."""

    def read(self, stack: RunningStack, target: str) -> Value:
        """The position now."""
        ...

    def write(self, stack: RunningStack, target: str, value: Value) -> None:
        """Sets it."""
        ...


def plan(stack: RunningStack, kind: str, target: str, during: Value) -> Setting:
    """The setting as it is now, and as it will be. Changes nothing."""
    return Setting(kind=kind, target=target, before=KINDS[kind].read(stack, target), during=during)


def throw(stack: RunningStack, setting: Setting) -> None:
    """Sets the switch as the drill wants it."""
    KINDS[setting.kind].write(stack, setting.target, setting.during)


def put_back(stack: RunningStack, setting: Setting, kinds: Mapping[str, Switch] | None = None) -> Restoration:
    """Sets the switch as it was, and reads it to be sure; what somebody else has set meanwhile stays.

    It may be done again, after any part of it. Raises Stubborn.
    """
    switch = (KINDS if kinds is None else kinds)[setting.kind]
    now = switch.read(stack, setting.target)
    if now == setting.before:
        return Restoration(setting=setting, back=RestoreResult.AS_BEFORE, now=now)
    if now != setting.during:  # guard: drill-foreign-change-kept
        return Restoration(setting=setting, back=RestoreResult.CHANGED, now=now)
    switch.write(stack, setting.target, setting.before)
    now = switch.read(stack, setting.target)
    if now != setting.before:  # guard: drill-restore-read-back
        raise SwitchTimeout(f"{setting.target} is {now!r} and not {setting.before!r}")
    return Restoration(setting=setting, back=RestoreResult.RESTORED, now=now)


def _await(is_so: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while not is_so():
        if time.monotonic() > deadline:
            raise SwitchTimeout(f"waited for five minutes in vain until {what}")
        time.sleep(_LOOK_SECONDS)


class _EventSource:
    """Whether an event source mapping reads its queue or stream.

    https://docs.aws.amazon.com/lambda/latest/api/API_UpdateEventSourceMapping.html
    """

    def read(self, stack: RunningStack, target: str) -> bool:
        settled = ("Enabled", "Disabled")
        _await(lambda: self._state(stack, target) in settled, f"{target} is enabled or disabled")
        return self._state(stack, target) == "Enabled"

    def write(self, stack: RunningStack, target: str, value: Value) -> None:
        stack.client("lambda").update_event_source_mapping(UUID=stack.physical_id(target), Enabled=bool(value))
        state = "Enabled" if value else "Disabled"
        _await(lambda: self._state(stack, target) == state, f"{target} is {state}")

    def _state(self, stack: RunningStack, target: str) -> str:
        return str(stack.client("lambda").get_event_source_mapping(UUID=stack.physical_id(target))["State"])


class _Concurrency:
    """How many invocations of a function are reserved; None for no reservation, 0 throttles all of them.

    https://docs.aws.amazon.com/lambda/latest/api/API_PutFunctionConcurrency.html
    """

    def read(self, stack: RunningStack, target: str) -> int | None:
        answer = stack.client("lambda").get_function_concurrency(FunctionName=stack.physical_id(target))
        reserved = answer.get("ReservedConcurrentExecutions")
        return None if reserved is None else int(reserved)

    def write(self, stack: RunningStack, target: str, value: Value) -> None:
        client, name = stack.client("lambda"), stack.physical_id(target)
        if value is None:
            client.delete_function_concurrency(FunctionName=name)
        else:
            client.put_function_concurrency(FunctionName=name, ReservedConcurrentExecutions=value)


class _Handler:
    """Which handler a function runs.

    https://docs.aws.amazon.com/lambda/latest/api/API_UpdateFunctionConfiguration.html
    """

    def read(self, stack: RunningStack, target: str) -> str:
        return str(_configuration(stack, target)["Handler"])

    def write(self, stack: RunningStack, target: str, value: Value) -> None:
        stack.client("lambda").update_function_configuration(FunctionName=stack.physical_id(target), Handler=value)
        await_update(stack, target)


class _Variable:
    """A function's environment variable, FUNCTION.VARIABLE; None if it has none of that name."""

    def read(self, stack: RunningStack, target: str) -> str | None:
        function, _, name = target.partition(".")
        value = _configuration(stack, function).get("Environment", {}).get("Variables", {}).get(name)
        return None if value is None else str(value)

    def write(self, stack: RunningStack, target: str, value: Value) -> None:
        function, _, name = target.partition(".")
        variables = dict(_configuration(stack, function).get("Environment", {}).get("Variables", {}))
        variables.pop(name, None)
        if value is not None:
            variables[name] = str(value)
        stack.client("lambda").update_function_configuration(
            FunctionName=stack.physical_id(function), Environment={"Variables": variables}
        )
        await_update(stack, function)


class _Schedule:
    """Whether a rule of EventBridge invokes its function.

    https://docs.aws.amazon.com/eventbridge/latest/APIReference/API_DisableRule.html
    """

    def read(self, stack: RunningStack, target: str) -> bool:
        return bool(stack.client("events").describe_rule(Name=stack.physical_id(target))["State"] == "ENABLED")

    def write(self, stack: RunningStack, target: str, value: Value) -> None:
        client, name = stack.client("events"), stack.physical_id(target)
        if value:
            client.enable_rule(Name=name)
        else:
            client.disable_rule(Name=name)


class _Denied:
    """The actions that a policy of the drill's own denies a role; None without that policy. The role's other policies
    stay as they are: a denial goes before what they allow.

    https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_evaluation-logic.html
    """

    def read(self, stack: RunningStack, target: str) -> list[str] | None:
        try:
            answer = stack.client("iam").get_role_policy(RoleName=stack.physical_id(target), PolicyName=DRILL_POLICY)
        except ClientError as error:
            if code_of(error) != "NoSuchEntity":
                raise
            return None
        document = answer["PolicyDocument"]
        statements = (json.loads(document) if isinstance(document, str) else document)["Statement"]
        return sorted(action for statement in statements for action in statement["Action"])

    def write(self, stack: RunningStack, target: str, value: Value) -> None:
        client, role = stack.client("iam"), stack.physical_id(target)
        if value is None:
            client.delete_role_policy(RoleName=role, PolicyName=DRILL_POLICY)
            return
        document = {"Version": "2012-10-17", "Statement": [{"Effect": "Deny", "Action": value, "Resource": "*"}]}
        client.put_role_policy(RoleName=role, PolicyName=DRILL_POLICY, PolicyDocument=json.dumps(document))


class _WriteLimit:
    """How many writes per second a table takes at most; None for no limit.

    https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_OnDemandThroughput.html
    """

    def read(self, stack: RunningStack, target: str) -> int | None:
        limit = self._table(stack, target).get("OnDemandThroughput", {}).get("MaxWriteRequestUnits", _NO_LIMIT)
        return None if limit == _NO_LIMIT else int(limit)

    def write(self, stack: RunningStack, target: str, value: Value) -> None:
        stack.client("dynamodb").update_table(
            TableName=stack.physical_id(target),
            OnDemandThroughput={"MaxWriteRequestUnits": _NO_LIMIT if value is None else value},
        )
        _await(lambda: self._table(stack, target)["TableStatus"] == "ACTIVE", f"{target} is active")

    def _table(self, stack: RunningStack, target: str) -> Mapping[str, Any]:
        table: Mapping[str, Any] = stack.client("dynamodb").describe_table(TableName=stack.physical_id(target))["Table"]
        return table


class _Threshold:
    """The threshold of an alarm on one metric.

    https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_PutMetricAlarm.html replaces the whole alarm.
    """

    def read(self, stack: RunningStack, target: str) -> float:
        return float(self._alarm(stack, target)["Threshold"])

    def write(self, stack: RunningStack, target: str, value: Value) -> None:
        client = stack.client("cloudwatch")
        known = client.meta.service_model.operation_model("PutMetricAlarm").input_shape.members
        alarm = {name: value for name, value in self._alarm(stack, target).items() if name in known}
        client.put_metric_alarm(**alarm | {"Threshold": value})

    def _alarm(self, stack: RunningStack, target: str) -> Mapping[str, Any]:
        name = stack.physical_id(target)
        (alarm,) = stack.client("cloudwatch").describe_alarms(AlarmNames=[name])["MetricAlarms"]
        described: Mapping[str, Any] = alarm
        return described


class _PlantedRow:
    """Whether the Images table has a row that only a newer version could read; its target is the row's id.

    It has a status that this version does not know. Nothing tells of it, because no filter of the stream knows its
    status either. Before it goes its time is over, so that `restore --from-stream` does not take it for a lost image.
    """

    def read(self, stack: RunningStack, target: str) -> bool:
        answer = stack.client("dynamodb").get_item(
            TableName=stack.physical_id("ImagesTable"), Key={"image_id": {"S": target}}, ConsistentRead=True
        )
        return "Item" in answer

    def write(self, stack: RunningStack, target: str, value: Value) -> None:
        client, table = stack.client("dynamodb"), stack.physical_id("ImagesTable")
        newer = accept(
            now=0,
            image_id=target,
            tenant_id=PLANTED_FOR,
            lane=SLOW.name,
            preset=None,
            recipe=PRESETS["standard"],
            fingerprint="drill",
            correlation_id="drill",
            source=Source(version_id="none", sha256="none", size_bytes=1, media_type="image/png"),
        )
        # guard: restore-drill-row-expiry
        planted = replace(newer, due_at=0, waiting_since=None, forget_at=None if value else 0)
        client.put_item(TableName=table, Item={**to_item(planted), "status": {"S": "frozen"}})
        if not value:
            client.delete_item(TableName=table, Key={"image_id": {"S": target}})


class _Difference:
    """Whether the reconciliation knows a confirmed difference of an image that there is not; its target is the image's
    id. The next night would forget it. `stack` has what operators' commands use."""

    def read(self, stack: Any, target: str) -> bool:
        return any(each.image_id == target for each in stack.reconciliations.differences())

    def write(self, stack: Any, target: str, value: Value) -> None:
        table = stack.reconciliations
        kind, key = DifferenceKind.ORIGINAL_WITHOUT_ROW, original_key(target)
        planted = Difference(kind=kind, image_id=target, key=key, first_seen=0, confirmed_at=0)
        (table.put if value else table.remove)(planted)
        row = table.get() or table.create(Reconciliation())
        confirmed = sum(each.confirmed_at is not None for each in table.differences())
        table.change(row, replace(row, confirmed=confirmed))


class _Pause:
    """Whether a tenant's work is paused, by what the commands do; its target is the tenant. `stack` has what operators'
    commands use."""

    def read(self, stack: Any, target: str) -> bool:
        return in_force(stack.pauses, "tenant", target) is not None

    def write(self, stack: Any, target: str, value: Value) -> None:
        patience = TransientRetry(pause=time.sleep, stop=lambda: False)
        if value:
            pause_work(ports.to_pause(stack, patience), "tenant", target, reason="a drill")
        else:
            resume_work(ports.to_resume(stack, patience), "tenant", target)


def _configuration(stack: RunningStack, function: str) -> Mapping[str, Any]:
    client, name = stack.client("lambda"), stack.physical_id(function)
    configuration: Mapping[str, Any] = client.get_function_configuration(FunctionName=name)
    return configuration


def await_update(stack: RunningStack, function: str) -> None:
    """Returns once a function has its new configuration. Raises Stubborn if that takes too long."""

    def is_in_force() -> bool:
        return bool(_configuration(stack, function).get("LastUpdateStatus", "Successful") == "Successful")

    _await(is_in_force, f"{function} has its new configuration")


KINDS: Mapping[str, Switch] = {
    "event_source": _EventSource(),
    "concurrency": _Concurrency(),
    "handler": _Handler(),
    "variable": _Variable(),
    "schedule": _Schedule(),
    "denied": _Denied(),
    "write_limit": _WriteLimit(),
    "threshold": _Threshold(),
    "planted_row": _PlantedRow(),
    "pause": _Pause(),
    "difference": _Difference(),
}


def words(kind: str, value: Value) -> str:
    """A position in words: "off", "no reservation"."""
    match kind, value:
        case ("event_source" | "schedule", position):
            return "on" if position else "off"
        case ("concurrency", None):
            return "no reservation"
        case ("write_limit", None):
            return "no limit"
        case ("denied", None):
            return "nothing denied"
        case ("denied", list(actions)):
            return f"{', '.join(actions)} denied"
        case ("planted_row" | "difference", position):
            return "there" if position else "not there"
        case ("pause", position):
            return "paused" if position else "not paused"
    return str(value)
