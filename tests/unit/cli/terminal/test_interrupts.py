"""Interrupts outside the main thread, where no signal arrives."""

from __future__ import annotations

import signal
from concurrent.futures import ThreadPoolExecutor

import pytest

from darkroom_cli.terminal.interrupts import LEAVING, Ending, Interrupted, Interrupts, ended_by


@pytest.mark.guards("operate-main-thread-signals")
def test_a_command_that_runs_in_another_thread_leaves_the_signals_alone() -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, *LEAVING)]

    def run() -> bool:
        with Interrupts(*LEAVING) as interrupts:
            interrupts.wait(0)
            assert [signal.getsignal(number) for number in (signal.SIGINT, *LEAVING)] == before
            return interrupts.requested

    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(run).result() is False
    assert [signal.getsignal(number) for number in (signal.SIGINT, *LEAVING)] == before


def test_a_command_in_another_thread_is_ended_by_its_threads_ending_and_no_other_command_is() -> None:
    ending = Ending()

    def run() -> bool:
        with ended_by(ending), Interrupts() as interrupts:
            before = interrupts.requested
            ending.requested = True
            with pytest.raises(Interrupted):
                interrupts.pause(60)
            return before

    with ThreadPoolExecutor(1) as pool, Interrupts() as others:
        assert pool.submit(run).result() is False
        assert not others.requested


def test_each_signal_is_passed_on_to_what_does_not_look_for_it_and_an_ignored_one_is_not() -> None:
    heard: list[str] = []
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with Interrupts(*LEAVING, on_request=lambda: heard.append("asked")) as interrupts:
            signal.raise_signal(signal.SIGHUP)
            assert (heard, interrupts.requested) == ([], False)
            signal.raise_signal(signal.SIGTERM)
            assert (heard, interrupts.requested) == (["asked"], True)
    finally:
        signal.signal(signal.SIGHUP, before)
