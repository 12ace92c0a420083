"""How long an image that waits still takes, and that not knowing it does no harm."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from darkroom.domain.images.estimates import Backlog, Outlook, estimated_seconds
from darkroom.domain.images.image import Image, Status
from darkroom.domain.images.load_shedding import LOOK_SECONDS, Ramp, Work
from darkroom.operations.images.estimate import Estimator
from tests.failures import ANY_FAILURE
from tests.support.fakes.load_shedding import FakeDepths, FakeThroughput, lanes_deployed_with
from tests.support.images import NOW, pending

BUSY = Backlog(depth=110, drain=5.0, ramp=Ramp(now=10, most=10))  # each image takes two seconds


@pytest.mark.parametrize(
    ("depth", "seconds"),
    [(0, 2), (1, 2), (10, 2), (11, 3), (15, 3), (110, 22), (1010, 202)],
)
def test_the_backlog_beyond_the_workers_is_worked_off_first_and_then_the_image(depth: int, seconds: int) -> None:
    assert estimated_seconds(pending(), replace(BUSY, depth=depth), NOW) == seconds


def test_an_estimate_is_longer_where_workers_have_just_begun_or_an_image_backs_off_and_a_second_at_least() -> None:
    assert estimated_seconds(pending(), replace(BUSY, ramp=Ramp(now=5, most=10)), NOW) == 23, "half a second later"
    retried = replace(pending(), attempt=1, not_before=NOW + 40_000)
    assert estimated_seconds(retried, BUSY, NOW) == 42
    assert estimated_seconds(retried, BUSY, NOW + 39_000) == 22
    assert estimated_seconds(retried, replace(BUSY, depth=0), NOW + 100_000) == 2
    assert estimated_seconds(pending(), Backlog(depth=0, drain=100.0, ramp=Ramp(now=10, most=10)), NOW) == 1


class House:
    """An estimator, its ports and its clock: 10 workers of `slow` that took two seconds per image."""

    def __init__(self, *, settled: int = 30) -> None:
        self.now = NOW
        self.depths: Any = FakeDepths({"slow": 110})
        self.throughput: Any = FakeThroughput()
        self.throughput.add("slow", Work(settled=settled, busy_milliseconds=2000 * settled), NOW)
        self.estimator = Estimator(
            depths=self.depths,
            throughput=self.throughput,
            clock=lambda: self.now,
            service=lanes_deployed_with(slow=10),
        )

    def says(self, image: Image | None = None) -> Outlook:
        return self.estimator.outlook(replace(pending(), lane="slow") if image is None else image)


@pytest.mark.guards("load-shedding-begun-workers")
def test_an_image_that_waits_is_estimated_by_a_lane_whose_workers_have_just_begun() -> None:
    house = House()
    house.depths.waiting["slow"] = 110
    assert house.says() == 23


@pytest.mark.guards("estimate-waiting-images-only")
@pytest.mark.parametrize("status", [status for status in Status if status is not Status.PENDING])
def test_nothing_is_estimated_and_nothing_asked_for_an_image_that_waits_for_no_worker(status: Status) -> None:
    house = House()
    assert house.says(replace(pending(), lane="slow", status=status)) is None
    assert house.depths.looks == 0


def test_a_withdrawn_image_waits_for_nobody() -> None:
    assert House().says(replace(pending(), lane="slow", deleted_at=NOW)) is None


@pytest.mark.guards("estimate-unknown-lane")
def test_a_lane_that_this_version_does_not_know_is_not_estimated() -> None:
    assert House().says(replace(pending(), lane="express")) is None


@pytest.mark.parametrize(("settled", "seconds"), [(3, 22), (2, None), (0, None)])
def test_too_few_images_tell_nothing(settled: int, seconds: int | None) -> None:
    assert House(settled=settled).says() == seconds


@pytest.mark.guards("estimate-look-reuse")
def test_a_process_looks_at_a_lane_once_in_some_seconds_however_many_ask() -> None:
    house = House()
    for _ in range(10):
        house.says()
        house.now += LOOK_SECONDS * 100 - 1
    assert house.depths.looks == 1
    house.now += 10
    house.depths.depths["slow"] = 10
    assert (house.says(), house.depths.looks) == (2, 2)


@pytest.mark.guards("estimate-clock-set-back")
def test_a_clock_that_was_set_back_does_not_keep_an_old_look() -> None:
    house = House()
    house.says()
    house.now -= 3_600_000
    house.says()
    assert house.depths.looks == 2


@pytest.mark.guards("estimate-store-outage-tolerated")
@ANY_FAILURE
@pytest.mark.parametrize("silent", ["depths", "throughput"])
def test_a_store_that_does_not_answer_fails_no_read_and_is_not_asked_again_at_once(
    silent: str, failure: Exception
) -> None:
    house, asked = House(), []

    def refuse(*arguments: object) -> Any:
        asked.append(arguments)
        raise failure

    setattr(house.depths if silent == "depths" else house.throughput, {"depths": "depth"}.get(silent, "latest"), refuse)
    assert [house.says() for _ in range(3)] == [None] * 3
    assert len(asked) == 1
    house.now += LOOK_SECONDS * 1000
    house.says()
    assert len(asked) == 2
