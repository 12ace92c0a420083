"""What a sweep measures for the alarms."""

from __future__ import annotations

from typing import Any

import pytest

from darkroom.domain.images.service_level import MINUTE, SUCCEEDED, Outcomes, failed_attempt
from darkroom.domain.kernel.errors import Retryable
from darkroom.domain.kernel.lanes import LANES
from darkroom.operations.sweeping.measure_lanes import MeasureLanesPorts, Measures, measure_lanes
from tests.support.fakes.rows import accepted_image
from tests.support.fakes.world import World


def measured(world: World) -> Measures:
    return measure_lanes(world.ports(MeasureLanesPorts))


def minute_of(world: World, minutes_ago: int = 0) -> int:
    return (world.now // MINUTE - minutes_ago) * MINUTE


def test_each_lane_is_measured_by_itself(world: World) -> None:
    world.images.create(accepted_image(lane="fast", now=world.now - 42_000))
    failing = sum((failed_attempt(name) for name in "xyz"), SUCCEEDED)
    world.outcome_counts.add("slow", minute_of(world), failing + Outcomes(ended=20, given_up=10))
    world.dead_letters.add("fast", "{}")
    measures = measured(world)
    assert measures.oldest_seconds == dict.fromkeys(LANES, 0.0) | {"fast": 42.0}
    assert measures.failing_percent == dict.fromkeys(LANES, 0.0) | {"slow": 75.0}
    assert measures.fast_burn == measures.slow_burn == dict.fromkeys(LANES, 0.0) | {"slow": pytest.approx(500)}
    assert measures.dead == dict.fromkeys(LANES, 0) | {"fast": 1}


def test_the_burn_of_six_hours_ago_still_counts_and_that_before_does_not(world: World) -> None:
    world.outcome_counts.add("slow", minute_of(world, 359), Outcomes(ended=10, late=10))
    world.outcome_counts.add("slow", minute_of(world), Outcomes(ended=10, late=1))
    assert measured(world).slow_burn["slow"] == pytest.approx(100)
    world.now += MINUTE
    assert measured(world).slow_burn["slow"] == 0, "too few are left"


@pytest.mark.guards("sweep-measuring-isolated", case="error1")
@pytest.mark.parametrize("error", [Retryable("throttled"), ZeroDivisionError()])
def test_what_cannot_be_measured_is_a_problem_of_one_lane_or_queue_alone(world: World, error: Exception) -> None:
    def fails(call: Any, at: str) -> Any:
        def answer(name: str, *arguments: Any) -> Any:
            if name == at:
                raise error
            return call(name, *arguments)

        return answer

    world.images.oldest_waiting = fails(world.images.oldest_waiting, "fast")
    world.dead_letters.depth = fails(world.dead_letters.depth, "slow")
    world.outcome_counts.since = fails(world.outcome_counts.since, "slow")
    measures = measured(world)
    assert measures.oldest_seconds == dict.fromkeys(LANES.keys() - {"fast"}, 0.0)
    others = dict.fromkeys(LANES.keys() - {"slow"}, 0.0)
    assert measures.dead == measures.failing_percent == measures.fast_burn == measures.slow_burn == others
    assert set(measures.problems.values()) == {error}
    assert measures.problems.keys() == {"the oldest image of fast", "the dead letters of slow", "the outcomes of slow"}


@pytest.mark.guards("noisy-idle-lane-unread", "noisy-only-beside-live-work")
def test_who_takes_much_more_of_a_lane_of_uploads_than_others_is_named_and_an_idle_lane_is_not_asked(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []
    of_tenants = world.throughput.of_tenants

    def reading(lane: str, since: int) -> Any:
        read.append(lane)
        return of_tenants(lane, since)

    monkeypatch.setattr(world.throughput, "of_tenants", reading)
    for lane in LANES:
        world.throughput.add_of_tenants(lane, {"acme": 5_400_000, "globex": 60_000, "initech": 90_000}, world.now)
    assert (measured(world).noisy, read) == ({}, [])
    world.outcome_counts.add("fast", minute_of(world, 20), SUCCEEDED)
    for lane in ("slow", "bulk"):
        world.outcome_counts.add(lane, minute_of(world), SUCCEEDED)
    assert (measured(world).noisy, read) == ({"slow": ("acme",)}, ["slow"])
    world.advance(20 * MINUTE)
    world.outcome_counts.add("slow", minute_of(world), SUCCEEDED)
    assert measured(world).noisy == {"slow": ()}, "a quarter of an hour is over"
