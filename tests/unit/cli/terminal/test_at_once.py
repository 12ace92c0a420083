"""Reads at the same time."""

from __future__ import annotations

import threading
from functools import partial

import pytest

from darkroom_cli.terminal.at_once import AT_A_TIME, at_once


def test_results_come_in_the_order_of_the_works() -> None:
    assert at_once([partial(pow, number, 2) for number in range(50)]) == [number**2 for number in range(50)]
    assert at_once([]) == []


def test_works_run_at_the_same_time_and_not_too_many() -> None:
    together = threading.Barrier(AT_A_TIME)
    running: set[int] = set()
    most = []

    def work(number: int) -> None:
        running.add(number)
        most.append(len(running))
        together.wait(30)
        running.discard(number)

    at_once([partial(work, number) for number in range(2 * AT_A_TIME)])
    assert max(most) == AT_A_TIME


def test_the_first_failure_is_raised_once_all_have_ended() -> None:
    ended = []

    def fail(name: str) -> None:
        ended.append(name)
        raise KeyError(name)

    with pytest.raises(KeyError, match="first"):
        at_once([lambda: ended.append("fine"), partial(fail, "first"), partial(fail, "second")])
    assert sorted(ended) == ["fine", "first", "second"]


def test_an_interrupted_command_does_not_wait_for_its_threads() -> None:
    daemons: list[bool] = []
    at_once([lambda: daemons.append(threading.current_thread().daemon)])
    assert daemons == [True]
