"""`darkroom schedules`, over the fakes: what it prints, and what is refused."""

from __future__ import annotations

import json

import pytest

from darkroom.ports.kernel import Fenced, UnreadableRow
from tests.support.fakes.batches import BatchesWorld
from tests.support.stack import FakeStack
from tests.unit.cli.conftest import Run

NIGHTLY = ("nightly", "--cron", "0 4 * * *", "--timezone", "Europe/Berlin", "--job", "announce", "--target", "acme")


@pytest.fixture
def stack(stack: FakeStack) -> FakeStack:
    stack.world = BatchesWorld()
    return stack


def test_a_schedule_is_added_run_paused_and_removed(run: Run, stack: FakeStack) -> None:
    assert run("schedules", "ls").stdout == "shop has no schedules.\n"
    added = run("schedules", "add", *NIGHTLY, "--missed", "catch_up", "--jitter", "10m")
    assert added.stdout == "Added nightly: its first run is planned for 2026-11-22T03:00:00.000Z.\n"
    assert run("schedules", "run", "nightly").stdout == "nightly begins a run within a minute.\n"
    assert "Runs for 2026-11-21T09:00" in run("schedules", "show", "nightly").stdout
    for refused, words in (("run", "It runs already"), ("remove", "It runs")):
        result = run("schedules", refused, "nightly")
        assert result.exit_code == 1 and words in result.stderr
    stack.world.sweep_bulk()
    assert run("schedules", "pause", "nightly").stdout == run("schedules", "pause", "nightly").stdout
    line = run("schedules", "ls").stdout.splitlines()[1].split()
    assert line == [
        *("nightly", "0", "4", "*", "*", "*", "Europe/Berlin", "announce", "acme", "paused"),
        *("2026-11-21T09:00:00.000Z", "done"),
    ]
    (document,) = json.loads(run("schedules", "ls", "--json").stdout)["schedules"]
    assert document == json.loads(run("schedules", "show", "nightly", "--json").stdout)
    assert (document["state"], document["jitter_seconds"], document["outcome"]) == ("paused", 600, "done")
    assert run("schedules", "resume", "nightly").stdout == "nightly goes on.\n"
    assert run("schedules", "remove", "nightly").stdout == "nightly is removed.\n"
    assert not stack.world.schedules.rows
    assert run("schedules", "resume", "nightly").exit_code == 1


def test_what_a_run_has_come_to_is_shown(run: Run, stack: FakeStack) -> None:
    run("schedules", "add", "open", "--cron", "0 22 * * *", "--job", "resume_backfill", "--target", "bf_9")
    stack.world.now += 37 * 3_600_000
    stack.world.sweep_bulk()
    run("schedules", "run", "open")
    stack.world.sweep_bulk()
    shown = run("schedules", "show", "open").stdout.splitlines()
    assert shown[0] == "open is waiting: resume_backfill bf_9 at 0 22 * * * UTC"
    assert "missed ones: skip" in shown[1] and "failed at 2026-11-22T22:00" in shown[2]
    assert shown[3:] == [
        "Latest run that was not made: from 2026-11-21T22:00:00.000Z on",
        "Error: There is no backfill bf_9.",
    ]


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("--cron", "0 4 * *"), 1, "A cron expression has five fields"),
        (("--timezone", "Mars"), 1, "A time zone is a name as Europe/Berlin"),
        (("--job", "archive"), 1, "A job is one of announce"),
        (("--jitter", "soon"), 2, "is not a duration"),
        (("--missed", "often"), 2, "neither catch_up nor skip"),
    ],
)
def test_what_cannot_be_planned_is_said(
    run: Run, stack: FakeStack, arguments: tuple[str, ...], code: int, words: str
) -> None:
    result = run("schedules", "add", *NIGHTLY, *arguments)
    assert result.exit_code == code and words in " ".join(result.stderr.split())
    assert not stack.world.schedules.rows


def test_a_name_is_used_once_and_the_stacks_own_stays(run: Run, stack: FakeStack) -> None:
    run("schedules", "add", *NIGHTLY)
    assert "remove it first" in run("schedules", "add", *NIGHTLY, "--jitter", "1m").stderr
    (row,) = stack.world.schedules.rows.values()
    vars(row)["is_own"] = True
    assert "pause it" in run("schedules", "remove", "nightly").stderr


def test_a_stack_without_a_part_is_told_apart(run: Run, stack: FakeStack) -> None:
    stack.parts = {"bulk"}
    assert "without webhooks" in run("schedules", "add", *NIGHTLY).stderr
    stack.parts = set()
    assert "without bulk" in run("schedules", "add", *NIGHTLY).stderr


def test_a_tick_that_comes_between_is_waited_for_and_an_unreadable_row_is_reported(
    run: Run, stack: FakeStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("schedules", "add", *NIGHTLY)
    schedules = stack.world.schedules
    with monkeypatch.context() as patched:
        patched.setattr(schedules, "change", lambda *_: (_ for _ in ()).throw(Fenced(None)))
        assert run("schedules", "pause", "nightly").exit_code == 1
    monkeypatch.setattr(schedules, "all", lambda: iter([UnreadableRow("sc_new", "plan")]))
    listed = run("schedules", "ls", "--json")
    assert listed.exit_code == 1 and json.loads(listed.stdout)["unreadable"] == ["sc_new"]
