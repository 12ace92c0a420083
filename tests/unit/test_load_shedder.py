"""The load shedder: how often it looks, what it counts itself, and that nothing broken closes the lanes."""

from dataclasses import dataclass
from typing import Any

import pytest

from darkroom.domain.images.load_shedding import CALM_SECONDS, LOOK_SECONDS, Work
from darkroom.domain.kernel.errors import TurnedAway
from darkroom.domain.kernel.tenants import Tier
from darkroom.operations.images.load_shedder import LoadShedder
from darkroom.ports.images import QueueDepth
from tests.failures import ANY_FAILURE
from tests.support.fakes.load_shedding import FakeDepths, FakeThroughput, lanes_deployed_with
from tests.support.faults import meanwhile

START = 1_795_251_600_000


class House:
    """A load shedder, a clock, and its ports: with 10 workers and a second per image the mark of `slow` is 6,000."""

    def __init__(self, depth: int = 0, **concurrency: int) -> None:
        self.now = START
        self.depths: Any = FakeDepths({"slow": depth})
        self.throughput: Any = FakeThroughput()
        self.throughput.add("slow", Work(settled=60, busy_milliseconds=60_000), START)
        service = lanes_deployed_with(**concurrency)
        self.load_shedder = LoadShedder(
            depths=self.depths, throughput=self.throughput, clock=lambda: self.now, service=service
        )

    def takes(self, tier: Tier = Tier.FREE, process_at: int | None = None) -> int | None:
        """None if accepted, otherwise when to retry."""
        try:
            self.load_shedder.require_capacity("slow", tier, process_at=process_at)
        except TurnedAway as refusal:
            assert refusal.code == "overloaded" and str(refusal.retry_after_seconds) in refusal.message
            return refusal.retry_after_seconds
        return None


def test_a_lane_with_room_lets_in_and_one_without_says_how_long_its_backlog_takes() -> None:
    assert House(2999).takes() is None
    assert House(3000).takes() == 300
    assert House(3000).takes(Tier.PAID) is None
    assert House(6001).takes(Tier.PAID) == 601


def test_the_drain_is_by_the_workers_that_the_lane_was_deployed_with() -> None:
    assert House(3000, slow=20).takes() is None
    assert House(3000, slow=2).takes() == 1500


@pytest.mark.guards("load-shedding-calm-work-limit")
@pytest.mark.parametrize(
    ("depth", "seconds"), [(0, CALM_SECONDS), (10, CALM_SECONDS), (11, LOOK_SECONDS), (5000, LOOK_SECONDS)]
)
def test_a_process_looks_at_a_lane_every_five_seconds_at_most_and_at_a_calm_one_every_fifteen(
    depth: int, seconds: int
) -> None:
    house = House(depth)
    for _ in range(3):
        house.takes()
        house.now += seconds * 1000 // 3
    assert house.depths.looks == 1
    house.now = START + seconds * 1000
    house.takes()
    assert house.depths.looks == 2


@pytest.mark.guards("load-shedding-future-drain")
def test_the_drain_is_read_every_fifteen_seconds_at_most() -> None:
    house = House(1000)
    reads: list[int] = []
    meanwhile(house.throughput, "latest", lambda lane, now: reads.append(now))
    for _ in range(30):
        house.takes()
        house.now += 1000
    assert reads == [START, START + CALM_SECONDS * 1000]
    house.now -= 3_600_000
    house.takes()
    assert len(reads) == 3, "a clock that was set back does not keep it from reading"


@pytest.mark.guards("load-shedding-own-accepted")
def test_what_it_has_let_in_since_is_added_to_what_it_saw() -> None:
    house = House(2999)
    assert [house.takes(), house.takes()] == [None, 300]
    assert house.depths.looks == 1


def test_who_lets_in_a_fiftieth_of_the_mark_looks_again_before_its_time() -> None:
    house = House(1000)
    for _ in range(121):
        house.takes()
    assert house.depths.looks == 1
    house.takes()
    assert house.depths.looks == 2


@pytest.mark.guards("load-shedding-busy-asks-drain")
def test_a_process_that_is_busy_with_a_calm_lane_asks_how_it_drains_and_looks_less_often() -> None:
    house = House(10)
    looks = []
    for _ in range(24 + 120 + 1):
        house.takes()
        looks.append(house.depths.looks)
    assert looks == [1] * 24 + [2] * 120 + [3]


@pytest.mark.guards("load-shedding-waiting-not-calm")
def test_a_lane_whose_messages_wait_for_its_first_workers_is_not_calm() -> None:
    house = House(80, slow=100)
    house.takes()
    house.depths.waiting["slow"] = 80
    house.now += LOOK_SECONDS * 1000
    house.takes()
    assert house.depths.looks == 1, "all of them were in work"
    house.now += CALM_SECONDS * 1000
    house.takes()
    house.now += LOOK_SECONDS * 1000
    house.takes()
    assert house.depths.looks == 3


@pytest.mark.guards("load-shedding-begun-workers")
def test_a_process_looks_sooner_at_a_lane_with_few_workers_yet() -> None:
    looks = []
    for waiting in (700, 0):
        house = House(fast=655)
        house.depths.depths["fast"], house.depths.waiting["fast"] = 700, waiting
        house.throughput.add("fast", Work(settled=60, busy_milliseconds=60_000), START)
        for _ in range(60):
            house.load_shedder.require_capacity("fast", Tier.PAID)
        looks.append(house.depths.looks)
    assert looks == [2, 1], "a fiftieth of 2,400 images, which the first five workers and those after them finish"


def test_a_clock_that_was_set_back_does_not_keep_it_from_looking() -> None:
    house = House(100)
    house.takes()
    house.now -= 3_600_000
    house.takes()
    assert house.depths.looks == 2


def test_an_image_that_is_due_later_is_not_counted_among_those_of_now() -> None:
    house = House(2999)
    assert house.takes(process_at=START + 60_000) is None
    assert house.takes() is None, "the one before took no place"
    assert house.takes(process_at=START + 299_000) == 300
    assert house.takes(process_at=START + 300_000) is None


def test_for_a_calm_lane_no_table_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    house = House(10)
    monkeypatch.setattr(house.throughput, "latest", lambda lane, now: pytest.fail("nothing waits"))
    assert [house.takes(), house.takes()] == [None, None]


@dataclass
class Silent:
    """A queue, or a table, that does not answer or refuses; `asked` counts how often it was called."""

    failure: Exception
    asked: int = 0

    def depth(self, lane: str) -> QueueDepth:
        self.asked += 1
        raise self.failure

    def latest(self, lane: str, now: int) -> list[Work]:
        raise self.failure


@pytest.mark.guards("load-shedding-queue-outage", "load-shedding-unseen-not-calm")
@ANY_FAILURE
def test_a_queue_that_does_not_answer_turns_nobody_away_and_is_asked_as_seldom_as_one_that_does(
    failure: Exception,
) -> None:
    house = House(10**6)
    assert house.takes() is not None
    house.now += LOOK_SECONDS * 1000
    silent = house.load_shedder.depths = Silent(failure)
    assert [house.takes(tier) for tier in (Tier.FREE, Tier.PAID, Tier.FREE)] == [None, None, None]
    assert silent.asked == 1
    house.now += LOOK_SECONDS * 1000
    assert house.takes() is None
    assert silent.asked == 2


@ANY_FAILURE
def test_without_throughput_the_drain_is_the_one_that_the_lane_surely_keeps(failure: Exception) -> None:
    house = House(600)
    house.load_shedder.throughput = Silent(failure)  # type: ignore[assignment]
    assert house.takes() == 300
    assert House(600).takes() is None
