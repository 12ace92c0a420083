"""What counts for a lane's service level, when attempts fail, and how fast the error budget burns."""

from __future__ import annotations

from dataclasses import replace

import pytest

from darkroom.domain.images.image import DeadLetterState, Image, Status
from darkroom.domain.images.service_level import (
    FAST_MINUTES,
    LEAST_BAD,
    MARKS,
    MINUTE,
    NO_OUTCOMES,
    SLOW_MINUTES,
    SUCCEEDED,
    Outcomes,
    burn,
    end_of,
    failed_attempt,
    failing_percent,
    mark_of,
    needed_since,
)
from darkroom.domain.kernel.lanes import LANES
from darkroom_cli.operator.domain.budgets import Budget
from tests.support.fakes.rows import accepted_image

NOW = 1_795_251_630_000
"""Half a minute past a full one."""

SINCE = NOW - 1_000_000
SLOW = LANES["slow"]


def ended(status: Status, *, after_seconds: float, run: int = 1, gave_up: bool = False) -> Image:
    return replace(
        accepted_image(now=SINCE),
        status=status,
        run=run,
        completed_at=SINCE + int(after_seconds * 1000),
        dead_letter=DeadLetterState.OWED if gave_up else None,
    )


@pytest.mark.guards("service-level-first-run-only", case="an operator's run")
@pytest.mark.guards("service-level-wished-expiry", case="expired as its client wished")
@pytest.mark.guards("service-level-refused-image", case="refused for what it is")
@pytest.mark.parametrize(
    ("image", "counts"),
    [
        (ended(Status.DONE, after_seconds=600), Outcomes(ended=1)),
        (ended(Status.DONE, after_seconds=600.001), Outcomes(ended=1, late=1)),
        (ended(Status.FAILED, after_seconds=1, gave_up=True), Outcomes(ended=1, given_up=1)),
        (ended(Status.FAILED, after_seconds=1000, gave_up=True), Outcomes(ended=1, given_up=1)),
        (ended(Status.FAILED, after_seconds=1000), NO_OUTCOMES),
        (ended(Status.CANCELLED, after_seconds=1000), NO_OUTCOMES),
        (ended(Status.EXPIRED, after_seconds=600), NO_OUTCOMES),
        (ended(Status.EXPIRED, after_seconds=601), Outcomes(ended=1, late=1)),
        (ended(Status.DONE, after_seconds=601, run=2), NO_OUTCOMES),
    ],
    ids=[
        "in time",
        "late",
        "given up",
        "given up late",
        "refused for what it is",
        "withdrawn",
        "expired as its client wished",
        "expired because it was late",
        "an operator's run",
    ],
)
def test_an_accepted_image_counts_once_by_how_its_first_run_ended(image: Image, counts: Outcomes) -> None:
    assert end_of(image, waiting_since=SINCE, lane=SLOW) == counts


def test_what_another_worker_ended_does_not_count_again() -> None:
    assert end_of(ended(Status.DONE, after_seconds=1), waiting_since=None, lane=SLOW) == NO_OUTCOMES


def at(minutes_ago: int) -> int:
    return (NOW // MINUTE - minutes_ago) * MINUTE


def failing(images: int, *, attempts: int = 0) -> Outcomes:
    names = [f"image {number}" for number in range(images)]
    assert len({mark_of(name) for name in names}) == images < MARKS
    return sum((failed_attempt(name) for name in names), Outcomes(attempts=attempts))


@pytest.mark.guards("failing-attempts-image-minimum", case="one image three times")
@pytest.mark.parametrize(
    ("minutes", "percent"),
    [
        ({}, 0),
        ({at(0): failing(3)}, 100),
        ({at(0): failing(2)}, 0),
        ({at(0): failed_attempt("one") + failed_attempt("one") + failed_attempt("one")}, 0),
        ({at(0): failing(3, attempts=12)}, 20),
        ({at(2): failing(3)}, 100),
        ({at(3): failing(3)}, 0),
        ({at(0): failing(1), at(1): Outcomes(attempts=5), at(2): failing(3)}, 100 * 4 / 9),
    ],
    ids=[
        "nothing",
        "three images",
        "two images",
        "one image three times",
        "a fifth",
        "two minutes ago",
        "three minutes ago",
        "added up",
    ],
)
def test_attempts_fail_if_those_of_at_least_three_images_did_lately(
    minutes: dict[int, Outcomes], percent: float
) -> None:
    assert failing_percent(minutes, NOW) == pytest.approx(percent)


def test_a_burn_of_one_uses_up_the_budget_in_its_time_and_late_and_given_up_images_burn_alike() -> None:
    assert burn({at(0): Outcomes(ended=10_000, late=10)}, FAST_MINUTES, NOW) == pytest.approx(1)
    bad = Outcomes(ended=1000, late=4, given_up=6)
    assert burn({at(0): bad}, FAST_MINUTES, NOW) == pytest.approx(10)


@pytest.mark.guards("burn-both-windows", case="windows0")
@pytest.mark.parametrize("windows", [FAST_MINUTES, SLOW_MINUTES])
def test_a_burn_is_the_smaller_one_of_two_windows(windows: tuple[int, int]) -> None:
    short, long = windows
    good, bad = Outcomes(ended=90), Outcomes(ended=10, given_up=10)
    assert burn({at(0): good, at(short): bad}, windows, NOW) == 0, "it is over"
    assert burn({at(short - 1): bad, at(short): good}, windows, NOW) == pytest.approx(100), "it has just begun"
    assert burn({at(0): bad, at(long - 1): good}, windows, NOW) == pytest.approx(100)
    assert burn({at(0): bad, at(long): good}, windows, NOW) == pytest.approx(1000), "that was before"


@pytest.mark.guards("burn-few-bad-images")
def test_few_bad_images_are_no_burn() -> None:
    def burning(bad: int) -> float:
        return burn({at(0): Outcomes(ended=bad, given_up=bad)}, FAST_MINUTES, NOW)

    assert burning(LEAST_BAD - 1) == 0
    assert burning(LEAST_BAD) == pytest.approx(1000)


@pytest.mark.guards("top-empty-budget-unknown", case="0-0-None")
@pytest.mark.parametrize(
    ("ended", "bad", "left"), [(0, 0, None), (5000, 0, 100), (5000, 1, 80), (5000, 5, 0), (10, 1, -9900)]
)
def test_a_budget_is_gone_when_one_image_of_a_thousand_was_bad(ended: int, bad: int, left: float | None) -> None:
    assert Budget(ended=ended, bad=bad).left_percent == (None if left is None else pytest.approx(left, abs=1e-6))


def test_the_minutes_that_are_needed_are_those_of_the_longest_window() -> None:
    first, bad = needed_since(NOW), Outcomes(ended=10, given_up=10)
    windows = (SLOW_MINUTES[1], SLOW_MINUTES[1])
    assert burn({first: bad}, windows, NOW) > 0
    assert burn({first - MINUTE: bad}, windows, NOW) == 0


def test_outcomes_add_up() -> None:
    first = Outcomes(attempts=1, failed_attempts=2, failing_marks=frozenset({1}), ended=3, late=4, given_up=5)
    other = Outcomes(attempts=10, failed_attempts=20, failing_marks=frozenset({2}), ended=30, late=40, given_up=50)
    assert first + other == Outcomes(
        attempts=11, failed_attempts=22, failing_marks=frozenset({1, 2}), ended=33, late=44, given_up=55
    )
    assert SUCCEEDED + NO_OUTCOMES == SUCCEEDED
