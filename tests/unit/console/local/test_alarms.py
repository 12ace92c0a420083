"""Alarms in the window of `make run`."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from typing import Any

import pytest
from botocore.exceptions import EndpointConnectionError
from rich.console import Console

from console.local.alarms import Alarms

STUCK = {"AlarmName": "darkroom-local-SlowImagesStuckAlarm-1AB2", "AlarmDescription": "Images are stuck. See #stuck."}
LETTERS = {"AlarmName": "darkroom-local-SlowDeadLettersAlarm-3CD4", "AlarmDescription": "Given up."}


def incident_of(*names: str) -> dict[str, str]:
    triggering = [{"arn": f"arn:aws:cloudwatch:us-east-1:000000000000:alarm:{name}"} for name in names]
    return {
        "AlarmName": "darkroom-local-IncidentAlarm-5EF6",
        "AlarmDescription": "Somebody is paged.",
        "AlarmRule": " OR ".join(f'ALARM("{name}")' for name in names),
        "StateReasonData": json.dumps({"triggeringAlarms": triggering}),
    }


class FakeCloudWatch:
    """Alarms that are on; those of other stacks are for AWS to leave out."""

    def __init__(self) -> None:
        self.on: list[dict[str, str]] = []
        self.asked: list[dict[str, Any]] = []
        self.is_gone = False

    def get_paginator(self, operation: str) -> FakeCloudWatch:
        assert operation == "describe_alarms"
        return self

    def paginate(self, **asked: Any) -> Iterator[dict[str, Any]]:
        self.asked.append(asked)
        if self.is_gone:
            raise EndpointConnectionError(endpoint_url="http://127.0.0.1:9")
        for alarm in self.on:
            yield {"CompositeAlarms" if "AlarmRule" in alarm else "MetricAlarms": [alarm]}


class Window:
    """What the window says, look by look."""

    def __init__(self) -> None:
        self.cloudwatch, self.text, self.now = FakeCloudWatch(), io.StringIO(), 0.0
        client: Any = self.cloudwatch
        out = Console(file=self.text, width=200)
        self.alarms = Alarms(client, "darkroom-local-", out, clock=lambda: self.now)

    def look(self, *on: dict[str, str]) -> list[str]:
        """The new lines, each without its time of day."""
        self.cloudwatch.on = list(on)
        self.now += 2
        before = len(self.text.getvalue())
        self.alarms.look()
        return [line[10:] for line in self.text.getvalue()[before:].splitlines()]


@pytest.fixture
def window() -> Window:
    return Window()


def test_an_alarm_is_told_once_when_it_fires_and_once_when_it_clears(window: Window) -> None:
    assert window.look() == []
    assert window.look(STUCK) == ["ALARM  SlowImagesStuckAlarm: Images are stuck. See #stuck."]
    assert window.look(STUCK, LETTERS) == ["ALARM  SlowDeadLettersAlarm: Given up."]
    assert window.look(STUCK, LETTERS) == []
    assert window.look(LETTERS) == ["over   SlowImagesStuckAlarm"]
    assert window.look(STUCK, LETTERS) == ["ALARM  SlowImagesStuckAlarm: Images are stuck. See #stuck."]


def test_only_the_stacks_own_alarms_that_are_on_are_asked_for_every_two_seconds(window: Window) -> None:
    window.look()
    window.alarms.look()
    asked = {
        "AlarmNamePrefix": "darkroom-local-",
        "AlarmTypes": ["MetricAlarm", "CompositeAlarm"],
        "StateValue": "ALARM",
    }
    assert window.cloudwatch.asked == [asked]


def test_a_composite_alarm_is_told_after_the_alarms_that_caused_it_and_names_them(window: Window) -> None:
    assert window.look(incident_of(STUCK["AlarmName"]), STUCK) == [
        "ALARM  SlowImagesStuckAlarm: Images are stuck. See #stuck.",
        "ALARM  IncidentAlarm, because of SlowImagesStuckAlarm: Somebody is paged.",
    ]
    assert window.look(incident_of(STUCK["AlarmName"])) == ["over   SlowImagesStuckAlarm"]
    assert window.look() == ["over   IncidentAlarm"]


def test_an_emulator_that_does_not_answer_is_asked_again(window: Window) -> None:
    window.look(STUCK)
    window.cloudwatch.is_gone = True
    assert window.look() == []
    window.cloudwatch.is_gone = False
    assert window.look(LETTERS) == ["ALARM  SlowDeadLettersAlarm: Given up.", "over   SlowImagesStuckAlarm"]
