"""Which uploads a lane accepts and which it refuses, by its backlog and by how fast it drains."""

import pytest

from darkroom.domain.images.load_shedding import (
    Accept,
    Ramp,
    Shed,
    Work,
    decide,
    drain_per_second,
    high_water_mark,
    is_calm,
    look_seconds,
    ramp_of,
    room,
)
from darkroom.domain.kernel.lanes import FAST, LANES, SLOW, lanes_with
from darkroom.domain.kernel.tenants import Tier
from tests.support.fakes.load_shedding import lanes_deployed_with

BUSY = 100
"""What all workers of any lane have taken."""


def work(settled: int, seconds: float) -> Work:
    return Work(settled=settled, busy_milliseconds=round(seconds * 1000))


def test_a_lane_drains_as_its_workers_by_the_time_that_each_took_in_the_latest_minutes_that_hold_enough() -> None:
    assert drain_per_second(SLOW, [work(40, 20)]) == 10 * 40 / 20
    assert drain_per_second(FAST, [work(40, 20)]) == 20 * 40 / 20
    latest, before, long_ago = work(5, 5), work(15, 5), work(1000, 1)
    assert drain_per_second(SLOW, [latest, before, long_ago]) == 10 * 20 / 10
    assert drain_per_second(SLOW, [work(20, 40), before]) == 10 * 20 / 40, "one suffices"
    assert drain_per_second(SLOW, [work(0, 30), work(30, 30)]) == 10 * 30 / 60


@pytest.mark.parametrize("minutes", [[], [work(19, 5)], [work(0, 60)], [work(20, 0)]])
def test_where_too_little_was_measured_the_rate_is_the_one_that_the_lane_surely_keeps(minutes: list[Work]) -> None:
    assert drain_per_second(SLOW, minutes) == SLOW.drain_floor_per_second == 2.0


def test_a_lanes_rates_follow_from_its_workers() -> None:
    service = lanes_deployed_with(fast=2, slow=100)
    assert (service["slow"].drain_floor_per_second, service["slow"].release_per_second) == (20.0, 200.0)
    assert (service["fast"].drain_floor_per_second, service["fast"].sla_seconds) == (0.4, FAST.sla_seconds)
    assert (SLOW.release_per_second, FAST.release_per_second) == (20.0, 40.0)
    assert lanes_with({name: lane.concurrency for name, lane in LANES.items()}) == LANES


def test_the_mark_is_what_is_worked_off_within_the_service_level() -> None:
    assert (high_water_mark(FAST, 5.0), high_water_mark(SLOW, 5.0)) == (150.0, 3000.0)


@pytest.mark.parametrize(
    ("tier", "backlog", "retry_after_seconds"),
    [
        (Tier.FREE, 1499, None),
        (Tier.FREE, 1500, 300),
        (Tier.FREE, 1501, 301),
        (Tier.FREE, 6000, 1200),
        (Tier.PLUS, 1799, None),
        (Tier.PLUS, 1800, 360),
        (Tier.PAID, 1949, None),
        (Tier.PAID, 1950, 390),
    ],
)
def test_free_tenants_go_at_half_the_mark_and_paying_ones_later_until_the_backlog_is_worked_off(
    tier: Tier, backlog: int, retry_after_seconds: int | None
) -> None:
    expected = Accept() if retry_after_seconds is None else Shed(retry_after_seconds=retry_after_seconds)
    assert decide(lane=SLOW, tier=tier, backlog=backlog, taken=BUSY, drain=5.0) == expected


def test_nobody_is_told_to_retry_at_once() -> None:
    assert decide(lane=FAST, tier=Tier.FREE, backlog=10**6, taken=BUSY, drain=10.0**9) == Accept()
    assert decide(
        lane=lanes_deployed_with(fast=2, slow=2)["fast"], tier=Tier.FREE, backlog=1, taken=0, drain=0.01
    ) == Shed(retry_after_seconds=100)


@pytest.mark.guards("load-shedding-start-in-backlog")
def test_what_begins_when_this_backlog_is_gone_takes_no_part_in_it() -> None:
    shed = {"lane": SLOW, "tier": Tier.FREE, "backlog": 1500, "taken": BUSY, "drain": 5.0}
    assert decide(**shed, begins_in_seconds=300) == Accept()  # type: ignore[arg-type]
    assert decide(**shed, begins_in_seconds=299.9) == Shed(retry_after_seconds=300)  # type: ignore[arg-type]


# ── Workers that are not there yet ───────────────────────────────────────────────────────────────────────────────────

BIG = lanes_deployed_with(fast=655)["fast"]
"""Lambda needs 130 seconds until so many work."""


def test_a_lane_begins_with_five_batches_and_takes_five_more_each_second_up_to_its_workers() -> None:
    ramp = ramp_of(BIG, 0)
    assert (ramp.now, ramp.most) == (5, 655)
    assert ramp.worked_within(30) == 5 * 30 + 5 * 30**2 / 2
    assert ramp.worked_within(130) == (5 + 655) / 2 * 130
    assert ramp.worked_within(140) == ramp.worked_within(130) + 655 * 10
    assert (ramp_of(BIG, 300).now, ramp_of(BIG, 900).now, ramp_of(SLOW, 14).now, ramp_of(SLOW, 900).now) == (
        300,
        655,
        7,
        10,
    )


@pytest.mark.parametrize("ramp", [Ramp(now=5, most=655), Ramp(now=5, most=5), Ramp(now=20, most=20)])
@pytest.mark.parametrize("seconds", [0.5, 30, 129, 131, 1000])
def test_work_takes_as_long_as_it_is_done_in(ramp: Ramp, seconds: float) -> None:
    assert ramp.seconds_for(ramp.worked_within(seconds)) == pytest.approx(seconds)


@pytest.mark.guards("load-shedding-begun-workers")
def test_a_lane_takes_what_the_workers_finish_in_time_that_it_has_so_soon() -> None:
    drain = 655 / 0.5
    assert room(BIG, 0, drain) == 2400 / 0.5 < 0.13 * high_water_mark(BIG, drain)
    assert room(BIG, 655, drain) == high_water_mark(BIG, drain)
    of = {"lane": BIG, "tier": Tier.PAID, "drain": drain}
    assert decide(**of, backlog=3119, taken=0) == Accept()  # type: ignore[arg-type]
    assert decide(**of, backlog=3120, taken=0) == Shed(retry_after_seconds=24)  # type: ignore[arg-type]
    assert decide(**of, backlog=3120, taken=655) == Accept()  # type: ignore[arg-type]


@pytest.mark.guards("load-shedding-waiting-not-calm")
def test_a_process_that_accepts_much_needs_the_drain_of_a_lane_without_workers() -> None:
    assert is_calm(BIG, waiting=0, taken=0, accepted=9)
    assert not is_calm(BIG, waiting=0, taken=0, accepted=10)
    assert is_calm(BIG, waiting=0, taken=655, accepted=78)
    assert not is_calm(BIG, waiting=6, taken=0, accepted=0)


@pytest.mark.guards("load-shedding-look-interval")
def test_a_lane_that_promises_seconds_is_looked_at_each_second() -> None:
    assert (look_seconds(FAST), look_seconds(SLOW)) == (1, 5)
