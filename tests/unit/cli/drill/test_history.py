"""What CloudWatch's history says of a drill: which alarms fired, and how many messages paged somebody."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from darkroom_cli.drill.alarms import AlarmHistory, DrillAlarms
from tests.support.stack import FakeStack

PAGER, WARNINGS = "arn:aws:sns:us-east-1:1:CriticalAlarms", "arn:aws:sns:us-east-1:1:WarningAlarms"


class FakeCloudWatch:
    """A stack's two alarms and its topic, and CloudWatch's answers about them: `entries`, each on its own page."""

    def __init__(self, *entries: Mapping[str, Any]) -> None:
        self.entries = entries

    def physical_ids(self, kind: str) -> dict[str, str]:
        is_composite = kind.endswith("CompositeAlarm")
        return {"IncidentAlarm": "darkroom-I"} if is_composite else {"ImagesLateAlarm": "darkroom-L"}

    def physical_id(self, logical_id: str) -> str:
        assert logical_id == "CriticalAlarms"
        return PAGER

    def client(self, service: str) -> Any:
        return self

    def get_paginator(self, operation: str) -> Any:
        return self

    def paginate(self, **request: Any) -> Iterator[Mapping[str, Any]]:
        for entry in self.entries:
            yield {"AlarmHistoryItems": [entry]}


def changed(name: str, old: str, new: str) -> dict[str, Any]:
    data = {"oldState": {"stateValue": old}, "newState": {"stateValue": new}}
    return {"AlarmName": name, "HistoryItemType": "StateUpdate", "HistoryData": json.dumps(data)}


def notified(name: str, topic: str, state: str, *, in_default: bool) -> dict[str, Any]:
    message = json.dumps({"AlarmName": name, "NewStateValue": state})
    published = json.dumps({"default": message}) if in_default else message
    data = {"actionState": "Succeeded", "notificationResource": topic, "publishedMessage": published}
    return {"AlarmName": name, "HistoryItemType": "Action", "HistoryData": json.dumps(data)}


def history(*entries: Mapping[str, Any]) -> AlarmHistory:
    stack: Any = FakeStack(world=FakeCloudWatch(*entries), name="darkroom")
    return DrillAlarms(stack).since(0)


def test_alarms_that_fire_and_clear_are_counted_by_their_logical_ids() -> None:
    counts = history(
        changed("darkroom-L", "INSUFFICIENT_DATA", "OK"),
        changed("darkroom-L", "OK", "ALARM"),
        changed("darkroom-I", "OK", "ALARM"),
        changed("darkroom-L", "ALARM", "OK"),
    )
    assert counts.fired == {"ImagesLateAlarm": 1, "IncidentAlarm": 1}
    assert counts.cleared == {"ImagesLateAlarm": 1}


@pytest.mark.parametrize("in_default", [True, False])
def test_only_messages_to_the_pagers_topic_page(in_default: bool) -> None:
    counts = history(
        notified("darkroom-I", PAGER, "ALARM", in_default=in_default),
        notified("darkroom-L", WARNINGS, "ALARM", in_default=in_default),
        notified("darkroom-I", PAGER, "OK", in_default=in_default),
    )
    assert (counts.pages, counts.all_clears) == ({"IncidentAlarm": 1}, {"IncidentAlarm": 1})


def test_other_stacks_alarms_are_not_ours() -> None:
    counts = history(changed("other-L", "OK", "ALARM"), notified("other-L", PAGER, "ALARM", in_default=False))
    assert (counts.fired, counts.pages) == ({}, {})
