"""A stack's alarms, asked of CloudWatch."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import batched
from typing import TYPE_CHECKING, Any

from darkroom.aws.kernel.errors import pages_of
from darkroom.domain.kernel.instants import Milliseconds
from darkroom_cli.operator.domain.observation import Alarm

if TYPE_CHECKING:
    from mypy_boto3_cloudwatch import CloudWatchClient

_MOST_NAMES = 100
"""The most names that one request takes
(https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_DescribeAlarms.html)."""

_IN_RULE = re.compile(r"\b(?:ALARM|OK|INSUFFICIENT_DATA)\s*\(\s*\"?([^\")]+)")
"""An alarm in another's rule, by its name or its ARN
(https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_PutCompositeAlarm.html)."""


class CloudWatchAlarms:
    """Implements the `Alarms` port.

    `names` are those that CloudWatch has, each with its name in the template; `warnings` is the topic of warnings.
    """

    def __init__(self, client: CloudWatchClient, names: Mapping[str, str], *, warnings: str) -> None:
        self._client = client
        self._names = names
        self._warnings = warnings

    def on(self) -> Sequence[Alarm]:
        on = [
            alarm_of(answer, lambda name: self._names.get(name, name), warnings=self._warnings)
            for answer in self._listed()
            if answer["StateValue"] == "ALARM"
        ]
        return sorted(on, key=lambda alarm: (alarm.since, alarm.name))

    def _listed(self) -> Iterator[Any]:
        # By name and not by prefix: another stack's name may begin with this one's.
        for names in batched(self._names, _MOST_NAMES, strict=False):
            pages = self._client.get_paginator("describe_alarms").paginate(
                AlarmNames=names, AlarmTypes=["MetricAlarm", "CompositeAlarm"], StateValue="ALARM"
            )
            for page in pages_of(pages, "reading the alarms"):
                yield from page.get("MetricAlarms", ())
                yield from page.get("CompositeAlarms", ())


def alarm_of(answer: Mapping[str, Any], name_of: Callable[[str], str], *, warnings: str) -> Alarm:
    """The alarm that CloudWatch describes; `name_of` gives the names in the template, `warnings` is the topic of
    warnings. One that does not notify that topic is critical: the incident, or an alarm that it is made of."""
    # The state may have been updated since with another reason.
    since = answer.get("StateTransitionedTimestamp") or answer["StateUpdatedTimestamp"]
    children = (name_or_arn.rpartition(":alarm:")[2] for name_or_arn in _IN_RULE.findall(answer.get("AlarmRule", "")))
    return Alarm(
        name=name_of(answer["AlarmName"]),
        description=answer.get("AlarmDescription", ""),
        reason=answer.get("StateReason", ""),
        since=_instant(since),
        is_critical=warnings not in answer.get("AlarmActions", ()),
        children=frozenset(map(name_of, children)),
    )


def _instant(moment: datetime) -> Milliseconds:
    return round(moment.timestamp() * 1000)
