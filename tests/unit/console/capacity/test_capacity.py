"""`darkroom capacity`: the arithmetic by hand, and what the command says of it."""

from __future__ import annotations

import pytest

from checks.expand_template import raw_template, resources
from console.capacity.commands import WORKER_MEMORY_MB
from console.capacity.plan import (
    BATCHES,
    WORKER_TIMEOUT_SECONDS,
    Demand,
    TooMuch,
    plan_of,
    requests_an_image,
)
from console.capacity.prices import PER_MILLION, cost
from tests.unit.console.conftest import Run

BUSY = Demand(per_second=200, seconds=3)


def test_workers_are_the_rate_times_the_seconds_with_a_fifth_to_spare() -> None:
    fast, slow = plan_of(BUSY).lanes
    assert (fast.busy_workers, fast.concurrency, fast.drain_per_second) == (300, 375, 125)
    assert fast == slow or fast.concurrency == slow.concurrency
    assert plan_of(Demand(per_second=10, seconds=0.5, peak=4, paid_share=0.25)).parameters == {
        "FastConcurrency": "7",  # 10 × 4 × 0.25 × 0.5 ÷ 0.8 = 6.25
        "SlowConcurrency": "19",  # 18.75
    }


def test_the_marks_are_what_the_lanes_work_off_in_time() -> None:
    fast, slow = plan_of(BUSY).lanes
    assert (fast.high_water_mark, fast.shed_at) == (3_750, {"free": 1_875, "paid": 3_750})
    assert (slow.high_water_mark, slow.shed_at) == (75_000, {"free": 37_500, "paid": 75_000})
    assert plan_of(Demand(per_second=200, seconds=3, fast_sla_seconds=60)).lanes[0].high_water_mark == 7_500


def test_a_lane_has_two_workers_at_least_and_a_thousand_at_most() -> None:
    assert set(plan_of(Demand(per_second=0.01, seconds=0.25, paid_share=0)).parameters.values()) == {"2"}
    assert plan_of(Demand(per_second=800, seconds=1, paid_share=0)).lanes[1].concurrency == 1000
    with pytest.raises(TooMuch, match=r"slow lane would need 1,002 workers"):
        plan_of(Demand(per_second=801, seconds=1, paid_share=0))


@pytest.mark.parametrize(("seconds", "timeout_seconds"), [(0.25, 60), (6, 60), (6.1, 70), (30, 300)])
def test_visibility_is_six_timeouts_and_those_hold_the_longest_batch(seconds: float, timeout_seconds: int) -> None:
    plan = plan_of(Demand(per_second=1, seconds=seconds))
    assert (plan.worker_timeout_seconds, plan.visibility_seconds) == (timeout_seconds, 6 * timeout_seconds)


def test_a_month_is_the_average_and_not_the_peak() -> None:
    plan = plan_of(BUSY)
    assert plan.images == 200 * 30 * 86_400
    assert plan.gb_seconds == pytest.approx(plan.images * (2 * 3 + 0.5 * 0.14))
    assert plan.dollars == pytest.approx(cost(plan.requests))
    assert plan_of(Demand(per_second=200, seconds=3, peak=1.5)).dollars == plan.dollars


def test_an_image_asks_for_what_has_a_price() -> None:
    requests = requests_an_image(BUSY)
    assert requests.keys() <= PER_MILLION.keys()
    assert requests["Lambda requests"] == 1 + 2 + 0.75, "a batch of the slow lane is two images"
    assert requests["SQS requests"] == 1 + 2 * 0.75
    assert requests["S3 puts"] == 5


def test_it_reckons_with_the_templates_own_numbers() -> None:
    worker = raw_template()["Resources"]["TranscodeImageFunction"]["Properties"]
    assert (worker["Timeout"], worker["MemorySize"]) == (WORKER_TIMEOUT_SECONDS, WORKER_MEMORY_MB)
    sources = resources("AWS::Lambda::EventSourceMapping")
    for lane, batch in BATCHES.items():
        assert sources[f"TranscodeImageFunction{lane.capitalize()}Lane"]["BatchSize"] == batch


def test_the_command_prints_the_parameters_to_set(run: Run) -> None:
    result = run("capacity", "--rate", "200", "--seconds", "3")
    assert result.exit_code == 0
    assert "FastConcurrency=375 SlowConcurrency=375" in result.stdout.splitlines()[-1]
    assert "--parameter-overrides Environment=prod" in result.stdout
    for text in ("3,750", "75,000", "360 s (6 × timeout + window)", "518,400,000 images", "November 2026"):
        assert text in result.stdout
    assert "template.yaml" not in result.stdout, "nothing else is to be changed"


def test_the_command_says_what_else_must_be_changed(run: Run) -> None:
    result = run("capacity", "--rate", "60", "--seconds", "12", "--memory", "3008", "--slow-sla", "300")
    assert result.exit_code == 0
    for text in ("ask for 909", "Timeout to 120", "VISIBILITY_SECONDS to 720", "MemorySize to 3008", "sla_seconds"):
        assert (text in result.stdout) == (text != "ask for 909"), text


def test_an_account_that_must_ask_for_more_is_told_so(run: Run) -> None:
    result = run("capacity", "--rate", "400", "--seconds", "2.5", "--paid", "0.5")
    assert "ask for 1,306" in result.stdout


def test_what_no_lane_can_do_is_an_error_that_says_what_to_do(run: Run) -> None:
    result = run("capacity", "--rate", "2000", "--seconds", "3")
    assert result.exit_code == 1
    assert "1,000 at most" in result.stderr
