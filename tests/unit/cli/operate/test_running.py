"""Actions that take long: they go on whether or not a page looks, say how far they are, and are stopped in order."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from darkroom_cli.drill.result import DrillResult
from darkroom_cli.operate import running as operate_running
from darkroom_cli.operate.actions import Actions
from darkroom_cli.operate.problems import OperateProblem
from darkroom_cli.operate.running import MOST_RUNS, Running
from darkroom_cli.terminal import display
from darkroom_cli.terminal.interrupts import Interrupts
from darkroom_client.client import ApiError
from tests.support.stack import FakeStack
from tests.unit.cli.operate.conftest import Served, ended, observed_stack


def until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.01)


class Long:
    """An action that goes on until it may end, or is stopped."""

    def __init__(self) -> None:
        self.may_end, self.was_stopped = threading.Event(), False

    def __call__(self, shown: display.Shown) -> dict[str, Any]:
        with display.listening(shown), Interrupts() as interrupts, display.ProgressReport(display.errors()) as report:
            display.line(display.output(), "It has begun.")
            report.show("replaying", completed=3, total=10, detail="3 of 10")
            while not self.may_end.is_set() and not interrupts.requested:
                self.may_end.wait(0.01)
        self.was_stopped = interrupts.requested
        return {"complete": not interrupts.requested}


@pytest.fixture
def long() -> Iterator[Long]:
    yield (long := Long())
    long.may_end.set()


@pytest.fixture
def running() -> Running:
    return Running(clock=lambda: 1_780_000_000_000, patience_seconds=0)


def begun(running: Running, long: Long) -> dict[str, Any]:
    run = running.begin("replay", long)
    until(lambda: bool(running.documents()[0]["says"]) and running.documents()[0]["step"] is not None)
    return run


def test_what_ends_within_a_moment_is_answered_at_once() -> None:
    running = Running(clock=lambda: 0, patience_seconds=30)
    assert running.begin("redo", lambda _: {"complete": True}) == {"complete": True}
    assert running.documents() == []


def test_what_fails_within_a_moment_raises_what_it_has_raised() -> None:
    running = Running(clock=lambda: 0, patience_seconds=30)

    def fails(_: display.Shown) -> dict[str, Any]:
        raise ApiError("the lane is gone")

    with pytest.raises(ApiError, match="the lane is gone"):
        running.begin("redo", fails)
    assert running.documents() == []


def test_what_takes_longer_says_how_far_it_is(running: Running, long: Long) -> None:
    run = begun(running, long)
    seen = running.look(run["run"])
    assert seen == {
        "run": run["run"],
        "action": "replay",
        "began_at": "2026-05-28T20:26:40.000Z",
        "stopping": False,
        "ended": False,
        "says": ["It has begun."],
        "notes": [],
        "step": {"name": "replaying", "completed": 3, "total": 10, "detail": "3 of 10"},
    }
    assert running.documents() == [seen]


@pytest.mark.guards("operate-answer-told-once")
def test_its_answer_is_told_once(running: Running, long: Long) -> None:
    run = begun(running, long)
    long.may_end.set()
    until(lambda: bool(running.documents()[0]["ended"]))
    assert running.look(run["run"]) == {"complete": True}
    with pytest.raises(OperateProblem, match="its end was told"):
        running.look(run["run"])
    assert running.documents() == []


@pytest.mark.guards("operate-stop-per-action")
def test_it_is_stopped_as_by_the_first_interrupt_of_a_command_and_no_other_is(running: Running, long: Long) -> None:
    other = Long()
    other_run, run = running.begin("drill", other), running.begin("replay", long)
    assert running.stop(run["run"])["stopping"] is True
    until(lambda: "complete" in running.look(run["run"]))
    assert long.was_stopped and not other.was_stopped
    assert running.look(other_run["run"])["stopping"] is False
    other.may_end.set()


@pytest.mark.guards("operate-actions-bound")
def test_no_more_are_under_way_than_may_be(running: Running, long: Long) -> None:
    for _ in range(MOST_RUNS):
        running.begin("redo", long)
    with pytest.raises(OperateProblem, match="16 actions are under way, and nothing was done"):
        running.begin("redo", long)
    long.may_end.set()
    until(lambda: all(document["ended"] for document in running.documents()))
    for _ in range(3 * MOST_RUNS):  # no page asks how these have ended
        running.begin("redo", lambda _: {"complete": True})
        until(lambda: bool(running.documents()[-1]["ended"]))
    assert len(running.documents()) <= 2 * MOST_RUNS


@pytest.mark.guards("operate-shutdown-stop")
def test_the_end_of_the_server_stops_them_and_waits_for_their_ends(running: Running, long: Long) -> None:
    begun(running, long)
    actions: list[str] = []
    in_any_case = threading.Timer(5, long.may_end.set)
    in_any_case.start()
    running.end(actions.append)
    in_any_case.cancel()
    assert actions == ["replay"] and long.was_stopped
    assert running.documents()[0]["ended"]


# ── Over HTTP ────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def slow(writing: Served, long: Long, monkeypatch: pytest.MonkeyPatch) -> Long:
    """Every redo takes as long as `long` does."""

    def redo(*_: Any, **__: Any) -> None:
        with Interrupts() as interrupts:
            display.line(display.output(), "Redoing.")
            while not long.may_end.is_set() and not interrupts.requested:
                long.may_end.wait(0.01)

    monkeypatch.setattr("darkroom_cli.images.redo.redo", redo)
    monkeypatch.setattr(operate_running, "PATIENCE_SECONDS", 0)
    return long


def test_a_page_follows_an_action_and_stops_it(writing: Served, slow: Long) -> None:
    run = writing.act("redo", images=["0" * 26]).json()
    assert (run["action"], run["ended"]) == ("redo", False)
    path = f"/operate/api/runs/{run['run']}"
    assert [listed_run["run"] for listed_run in writing.get("runs")["runs"]] == [run["run"]]
    assert writing.client.delete(path).json()["stopping"] is True
    until(lambda: "complete" in writing.client.get(path).json())
    answer = writing.client.get(path)
    assert (answer.status_code, answer.json()["code"]) == (404, "no_such_run")


# ── Drills ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def act(stack: FakeStack, action: str, **body: Any) -> dict[str, Any]:
    console_stack: Any = stack
    return ended(Actions(console_stack), action, is_writable=True, **body)


def test_a_drill_says_first_what_it_would_break() -> None:
    ending = act(observed_stack(), "drill", drill="lane-stopped", dry_run=True)
    says = "\n".join(ending["says"])
    assert "lane-stopped would rehearse: " in says and "Nothing was changed." in says
    assert "It would switch " in says and "Alarms that must fire: " in says and "puts everything back" in says
    assert "Do it:  ./darkroom drill lane-stopped --stack shop --region eu-west-1" in says


@pytest.mark.guards("operate-production-consent")
def test_a_drill_on_a_production_stack_is_not_run_unless_that_is_said() -> None:
    with pytest.raises(ApiError, match="is a production stack"):
        act(observed_stack(), "drill", drill="lane-stopped")


def test_a_drill_that_may_not_run_there_or_does_not_exist_is_refused_by_its_dry_run() -> None:
    with pytest.raises(ApiError, match="runs only on the local stack"):
        act(observed_stack(), "drill", drill="old-dead-letter", dry_run=True)
    with pytest.raises(OperateProblem, match=r"There are: .*lane-stopped"):
        act(observed_stack(), "drill", drill="lane-on-fire", dry_run=True)


@pytest.mark.guards("operate-stop-per-action")
def test_a_drill_runs_as_the_command_does_and_is_stopped_as_by_ctrl_c(monkeypatch: pytest.MonkeyPatch) -> None:
    stack: Any = observed_stack()
    broken: list[str] = []

    def run(stack: Any, drill: Any, *, interrupts: Interrupts, **_: Any) -> DrillResult:
        broken.append(drill.name)
        try:
            interrupts.pause(60)
        finally:
            broken.clear()
        return DrillResult(drill=drill)

    monkeypatch.setattr("darkroom_cli.drill.work.run", run)
    acting = Actions(stack)
    body = {"drill": "lane-stopped", "in_production": True, "dry_run": False}
    begun = acting.act("drill", json.dumps(body).encode(), is_writable=True)
    until(lambda: broken == ["lane-stopped"])
    acting.running.stop(begun["run"])
    until(lambda: not broken)
    answer = acting.running.look(begun["run"], patience_seconds=30)
    assert answer["complete"] is False and answer["notes"] == ["Stopped: everything was put back."]


def test_a_drill_that_did_not_go_as_expected_is_not_complete(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(stack: Any, drill: Any, **_: Any) -> DrillResult:
        return DrillResult(drill=drill, problems=["2 pages instead of 1"])

    monkeypatch.setattr("darkroom_cli.drill.work.run", run)
    ending = act(observed_stack(), "drill", drill="lane-stopped", in_production=True)
    assert ending["complete"] is False and "NOT AS EXPECTED: 2 pages instead of 1" in ending["notes"][0]
