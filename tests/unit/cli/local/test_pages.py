"""The start of the local stack as it is shown: each step with its seconds, which add up to what has passed."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest
from rich.console import Console

from darkroom_cli.local.pages import Steps, command_began
from repository.report import ROOT
from tests.unit.cli.conftest import Run


class Watch:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def shown(began: float, *taking: tuple[str, float, float]) -> list[tuple[str, float]]:
    """The steps that are shown with their seconds: each begins some seconds after the one before, and takes some."""
    text, watch = io.StringIO(), Watch()
    steps = Steps(Console(file=text), began, watch)
    for name, idle, seconds in taking:
        watch.now += idle
        with steps(name):
            watch.now += seconds
    steps.add_up()
    lines = re.findall(r"^  [✓ ] (.+?) +([\d.]+) s$", text.getvalue(), re.MULTILINE)
    return [(name, float(seconds)) for name, seconds in lines]


def test_the_seconds_of_all_steps_and_of_what_is_between_them_add_up_to_those_since_the_command_began() -> None:
    # The command line was installed for 30 seconds; half a second passes between the two.
    assert shown(70, ("build", 0, 20), ("deploy", 0.5, 10)) == [
        ("command line", 30.0),
        ("build", 20.0),
        ("deploy", 10.5),
        ("together", 60.5),
    ]


def test_a_step_that_fails_is_shown_with_its_seconds() -> None:
    text, watch = io.StringIO(), Watch()
    with pytest.raises(ZeroDivisionError), Steps(Console(file=text), 100, watch)("build"):
        watch.now += 2
        raise ZeroDivisionError
    assert "  ✗ build           2.0 s\n" in text.getvalue()


def test_a_command_began_when_its_shell_script_says_and_now_if_nothing_does(tmp_path: Path) -> None:
    (tmp_path / "uptime").write_text("500.25 900.00\n")
    assert command_began(tmp_path / "uptime", {"DARKROOM_BEGAN": "470.25"}, Watch()) == 70
    for nothing in ({}, {"DARKROOM_BEGAN": ""}):
        assert command_began(tmp_path / "uptime", nothing, Watch()) == 100
    assert command_began(tmp_path / "none", {"DARKROOM_BEGAN": "470"}, Watch()) == 100


@pytest.mark.parametrize("arguments", [(), ("transcode",)])
def test_without_a_function_or_with_a_wrong_one_invoke_lists_those_there_are(run: Run, arguments: tuple[str]) -> None:
    result = run("local", "invoke", *arguments)
    assert result.exit_code == 2
    listed = re.findall(r"^  make invoke FN=(\w+)$", result.stderr, re.MULTILINE)
    assert listed == sorted(folder.parent.name for folder in ROOT.glob("functions/*/app.py"))


def test_a_step_that_lasts_until_all_is_closed_begins_when_it_is_told_and_is_not_shown_otherwise() -> None:
    text, watch = io.StringIO(), Watch()
    steps = Steps(Console(file=text), 100, watch)
    with steps.then("stop"):
        watch.now += 5
    assert text.getvalue() == ""
    with steps.then("stop") as begin:
        watch.now += 5
        begin()
        watch.now += 3
    assert text.getvalue() == "  ✓ stop            3.0 s\n"
