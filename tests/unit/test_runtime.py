"""Works that are done at the same time: their order, their failures, and the limit on their time."""

from __future__ import annotations

import threading
import time
from functools import partial

import pytest

from darkroom.aws.kernel import clients
from darkroom.domain.kernel.errors import Retryable
from darkroom.ports.kernel import AtOnce
from darkroom.wiring.kernel.runtime import at_once, kept_threads, within
from tests.support.faults import raising

EACH = pytest.mark.parametrize("at_once", [at_once, kept_threads(4)], ids=["new threads", "kept threads"])


@EACH
def test_works_are_done_at_the_same_time_and_their_results_are_in_the_given_order(at_once: AtOnce) -> None:
    together = threading.Barrier(4, timeout=10)

    def work(number: int) -> int:
        together.wait()
        return number

    assert at_once([partial(work, number) for number in range(4)]) == [0, 1, 2, 3]


@pytest.mark.guards("threads-failure-waits", case="kept threads")
@EACH
def test_a_failure_waits_for_the_others_so_that_nothing_goes_on_behind_the_attempts_back(at_once: AtOnce) -> None:
    ended = []

    def slow() -> None:
        time.sleep(0.05)
        ended.append("slow")

    with pytest.raises(Retryable, match="no answer"):
        at_once([raising(Retryable("no answer")), slow])
    assert ended == ["slow"]


@pytest.mark.guards("deadline-in-parallel-work")
@EACH
def test_the_limit_on_the_time_of_calls_holds_in_each_work(at_once: AtOnce) -> None:
    with within(60):
        (seconds,) = at_once([partial(clients._reading_seconds, "GetItem")])
    assert seconds is not None and seconds < 60


def test_kept_threads_are_used_again_and_works_that_are_more_than_them_take_turns() -> None:
    at_once = kept_threads(2)
    used = {thread for _ in range(3) for thread in at_once([threading.get_ident] * 5)}
    assert 1 <= len(used) <= 2
