"""The memory benchmark's own arithmetic, and the process that it measures."""

import subprocess
import sys
import time

import pytest

from benchmarks.memory.curve import Point, cheapest, dollars_a_million, fastest, fitting, goals_of
from benchmarks.memory.throttle import PERIOD_SECONDS, limited


def point(megabytes: int, *milliseconds: float, lane: str = "slow", waiting: float = 0) -> Point:
    return Point(lane=lane, megabytes=megabytes, milliseconds=milliseconds, waiting=waiting)


SMALL, MIDDLE, LARGE = point(1024, 440), point(2048, 230), point(3008, 200)
CURVE = [SMALL, MIDDLE, LARGE]


def test_a_million_images_cost_their_gigabyte_seconds() -> None:
    assert dollars_a_million(1024, 1000) == pytest.approx(13.3334)
    assert dollars_a_million(2048, 250) == pytest.approx(13.3334 / 2)


def test_waiting_is_paid_for_and_not_measured() -> None:
    waits = point(2048, 100, 200, 600, waiting=100)
    assert (waits.median, waits.worst, waits.total) == (200, 600, 400)
    assert waits.dollars == pytest.approx(dollars_a_million(2048, 400))


def test_the_best_sizes_are_the_cheapest_and_the_fastest() -> None:
    assert cheapest(CURVE) is SMALL
    assert fastest(CURVE) is LARGE


def test_a_size_that_the_most_demanding_image_nearly_fills_is_no_option() -> None:
    assert fitting(CURVE, 0.8 * 1024) == CURVE
    assert fitting(CURVE, 0.8 * 1024 + 1) == [MIDDLE, LARGE]


@pytest.mark.parametrize(
    ("deployed", "peak_mb", "missed"),
    [
        (2048, 1100, []),
        (2048, 1700, ["memory"]),
        (3008, 1100, ["dollars"]),
        (1024, 800, ["milliseconds"]),
    ],
)
def test_the_deployed_size_should_be_large_cheap_and_fast_enough(
    deployed: int, peak_mb: float, missed: list[str]
) -> None:
    goals = [goal for goal in goals_of(CURVE, deployed=deployed, peak_mb=peak_mb) if not goal.holds]
    assert [word for goal in goals for word in ("memory", "dollars", "milliseconds") if word in goal.name] == missed


def test_a_process_that_dies_while_it_is_limited_is_not_waited_for() -> None:
    process = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    with limited(process.pid, 0.5):
        process.kill()
        process.wait()
        time.sleep(2 * PERIOD_SECONDS)
