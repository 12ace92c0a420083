"""Backoff as a table."""

import pytest

from darkroom.domain.kernel.retry import MAX_ATTEMPTS, RetryPolicy, returns_in


@pytest.mark.parametrize(("attempt", "lowest", "highest"), [(1, 20, 29), (2, 40, 59), (3, 80, 119), (4, 160, 239)])
def test_the_pause_doubles_with_jitter_over_a_floor(attempt: int, lowest: int, highest: int) -> None:
    policy = RetryPolicy()
    assert policy.delay_seconds(attempt, 0.0) == lowest
    assert policy.delay_seconds(attempt, 0.999999) == highest


@pytest.mark.guards("retry-backoff-floor")
def test_five_receives_span_at_least_five_minutes() -> None:
    policy = RetryPolicy()
    assert sum(policy.delay_seconds(attempt, 0.0) for attempt in range(1, MAX_ATTEMPTS)) >= 300


def test_every_pause_is_one_that_sqs_takes() -> None:
    policy = RetryPolicy()
    assert all(0 <= policy.delay_seconds(attempt, 0.99) <= 43_200 for attempt in range(1, MAX_ATTEMPTS + 1))


@pytest.mark.parametrize(("attempt", "unit_random"), [(0, 0.5), (-1, 0.5), (1, 1.0), (1, -0.1)])
def test_nonsense_is_refused(attempt: int, unit_random: float) -> None:
    with pytest.raises(ValueError, match=r"attempts are counted|unit_random"):
        RetryPolicy().delay_seconds(attempt, unit_random)


@pytest.mark.parametrize(("receive_count", "seconds"), [(1, 7), (4, 7), (5, None), (6, None)])
def test_a_message_returns_but_not_as_a_dead_letter(receive_count: int, seconds: int | None) -> None:
    assert returns_in(7, receive_count=receive_count) == seconds
