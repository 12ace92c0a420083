"""Allowances as token buckets: never more than is allowed, and exact waits."""

import pytest

from darkroom.domain.kernel.tenants import Allowance
from darkroom.domain.tenants.token_bucket import (
    Take,
    interval_of,
    seconds_to_next,
    take,
    tokens_left,
)

NOW = 1_795_251_600_000_000
FREE = Allowance(requests_per_second=10, burst=50)


def taken(allowance: Allowance, instants: list[int]) -> int:
    """How many requests at these instants got a token."""
    tat, count = None, 0
    for instant in instants:
        answer = take(tat, allowance, instant)
        tat, count = answer.tat, count + answer.is_taken
    return count


@pytest.mark.parametrize(
    "allowance", [FREE, Allowance(requests_per_second=3, burst=1), Allowance(requests_per_second=10_000, burst=7)]
)
def test_over_time_there_is_a_burst_and_the_rate_and_not_one_more(allowance: Allowance) -> None:
    seconds, per_second = 3, 4 * allowance.requests_per_second
    instants = [NOW + second * 1_000_000 // per_second for second in range(seconds * per_second)]
    allowed = allowance.burst + seconds * allowance.requests_per_second
    assert allowed - 2 <= taken(allowance, instants) <= allowed


def test_who_keeps_to_the_rate_is_never_turned_away() -> None:
    assert taken(FREE, [NOW + number * 100_000 for number in range(500)]) == 500
    assert taken(Allowance(requests_per_second=3, burst=1), [NOW + number * 333_334 for number in range(50)]) == 50


def test_a_refusal_takes_nothing_and_the_wait_is_exact_and_no_longer() -> None:
    empty = NOW + 50 * interval_of(FREE)
    assert take(empty, FREE, NOW) == Take(tokens=0, tat=empty)
    assert seconds_to_next(empty, FREE, NOW) == 1, "a tenth of a second, rounded up"
    slow = Allowance(requests_per_second=1, burst=1)
    tat = take(None, slow, NOW).tat
    for later, seconds in ((0, 1), (1, 1), (999_999, 1), (1_000_000, 0)):
        assert seconds_to_next(tat, slow, NOW + later) == seconds
        assert take(tat, slow, NOW + later).is_taken == (seconds == 0)


def test_a_bucket_fills_up_to_a_burst_however_long_nobody_comes() -> None:
    tat = take(None, FREE, NOW).tat
    assert [tokens_left(tat, FREE, NOW + later) for later in (0, 99_999, 100_000, 10**12)] == [49, 49, 50, 50]
    assert taken(FREE, [NOW] * 50 + [NOW + 10**12] * 60) == 100


def test_an_allowance_that_was_lowered_counts_from_then_on() -> None:
    tat = NOW + 50 * interval_of(FREE)
    lower = Allowance(requests_per_second=1, burst=1)
    assert (take(tat, lower, NOW).is_taken, tokens_left(tat, lower, NOW), seconds_to_next(tat, lower, NOW)) == (
        False,
        0,
        5,
    )


@pytest.mark.guards("allowances-all-or-none")
def test_a_request_that_needs_several_tokens_gets_all_or_none() -> None:
    answers = []
    tat = None
    for _ in range(8):
        answer = take(tat, FREE, NOW, 7, 7)
        tat = answer.tat
        answers.append(answer.tokens)
    assert answers == [7] * 7 + [0], "50 tokens, the last of them too small a rest"
    assert tokens_left(tat or 0, FREE, NOW) == 1
    assert seconds_to_next(tat or 0, FREE, NOW, 7) == 1
    assert take(tat, FREE, NOW + 599_999, 7, 7).tokens == 0
    assert take(tat, FREE, NOW + 600_000, 7, 7).tokens == 7


def test_more_than_is_needed_is_given_only_from_the_fuller_half() -> None:
    assert take(None, FREE, NOW, 10, 7).tokens == 10
    half = NOW + 20 * interval_of(FREE)
    assert take(half, FREE, NOW, 10, 7).tokens == 7
