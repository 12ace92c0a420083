"""A stack's alarms as somebody on call sees them: which are on, which have fired since, how often they paged."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

from darkroom.domain.kernel.instants import Milliseconds
from local_aws.stacks.running import RunningStack

_TYPES: Any = ["MetricAlarm", "CompositeAlarm"]
_ALARM, _OK = "ALARM", "OK"


@dataclass(frozen=True, kw_only=True)
class AlarmHistory:
    """What has happened since a moment: by alarm, how often it fired and how often it cleared; by alarm, how many
    messages said ALARM and how many said OK, of those that go to the topic that pages."""

    fired: Counter[str]
    cleared: Counter[str]
    pages: Counter[str]
    all_clears: Counter[str]


class DrillAlarms:
    """The alarms of a stack, by their logical ids."""

    def __init__(self, stack: RunningStack) -> None:
        self._stack = stack

    @cached_property
    def names(self) -> Mapping[str, str]:
        """The logical id of each alarm by its name."""
        kinds = ("AWS::CloudWatch::Alarm", "AWS::CloudWatch::CompositeAlarm")
        return {name: logical_id for kind in kinds for logical_id, name in self._stack.physical_ids(kind).items()}

    def on(self) -> dict[str, str]:
        """The descriptions of the alarms that are on."""
        pages = self._stack.client("cloudwatch").get_paginator("describe_alarms")
        descriptions = {}
        for page in pages.paginate(AlarmNamePrefix=f"{self._stack.name}-", AlarmTypes=_TYPES, StateValue=_ALARM):
            for alarm in (*page.get("MetricAlarms", ()), *page.get("CompositeAlarms", ())):
                if alarm["AlarmName"] in self.names:
                    descriptions[self.names[alarm["AlarmName"]]] = alarm.get("AlarmDescription", "")
        return descriptions

    def since(self, moment: Milliseconds) -> AlarmHistory:
        """What has happened since."""
        history = AlarmHistory(fired=Counter(), cleared=Counter(), pages=Counter(), all_clears=Counter())
        topic = self._stack.physical_id("CriticalAlarms")
        for name, kind, data in self._entries(moment):
            if kind == "StateUpdate":
                state = data.get("newState", {}).get("stateValue")
                if state == _ALARM:
                    history.fired[name] += 1
                elif state == _OK and data.get("oldState", {}).get("stateValue") == _ALARM:
                    history.cleared[name] += 1
            elif data.get("notificationResource") == topic:
                message = json.loads(data.get("publishedMessage") or "{}")
                # CloudWatch's own history has the message as text in its `default`.
                message = json.loads(message["default"]) if isinstance(message.get("default"), str) else message
                if message.get("NewStateValue") == _ALARM:
                    history.pages[name] += 1
                elif message.get("NewStateValue") == _OK:
                    history.all_clears[name] += 1
        return history

    def _entries(self, moment: Milliseconds) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
        pages = self._stack.client("cloudwatch").get_paginator("describe_alarm_history")
        since = datetime.fromtimestamp(moment // 1000, UTC)  # entries may have whole seconds
        for page in pages.paginate(AlarmTypes=_TYPES, StartDate=since):
            for entry in page["AlarmHistoryItems"]:
                if entry["AlarmName"] in self.names and entry["HistoryItemType"] in ("StateUpdate", "Action"):
                    yield self.names[entry["AlarmName"]], entry["HistoryItemType"], json.loads(entry["HistoryData"])
