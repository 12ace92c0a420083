"""Tells of the local stack's alarms as they fire and clear: on AWS a mail would come, here the window says it."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError
from rich.console import Console

from darkroom_cli.operator.aws.alarms import alarm_of
from darkroom_cli.operator.domain.observation import Alarm, causes_of, incident_first
from darkroom_cli.terminal import display

if TYPE_CHECKING:
    from mypy_boto3_cloudwatch import CloudWatchClient

    from local_aws.stacks.running import RunningStack

_SECONDS_BETWEEN_LOOKS = 2.0
_LOOKS_AT_SWEEPER, _SECONDS_FOR_SWEEPER = 40, 0.5
_SWEEPERS = {
    "SweepDueImagesFunction": "SweeperSilentAlarm",
    "SweepDueEndpointsFunction": "EndpointSweeperSilentAlarm",
}
"""The alarm of each sweeper that a stack may have."""
_KINDS = ("MetricAlarms", "CompositeAlarms")
_WIDTH = len("critical")


def sweep_once(stack: RunningStack, *, pause: Callable[[float], None]) -> None:
    """Has each sweeper run once, and waits until their alarms have cleared: before the schedule's first run, a minute
    after the deployment, they look silent. Raises what `pause` raises."""
    cloudwatch = stack.client("cloudwatch")
    sweepers = {name: alarm for name, alarm in _SWEEPERS.items() if name in stack}
    alarms = [stack.physical_id(alarm) for alarm in sweepers.values()]
    try:
        for sweeper in sweepers:
            stack.client("lambda").invoke(FunctionName=stack.physical_id(sweeper), Payload=b"{}")
        for _ in range(_LOOKS_AT_SWEEPER):
            looked_at = cloudwatch.describe_alarms(AlarmNames=alarms)["MetricAlarms"]
            if all(alarm["StateValue"] == "OK" for alarm in looked_at):
                return
            pause(_SECONDS_FOR_SWEEPER)
    except (BotoCoreError, ClientError):  # its alarm will tell
        return


class ActiveAlarms:
    """The alarms that are on, as far as they were seen; `prefix` is that of the stack's alarms' names, `warnings` the
    topic of warnings."""

    def __init__(
        self,
        client: CloudWatchClient,
        prefix: str,
        out: Console,
        *,
        warnings: str,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client, self._prefix, self._out, self._clock = client, prefix, out, clock
        self._warnings = warnings
        self._on: set[str] = set()
        self._next_look = 0.0

    def look(self) -> None:
        """Prints what has fired or cleared since the last look, an incident once and with what causes it; looks every
        two seconds at most."""
        if self._clock() < self._next_look:
            return
        self._next_look = self._clock() + _SECONDS_BETWEEN_LOOKS
        # By prefix: a deployment may have added alarms since.
        pages = self._client.get_paginator("describe_alarms").paginate(
            AlarmNamePrefix=self._prefix, AlarmTypes=["MetricAlarm", "CompositeAlarm"], StateValue="ALARM"
        )
        try:
            answers_read: list[Any] = list(pages)
        except (BotoCoreError, ClientError):  # it is stopping, or busy: what was missed is told at the next look
            return
        answers = [answer for page in answers_read for kind in _KINDS for answer in page.get(kind, ())]
        on = incident_first([alarm_of(answer, self._short, warnings=self._warnings) for answer in answers])
        for alarm in on:
            if alarm.name not in self._on:
                self._tell_of(alarm, on)
        names = {alarm.name for alarm in on}
        for name in sorted(self._on - names):
            self._tell("over", name, style="green")
        self._on = names

    def _tell_of(self, alarm: Alarm, on: tuple[Alarm, ...]) -> None:
        causes = ", ".join(cause.name for cause in causes_of(alarm, on))
        because = f", because of {causes}" if causes else ""
        kind = "incident" if alarm.children else "critical" if alarm.is_critical else "warning"
        style = "bold red" if alarm.is_critical else "yellow"
        self._tell(kind, f"{alarm.name}{because}: {alarm.effect}", style=style)
        first = [part for part in (alarm.command, alarm.section) if part is not None]
        if first:
            indent = " " * len(f"00:00:00  {kind:{_WIDTH}}  ")
            display.line(self._out, f"{indent}{display.printable('  '.join(first))}", style="cyan")

    def _short(self, name: str) -> str:
        """The logical id in a name that CloudFormation made: STACK-LOGICALID-RANDOM, or, of a stack in the stack,
        STACK-ITSID-RANDOM-LOGICALID-RANDOM."""
        return name.removeprefix(self._prefix).rpartition("-")[0].rpartition("-")[2] or name

    def _tell(self, what: str, text: str, *, style: str) -> None:
        moment = f"{datetime.now().astimezone():%H:%M:%S}"
        display.line(self._out, f"{moment}  {what:{_WIDTH}}  {display.printable(text)}", style=style)
