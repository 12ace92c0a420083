"""Interrupts outside the main thread, where no signal arrives."""

from __future__ import annotations

import signal
from concurrent.futures import ThreadPoolExecutor

from console.terminal.interrupts import LEAVING, Interrupts


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
