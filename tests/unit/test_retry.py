"""Backoff as a table."""

import re
from dataclasses import replace
from typing import Any, get_args

import pytest

from darkroom.domain.images.image import DeadLetterState, Status, message_for
from darkroom.domain.kernel.lanes import LANES, SLOW
from darkroom.domain.kernel.retry import (
    LONGEST_HIDING_SECONDS,
    RETRIES,
    RetryName,
    RetryPolicy,
    returns_in,
)
from darkroom.operations.images.transcode_image import Finished
from repository.report import ROOT
from tests.support.fakes import World
from tests.support.fakes.pictures import jpeg
from tests.support.faults import raising

NAMES: tuple[RetryName, ...] = get_args(RetryName.__value__)
USUAL = RETRIES["standard"]
PAGE = ROOT / "docs" / "retries.md"
"""Its table has a column for each policy, in the order of NAMES, and a row for each attempt that has failed."""


@pytest.mark.parametrize(("attempt", "lowest", "highest"), [(1, 20, 29), (2, 40, 59), (3, 80, 119), (4, 160, 239)])
def test_the_pause_doubles_with_jitter_over_a_floor(attempt: int, lowest: int, highest: int) -> None:
    assert USUAL.delay_seconds(attempt, 0.0) == lowest
    assert USUAL.delay_seconds(attempt, 0.999999) == highest


@pytest.mark.guards("retry-backoff-floor")
def test_five_attempts_span_at_least_five_minutes() -> None:
    assert (USUAL.attempts, USUAL.least_seconds) == (5, 300)
    assert {lane.retries for lane in LANES.values()} == {"standard"}


@pytest.mark.parametrize("policy", RETRIES.values(), ids=RETRIES)
def test_every_pause_is_one_that_sqs_takes(policy: RetryPolicy) -> None:
    pauses = [policy.delay_seconds(attempt, 0.99) for attempt in range(1, policy.attempts)]
    assert all(0 <= (returns_in(pause, receive_count=1) or 0) <= 43_200 for pause in pauses)


@pytest.mark.parametrize(("attempt", "unit_random"), [(0, 0.5), (-1, 0.5), (1, 1.0), (1, -0.1)])
def test_nonsense_is_refused(attempt: int, unit_random: float) -> None:
    with pytest.raises(ValueError, match=r"attempts are counted|unit_random"):
        RetryPolicy().delay_seconds(attempt, unit_random)


@pytest.mark.guards("retry-longer-than-sqs-hides")
@pytest.mark.parametrize(("receive_count", "seconds"), [(1, 7), (4, 7), (5, None), (6, None)])
def test_a_message_returns_but_not_as_a_dead_letter_nor_after_longer_than_sqs_hides_it(
    receive_count: int, seconds: int | None
) -> None:
    assert returns_in(7, receive_count=receive_count) == seconds
    assert returns_in(LONGEST_HIDING_SECONDS + 1, receive_count=receive_count) is None


def test_sidekiqs_pauses_are_those_of_its_formula() -> None:
    """25 retries in about twenty days: https://github.com/sidekiq/sidekiq/wiki/Error-Handling#automatic-job-retry"""
    policy = RETRIES["sidekiq"]
    least = [count**4 + 15 for count in range(25)]
    assert [policy.delay_seconds(count + 1, 0) for count in range(25)] == least
    assert [policy.delay_seconds(count + 1, 0.999) for count in range(25)] == [
        seconds + 9 * (count + 1) for count, seconds in enumerate(least)
    ]
    assert 20 < policy.least_seconds / 86_400 < 21 and policy.attempts == 26


def test_the_page_has_the_pauses_of_each_policy() -> None:
    rows = re.findall(r"(?m)^\| (\d+) \| (.+) \|$", PAGE.read_text())
    written = {name: [row.split(" | ")[place] for _, row in rows] for place, name in enumerate(NAMES)}
    for name, policy in RETRIES.items():
        spans = [
            f"{policy.delay_seconds(attempt, 0):,} to {policy.delay_seconds(attempt, 0.999999):,}"
            for attempt in range(1, policy.attempts)
        ]
        assert [cell for cell in written[name] if cell] == spans
    assert [int(number) for number, _ in rows] == list(range(1, max(each.attempts for each in RETRIES.values())))


@pytest.mark.parametrize("name", NAMES)
def test_an_image_that_always_fails_is_tried_as_its_lane_says_and_given_up_once(
    name: RetryName, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(LANES, "slow", replace(SLOW, retries=name))
    world = World(jitter=lambda: 0.0)
    image_id = world.submit(jpeg(64, 48)).image.image_id
    monkeypatch.setattr(world.originals, "get", raising(ZeroDivisionError("a bug")))
    message, receives, hidden = world.lanes.sent.pop(), 0, list[int]()
    for _ in range(200):
        receives += 1
        outcome: Any = world.deliver(message, f"receipt-{world.now}", receive_count=receives)
        if isinstance(outcome, Finished):
            break
        if outcome.returns_in_seconds is None:  # the sweeper sends another
            row, receives = world.row(image_id), 0
            assert row.due_at is not None
            world.now = max(world.now, row.due_at)
            world.sweep()
            message = world.lanes.sent.pop()
        else:
            hidden.append(outcome.returns_in_seconds)
            world.advance(outcome.returns_in_seconds)
    row = world.row(image_id)
    assert (row.status, row.attempt, row.dead_letter) == (Status.FAILED, RETRIES[name].attempts, DeadLetterState.OWED)
    assert row.error is not None and f"failed {row.attempt} times" in row.error.message
    assert message_for(row).run == 1 and max(hidden) <= LONGEST_HIDING_SECONDS
    assert 0 <= (world.now - row.created_at) / 1000 - RETRIES[name].least_seconds <= 5 * RETRIES[name].attempts


@pytest.mark.parametrize(("name", "status"), [("fast", Status.FAILED), ("sidekiq", Status.PENDING)])
def test_a_row_that_is_being_retried_goes_on_by_what_its_lane_says_now(
    name: RetryName, status: Status, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(jitter=lambda: 0.0)
    image_id = world.submit(jpeg(64, 48)).image.image_id
    message = world.lanes.sent.pop()
    monkeypatch.setattr(world.originals, "get", raising(ZeroDivisionError("a bug")))
    for _ in range(4):
        outcome: Any = world.deliver(message, f"receipt-{world.now}")
        world.advance(outcome.delay_seconds)
    monkeypatch.setitem(LANES, "slow", replace(SLOW, retries=name))
    world.deliver(message, f"receipt-{world.now}")
    assert world.row(image_id).status is status
