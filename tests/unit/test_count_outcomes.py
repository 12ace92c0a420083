"""Outcomes are written at once if they are bad, now and then if they are good, and kept while they cannot be."""

from __future__ import annotations

from typing import Any

import pytest

from darkroom.domain.images.service_level import MINUTE, NO_OUTCOMES, SUCCEEDED, Outcomes, failed_attempt
from darkroom.operations.sweeping.worker_counts import (
    KEPT_MINUTES,
    REPORT_SECONDS,
    CountOutcomesPorts,
    OutcomeCounter,
    report_outcomes,
)
from tests.failures import ANY_FAILURE
from tests.support.fakes.load_shedding import FakeOutcomes

NOW = 1_795_251_600_000


class Process:
    """A process that counts, and the table that it writes to."""

    def __init__(self) -> None:
        self.now = NOW
        self.outcomes: Any = FakeOutcomes()
        self.counter = OutcomeCounter()

    def count(self, outcomes: Outcomes, lane: str = "slow") -> dict[tuple[str, int], Outcomes]:
        self.counter.count(lane, outcomes, self.now)
        report_outcomes(CountOutcomesPorts(outcome_counts=self.outcomes, clock=lambda: self.now), self.counter)
        return dict(self.outcomes.minutes)


@pytest.mark.guards("outcomes-bad-written-at-once")
def test_what_is_bad_is_written_at_once_with_what_was_good_before() -> None:
    for bad in (failed_attempt("x"), Outcomes(ended=1, late=1), Outcomes(ended=1, given_up=1)):
        process = Process()
        assert process.count(SUCCEEDED) == {}
        assert process.count(bad) == {("slow", NOW): SUCCEEDED + bad}


def test_what_is_good_is_written_every_ten_seconds_in_the_minute_in_which_it_happened() -> None:
    process = Process()
    process.now += 55_000
    assert process.count(SUCCEEDED) == {}
    process.now += REPORT_SECONDS * 1000 - 1
    assert process.count(SUCCEEDED) == {}
    process.now += 1
    assert process.count(SUCCEEDED, "fast") == {
        ("slow", NOW): SUCCEEDED,
        ("slow", NOW + MINUTE): SUCCEEDED,
        ("fast", NOW + MINUTE): SUCCEEDED,
    }
    assert len(process.count(SUCCEEDED)) == 3, "it waits again"


def test_nothing_is_written_if_nothing_happened() -> None:
    process = Process()
    process.count(NO_OUTCOMES)
    process.now += MINUTE
    assert process.count(NO_OUTCOMES) == {}


@pytest.mark.guards("outcomes-failure-contained", "outcomes-unwritten-kept")
@ANY_FAILURE
def test_what_cannot_be_written_is_kept_for_an_hour(failure: Exception) -> None:
    process, writes = Process(), []

    def refuse(*arguments: Any) -> None:
        writes.append(arguments)
        raise failure

    add, process.outcomes.add = process.outcomes.add, refuse
    process.count(failed_attempt("x"), "fast")
    process.now += MINUTE
    assert process.count(failed_attempt("y")) == {}
    assert len(writes) == 2, "one try each time: a second write would only wait as long"
    process.now += (KEPT_MINUTES - 1) * MINUTE + 1
    process.outcomes.add = add
    assert process.count(NO_OUTCOMES) == {("slow", NOW + MINUTE): failed_attempt("y")}
    assert not process.counter.counts
