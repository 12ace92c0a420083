"""One operation on many items, several at a time."""

from __future__ import annotations

import threading

import pytest

from darkroom_cli.operator.operations.kernel.rate_limiter import RateLimiter
from darkroom_cli.terminal.many import do_to_many


class Clock:
    """A clock that only pauses move."""

    def __init__(self) -> None:
        self.now = 0

    def __call__(self) -> int:
        return self.now

    def pause(self, seconds: float) -> None:
        self.now += round(seconds * 1000)


def test_each_is_done_once_no_more_of_them_at_a_time_than_allowed_and_no_faster() -> None:
    clock, outcomes = Clock(), []
    under_way, most, lock = 0, 0, threading.Lock()
    three_at_a_time = threading.Barrier(3)

    def act(number: int) -> int:
        nonlocal under_way, most
        with lock:
            under_way += 1
            most = max(most, under_way)
        three_at_a_time.wait(10)
        with lock:
            under_way -= 1
        return number * number

    do_to_many(
        range(12),
        act,
        pace=RateLimiter(per_second=10, clock=clock, pause=clock.pause),
        at_a_time=3,
        stop=lambda: False,
        on_outcome=lambda number, square: outcomes.append((number, square)),
    )
    assert sorted(outcomes) == [(number, number * number) for number in range(12)]
    assert (most, clock.now) == (3, 1100)


def unpaced() -> RateLimiter:
    return RateLimiter(per_second=1000, clock=lambda: 0, pause=lambda _: None)


def test_what_is_under_way_is_told_of_before_an_error_is_raised() -> None:
    outcomes: list[int] = []
    raised = threading.Event()

    def act(number: int) -> None:
        if number == 0:
            raised.set()
            raise ValueError("no answer")
        raised.wait(10)

    with pytest.raises(ValueError, match="no answer"):
        do_to_many(
            range(2), act, pace=unpaced(), at_a_time=2, stop=lambda: False, on_outcome=lambda n, _: outcomes.append(n)
        )
    assert outcomes == [1]


def test_nothing_is_begun_after_an_error() -> None:
    begun: list[int] = []

    def act(number: int) -> None:
        begun.append(number)
        if number == 1:
            raise ValueError("no answer")

    with pytest.raises(ValueError, match="no answer"):
        do_to_many(range(9), act, pace=unpaced(), at_a_time=1, stop=lambda: False, on_outcome=lambda *_: None)
    assert begun == [0, 1]


def test_nothing_is_begun_once_it_shall_end() -> None:
    outcomes: list[int] = []
    do_to_many(
        range(1000),
        lambda number: number,
        pace=unpaced(),
        at_a_time=1,
        stop=lambda: len(outcomes) == 3,
        on_outcome=lambda number, _: outcomes.append(number),
    )
    assert outcomes == [0, 1, 2]
