"""Observing a stack: what each part shows, how much is read for it, and that no part hides another."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from darkroom.domain.images.image import Status
from darkroom.domain.kernel.errors import Retryable
from darkroom.domain.kernel.lanes import LANES
from darkroom.domain.webhooks.delivery import new_delivery
from darkroom.domain.webhooks.endpoint import DisabledBy, disable
from darkroom_cli.operator.domain.observation import Alarm, Condition, Counted, Recent
from darkroom_cli.operator.operations.observation.observe_stack import (
    BUDGET_SECONDS,
    ENTRIES_PER_SHARD,
    MEASURED_SECONDS,
    PANELS,
    ROWS_PER_LANE,
    SAMPLE_SECONDS,
    SLOW_SECONDS,
)
from tests.support.fakes.observation import count
from tests.support.faults import calls_of, raising
from tests.support.observed import Observed

ALARM = Alarm(name="ImagesLateAlarm", description="Late.", reason="", since=1, is_critical=False)


def known(panel: Any) -> Any:
    """What a part shows, which could be read."""
    assert panel.problem is None and panel.value is not None, panel.problem
    return panel.value


@pytest.fixture
def world() -> Observed:
    return Observed()


def test_a_quiet_stack_has_nothing_to_show() -> None:
    seen = Observed().look()
    assert seen.problems == {}
    unfinished = known(seen.unfinished)
    assert (unfinished.working, unfinished.defects, unfinished.looked_at, unfinished.is_all) == ((), (), 0, True)
    assert all(waits.oldest_since is None for waits in unfinished.lanes.values())
    assert (known(seen.dead_letters).number, known(seen.alarms)) == (0, ())
    assert known(seen.scheduled).next_at is None
    assert known(seen.webhooks).endpoints == Counted(number=0, is_all=True)
    assert known(seen.drains) == {name: lane.drain_floor_per_second for name, lane in LANES.items()}
    assert known(seen.outcomes) == dict.fromkeys(LANES, Recent(fast_burn=0, slow_burn=0, failing_percent=0))
    assert [budget.left_percent for budget in known(seen.budgets).values()] == [None] * len(LANES)


def test_the_incident_is_the_first_alarm_and_what_causes_it_the_next(world: Observed) -> None:
    incident = replace(ALARM, name="IncidentAlarm", since=3, is_critical=True, children=frozenset({"StuckAlarm"}))
    stuck = replace(ALARM, name="StuckAlarm", since=2, is_critical=True)
    world.alarms.raised += [ALARM, stuck, incident]
    assert known(world.look().alarms) == (incident, stuck, ALARM)


def test_busy_workers_and_failures_come_from_the_rows_that_have_waited_longest(world: Observed) -> None:
    busy = world.fail(1, status=Status.PROCESSING, lease_until=world.now + 1000, seconds_ago=9)
    alike = [world.fail(number, seconds_ago=9 - number) for number in (2, 3)]
    other = world.fail(4, "ValueError", lane="fast")
    unfinished = known(world.look().unfinished)
    assert [worker.image_id for worker in unfinished.working] == [busy]
    assert [(defect.fingerprint, [image.image_id for image in defect.images]) for defect in unfinished.defects] == [
        ("KeyError@operations/transcode_image.py:_develop", [busy, *alike]),
        ("ValueError@operations/transcode_image.py:_develop", [other]),
    ]
    assert (unfinished.looked_at, unfinished.is_all) == (4, True)


@pytest.mark.guards("top-lane-rows-bound")
def test_of_a_long_lane_only_the_longest_waiting_rows_are_read_and_that_is_said(
    world: Observed,
) -> None:
    for number in range(3 * ROWS_PER_LANE):
        world.fail(number, seconds_ago=1000 - number)
    world.put(9999, lane="fast")
    asked = calls_of(world.images, "get_all")
    unfinished = known(world.look().unfinished)
    assert sorted(map(len, asked)) == [1, ROWS_PER_LANE]
    assert (unfinished.looked_at, unfinished.is_all) == (ROWS_PER_LANE + 1, False)
    (defect,) = unfinished.defects
    assert [image.image_id for image in defect.images] == [f"{number:026d}" for number in range(ROWS_PER_LANE)]
    assert unfinished.lanes["slow"].images == Counted(number=3 * ROWS_PER_LANE, is_all=True)


@pytest.mark.guards("top-shard-entries-bound")
def test_no_more_entries_of_a_shard_are_read_than_its_bound(world: Observed) -> None:
    for number in range(40 * ENTRIES_PER_SHARD):
        world.put(number, seconds_ago=5000)
    waits = known(world.look().unfinished).lanes["slow"]
    assert waits.images == Counted(number=16 * ENTRIES_PER_SHARD, is_all=False)
    assert waits.late == Counted(number=16 * ENTRIES_PER_SHARD, is_all=False)


def test_an_unreadable_row_is_counted_and_hides_no_other(world: Observed) -> None:
    readable, unreadable = world.fail(1), world.put(2)
    world.images.unreadable[unreadable] = world.images.rows.pop(unreadable)
    unfinished = known(world.look().unfinished)
    assert (unfinished.unreadable, [defect.images[0].image_id for defect in unfinished.defects]) == (1, [readable])


@pytest.mark.guards("top-scheduled-clock-skew")
def test_what_is_scheduled_is_counted_apart_from_what_was_accepted_just_now_by_a_clock_that_is_ahead() -> None:
    world = Observed()
    world.put(1, seconds_ago=-3600, status=Status.SCHEDULED)
    world.put(2, seconds_ago=-2)
    seen = world.look()
    assert known(seen.scheduled).images.number == 1
    assert known(seen.scheduled).next_at == world.now + 3_600_000
    assert known(seen.unfinished).lanes["slow"].images.number == 1


def test_dead_letters_are_counted_and_some_of_them_told_by_cause_without_taking_them(world: Observed) -> None:
    first, _ = world.give_up(1), world.give_up(2)
    other = world.give_up(3, "ValueError")
    dead = known(world.look().dead_letters)
    assert (dead.number, dead.depths, dead.sampled) == (3, {"fast": 0, "slow": 3, "usage": 0}, 3)
    assert [(cause.dead_letters, cause.cause, cause.fingerprint, cause.image_id) for cause in dead.causes] == [
        (2, "KeyError", "KeyError@?", first),
        (1, "ValueError", "ValueError@?", other),
    ]
    assert world.dead_letters.hidden == set()


def test_causes_of_dead_letters_are_read_again_when_their_numbers_change_or_after_a_while(world: Observed) -> None:
    world.give_up(1)
    before = world.look()
    world.dead_letters.messages["slow"] = []  # what was counted is what counts
    world.advance(SAMPLE_SECONDS - 1)
    again = world.look(before)
    assert known(again.dead_letters) == known(before.dead_letters)
    world.advance(1)
    assert known(world.look(again).dead_letters).causes == ()
    world.give_up(2)
    world.given_up.counts["slow"] = count(waiting=2)
    assert known(world.look(again).dead_letters).sampled == 1


def test_endpoints_that_do_not_fare_well_are_shown_with_what_waits_for_them_the_worst_first(world: Observed) -> None:
    world.endpoint(0)
    failing = world.endpoint(1, failing_since=world.now)
    world.endpoints.rows["shop", 2] = gone = disable(world.endpoint(2), DisabledBy.GONE, now=world.now)
    row = new_delivery(
        endpoint_id=gone.endpoint_id, tenant_id="shop", event_id="e", event_type="image.done", time=1, body="", now=1
    )
    world.deliveries.create(row)
    webhooks = known(world.look().webhooks)
    assert webhooks.conditions == {
        Condition.HEALTHY: 1,
        Condition.PAUSED: 0,
        Condition.FAILING: 1,
        Condition.RESTING: 0,
        Condition.DISABLED: 1,
    }
    assert [(condition.endpoint.endpoint_id, condition.deliveries.number) for condition in webhooks.unhealthy] == [
        (gone.endpoint_id, 1),
        (failing.endpoint_id, 0),
    ]


def test_an_endpoint_that_waits_for_another_to_try_their_host_is_shown_at_rest_as_long(world: Observed) -> None:
    held = world.endpoint(0)
    failing: dict[str, Any] = {"failing_since": world.now, "failures": 3, "unreached": 3, "probe": "p"}
    scout = world.endpoint(1, rests_until=world.now + 5, **failing)
    other = replace(world.endpoint(2), tenant_id="other")
    world.endpoints.rows = {("shop", 0): held, ("shop", 1): scout, ("other", 2): other}
    webhooks = known(world.look().webhooks)
    assert webhooks.conditions[Condition.RESTING] == 2
    assert {condition.endpoint.rests_until for condition in webhooks.unhealthy} == {scout.rests_until}


BROKEN = {
    "alarms": ("alarms", "on"),
    "queues": ("queues", "count"),
    "unfinished": ("images", "get_all"),
    "drains": ("throughput", "latest"),
    "outcomes": ("outcome_counts", "since"),
    "budgets": ("measurements", "budgets"),
    "measured": ("measurements", "latest"),
    "dead_letters": ("given_up", "count"),
    "webhooks": ("endpoints", "everything"),
    "pauses": ("pauses", "all"),
    "tenants": ("throughput", "of_tenants"),
}


@pytest.mark.guards("top-part-failure-isolated")
@pytest.mark.parametrize("error", [Retryable("down"), KeyError("a bug")])
@pytest.mark.parametrize("part", BROKEN)
def test_a_part_that_cannot_be_read_says_why_keeps_what_it_had_and_hides_no_other(
    world: Observed, part: str, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.put(1)
    world.alarms.raised.append(ALARM)
    before = world.look()
    world.advance(BUDGET_SECONDS)
    store, method = BROKEN[part]
    monkeypatch.setattr(getattr(world, store), method, raising(error))
    seen = world.look(before)
    assert seen.problems == {part: error}
    assert getattr(seen, part).value == getattr(before, part).value
    assert getattr(seen, part).read_at == before.observed_at
    assert all(getattr(seen, name).read_at == world.now for name in PANELS if name != part)
    assert getattr(world.look(), part).value is None


def test_what_changes_slowly_is_not_read_at_each_look(world: Observed) -> None:
    before = world.look()
    world.advance(SLOW_SECONDS - 1)
    seen = world.look(before)
    assert {name for name in PANELS if getattr(seen, name).read_at == world.now} == {
        *("alarms", "queues", "unfinished", "dead_letters")
    }
    world.advance(1)
    assert world.look(seen).scheduled.read_at == world.now
    assert world.measurements.looks == 1
    world.advance(MEASURED_SECONDS)
    later = world.look(seen)
    assert world.measurements.looks == 2
    assert later.budgets.read_at == later.function_errors.read_at == before.observed_at
    world.advance(BUDGET_SECONDS - SLOW_SECONDS - MEASURED_SECONDS)
    assert world.look(later).budgets.read_at == world.now


def test_what_failed_is_tried_again_at_the_next_look(world: Observed) -> None:
    fine, world.measurements.latest = world.measurements.latest, lambda now: 1 / 0
    failed = world.look()
    assert isinstance(failed.problems["measured"], ZeroDivisionError)
    world.measurements.latest = fine
    assert world.look(failed).problems == {}


def test_a_clock_that_was_set_back_makes_nothing_last_forever(world: Observed) -> None:
    before = world.look()
    world.advance(-3600)
    assert world.look(before).measured.read_at == world.now


@pytest.mark.guards("top-absent-webhooks-not-late")
def test_nothing_is_late_with_webhooks_that_the_stack_has_not(world: Observed) -> None:
    world.endpoint(0, due_at=1)
    assert "endpoints" in " ".join(world.look().sweeper.value or {})
    world.parts = ("usage",)
    without = world.look()
    assert (without.sweeper.value, without.webhooks.value, without.problems) == ({}, None, {})
