"""Two days pass in seconds: a scheduled image begins when its time comes, however the clock got there.

The short form of `python -m tests.chaos.time_travel`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.chaos.time_travel import DEATHS, Found, travel
from tests.local.local_stack import LocalStack
from tests.support.running.stack import Stack

IMAGES = 270
"""Enough for a separate batch, in whose release a process can die."""


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalStack]:
    """A separate stack: other tests could not use one whose clock was moved."""
    local = LocalStack(state=tmp_path_factory.mktemp("warp"))
    with local.serving():
        yield local


@pytest.fixture(scope="module")
def results(local: LocalStack) -> Found:
    return travel(Stack(state=local.state), images=IMAGES)


def test_nothing_is_early_lost_doubled_or_stuck_though_releases_are_killed(results: Found) -> None:
    assert results.all_broken == []
    assert results.early == 0
    assert results.outcome.done == IMAGES - 1, "one was cancelled"
    assert results.interrupted >= DEATHS


def test_few_executions_hold_many_images(results: Found) -> None:
    assert results.executions <= 10


def test_the_clock_tells_how_far_ahead_it_is(local: LocalStack, results: Found) -> None:
    said = local.darkroom("local", "warp")
    assert said.returncode == 0
    assert "2 days, 23:" in said.stdout or "3 days" in said.stdout, said.stdout


@pytest.mark.parametrize("duration", ["soon", "0s", "367d", "-1d"])
def test_a_duration_that_the_clock_cannot_move_by_is_refused(local: LocalStack, duration: str) -> None:
    said = local.darkroom("local", "warp", "--", duration)
    assert said.returncode == 2, said.stdout


def test_without_a_stack_there_is_no_clock_to_move(tmp_path: Path) -> None:
    said = LocalStack(state=tmp_path).darkroom("local", "warp", "1h")
    assert (said.returncode, "No local stack runs" in said.stdout) == (1, True), said.stdout
