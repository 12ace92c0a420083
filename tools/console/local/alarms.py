"""Tells of the local stack's alarms as they fire and clear: on AWS a page would come, here the window says it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError
from rich.console import Console

from console.terminal import display

if TYPE_CHECKING:
    from mypy_boto3_cloudwatch import CloudWatchClient

_SECONDS_BETWEEN_LOOKS = 2.0
_KINDS = ("MetricAlarms", "CompositeAlarms")


class Alarms:
    """The alarms that are on, as far as they were seen; `prefix` is that of the stack's alarms' names."""

    def __init__(
        self, client: CloudWatchClient, prefix: str, out: Console, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._client, self._prefix, self._out, self._clock = client, prefix, out, clock
        self._on: dict[str, str] = {}
        self._next_look = 0.0

    def look(self) -> None:
        """Prints a line for each alarm that has fired or cleared since the last look; looks every two seconds at
        most."""
        if self._clock() < self._next_look:
            return
        self._next_look = self._clock() + _SECONDS_BETWEEN_LOOKS
        pages = self._client.get_paginator("describe_alarms").paginate(
            AlarmNamePrefix=self._prefix, AlarmTypes=["MetricAlarm", "CompositeAlarm"], StateValue="ALARM"
        )
        try:
            found: list[Any] = list(pages)
        except (BotoCoreError, ClientError):  # it is stopping, or busy: what was missed is told at the next look
            return
        # Causes before effects.
        alarms = [alarm for kind in _KINDS for page in found for alarm in page.get(kind, ())]
        on = {alarm["AlarmName"]: self._described(alarm) for alarm in alarms}
        for name, description in on.items():
            if name not in self._on:
                self._tell("ALARM", description, style="bold red")
        for name in self._on:
            if name not in on:
                self._tell("over ", self._short(name), style="green")
        self._on = on

    def _described(self, alarm: Mapping[str, Any]) -> str:
        causes = ", ".join(self._short(name) for name in _causes(alarm))
        because = f", because of {causes}" if causes else ""
        return f"{self._short(alarm['AlarmName'])}{because}: {alarm.get('AlarmDescription', '')}"

    def _short(self, name: str) -> str:
        """The logical id in a name that CloudFormation made: STACK-LOGICALID-RANDOM."""
        return name.removeprefix(self._prefix).rpartition("-")[0] or name

    def _tell(self, what: str, text: str, *, style: str) -> None:
        moment = f"{datetime.now().astimezone():%H:%M:%S}"
        display.line(self._out, f"{moment}  {what}  {display.printable(text)}", style=style)


def _causes(alarm: Mapping[str, Any]) -> Iterator[str]:
    """The names of the alarms that made a composite one fire; none for another alarm.

    https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_CompositeAlarm.html (StateReasonData)
    """
    data = json.loads(alarm.get("StateReasonData") or "{}")
    for child in data.get("triggeringAlarms", ()):
        yield child["arn"].rpartition(":alarm:")[2]
