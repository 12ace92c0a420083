"""Alarms in the window of `make run`."""

from __future__ import annotations

import io
import signal
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from botocore.exceptions import EndpointConnectionError
from rich.console import Console

from darkroom_cli.local.alarms import ActiveAlarms, sweep_once
from darkroom_cli.local.commands import _serve
from local_aws.processes import Interrupted, Interrupts
from local_aws.stacks import running

WARNINGS, CRITICAL = (f"arn:aws:sns:us-east-1:000000000000:darkroom-local-{name}" for name in ("Warning", "Critical"))
AT = datetime(2026, 11, 21, 9, tzinfo=UTC)


def alarm(name: str, effect: str, command: str, section: str, *topics: str) -> dict[str, Any]:
    described = f"{effect} First: ./darkroom {command} --stack darkroom-local. See docs/runbook.md#{section}."
    return {
        "AlarmName": f"darkroom-local-{name}-1AB2",
        "AlarmDescription": described,
        "AlarmActions": list(topics),
        "StateUpdatedTimestamp": AT,
    }


STUCK = alarm("ImagesStuckAlarm", "A lane stands still.", "top", "stuck")
SILENT = alarm("SweeperSilentAlarm", "Nothing is repaired.", "top", "sweeper")
LETTERS = alarm("DeadLettersAlarm", "Dead letters wait.", "dlq ls", "dead-letters", WARNINGS)
INCIDENT = alarm("IncidentAlarm", "Users are affected.", "top", "what-is-going-on", CRITICAL) | {
    "AlarmRule": f'ALARM("{STUCK["AlarmName"]}") OR ALARM("{SILENT["AlarmName"]}")'
}

TOLD_OF_STUCK = ["critical  ImagesStuckAlarm: A lane stands still.", "          ./darkroom top  docs/runbook.md#stuck"]
TOLD_OF_LETTERS = [
    "warning   DeadLettersAlarm: Dead letters wait.",
    "          ./darkroom dlq ls  docs/runbook.md#dead-letters",
]


class FakeCloudWatch:
    """Alarms that are on; those of other stacks are for AWS to leave out."""

    def __init__(self) -> None:
        self.on: list[dict[str, Any]] = []
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
        self.alarms = ActiveAlarms(client, "darkroom-local-", out, warnings=WARNINGS, clock=lambda: self.now)

    def look(self, *on: dict[str, Any]) -> list[str]:
        """The new lines, each without its time of day."""
        self.cloudwatch.on = list(on)
        self.now += 2
        before = len(self.text.getvalue())
        self.alarms.look()
        return [line[10:] for line in self.text.getvalue()[before:].splitlines()]


@pytest.fixture
def window() -> Window:
    return Window()


def test_an_alarm_is_told_once_when_it_fires_with_what_to_type_and_once_when_it_clears(window: Window) -> None:
    assert window.look() == []
    assert window.look(STUCK) == TOLD_OF_STUCK
    assert window.look(STUCK, LETTERS) == TOLD_OF_LETTERS
    assert window.look(STUCK, LETTERS) == []
    assert window.look(LETTERS) == ["over      ImagesStuckAlarm"]
    assert window.look(STUCK, LETTERS) == TOLD_OF_STUCK


def test_only_the_stacks_own_alarms_that_are_on_are_asked_for_every_two_seconds(window: Window) -> None:
    window.look()
    window.alarms.look()
    asked = {
        "AlarmNamePrefix": "darkroom-local-",
        "AlarmTypes": ["MetricAlarm", "CompositeAlarm"],
        "StateValue": "ALARM",
    }
    assert window.cloudwatch.asked == [asked]


def test_an_incident_is_told_once_before_its_causes_and_names_them(window: Window) -> None:
    assert window.look(STUCK, LETTERS, INCIDENT) == [
        "incident  IncidentAlarm, because of ImagesStuckAlarm: Users are affected.",
        "          ./darkroom top  docs/runbook.md#what-is-going-on",
        *TOLD_OF_STUCK,
        *TOLD_OF_LETTERS,
    ]
    assert window.look(STUCK, SILENT, LETTERS, INCIDENT) == [
        "critical  SweeperSilentAlarm: Nothing is repaired.",
        "          ./darkroom top  docs/runbook.md#sweeper",
    ]
    assert window.look(LETTERS, INCIDENT) == ["over      ImagesStuckAlarm", "over      SweeperSilentAlarm"]
    assert window.look(LETTERS) == ["over      IncidentAlarm"]


def test_an_alarm_that_somebody_described_otherwise_is_told_as_it_is(window: Window) -> None:
    (line,) = window.look(LETTERS | {"AlarmDescription": "Mine.\x1b[2J"})
    assert line == "warning   DeadLettersAlarm: Mine.\N{REPLACEMENT CHARACTER}[2J"


def test_an_emulator_that_does_not_answer_is_asked_again(window: Window) -> None:
    window.look(STUCK)
    window.cloudwatch.is_gone = True
    assert window.look() == []
    window.cloudwatch.is_gone = False
    assert window.look(LETTERS) == [*TOLD_OF_LETTERS, "over      ImagesStuckAlarm"]


class Sweeper:
    """A stack whose sweepers can be invoked, or not, and clear their alarms at the third look, or never; that of
    endpoints is there with `webhooks`."""

    def __init__(self, error: Exception | None = None, *, clears: bool = True, webhooks: bool = True) -> None:
        self.error, self.clears, self.happened = error, clears, list[Any]()
        self.silent = ["SweeperSilentAlarm", *(["EndpointSweeperSilentAlarm"] if webhooks else [])]

    def __contains__(self, logical_id: str) -> bool:
        return logical_id == "SweepDueImagesFunction" or len(self.silent) == 2

    def client(self, service: str) -> Sweeper:
        return self

    def physical_id(self, logical_id: str) -> str:
        return f"darkroom-local-{logical_id}"

    def invoke(self, **asked: Any) -> None:
        if self.error:
            raise self.error
        self.happened.append(asked["FunctionName"])

    def describe_alarms(self, **asked: Any) -> dict[str, Any]:
        assert asked == {"AlarmNames": [f"darkroom-local-{alarm}" for alarm in self.silent]}
        is_over = self.clears and len(self.happened) == len(self.silent) + 2
        return {"MetricAlarms": [{"StateValue": "OK" if is_over else "ALARM"}]}


@pytest.mark.parametrize("webhooks", [True, False])
def test_each_sweeper_runs_once_and_its_alarm_clears_before_the_window_looks(webhooks: bool) -> None:
    stack: Any = Sweeper(webhooks=webhooks)
    sweep_once(stack, pause=stack.happened.append)
    of_endpoints = ["darkroom-local-SweepDueEndpointsFunction"] if webhooks else []
    assert stack.happened == ["darkroom-local-SweepDueImagesFunction", *of_endpoints, 0.5, 0.5]


@pytest.mark.parametrize(
    "stack",
    [Sweeper(EndpointConnectionError(endpoint_url="http://127.0.0.1:9")), Sweeper(clears=False)],
    ids=["it cannot be invoked", "its alarm stays on"],
)
def test_a_sweeper_in_trouble_keeps_nobody_from_the_window(stack: Any) -> None:
    sweep_once(stack, pause=stack.happened.append)
    assert len(stack.happened) <= 42


def test_an_interrupt_ends_the_wait_for_the_sweepers_alarm(monkeypatch: pytest.MonkeyPatch) -> None:
    class Stopping(Interrupts):
        def pause(self, seconds: float) -> None:
            raise Interrupted(signal.SIGINT)

    stack: Any = Sweeper(clears=False)
    monkeypatch.setattr(running, "recorded_stack", lambda record, *, config: stack)
    with pytest.raises(Interrupted):
        _serve(Console(), stack, stack, Stopping())
    assert len(stack.happened) == 2
