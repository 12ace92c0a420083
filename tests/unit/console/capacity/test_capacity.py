"""`darkroom capacity`: the arithmetic by hand, and the command's output."""

from __future__ import annotations

import pytest

from checks.expand_template import raw_template, resources
from console.capacity.commands import WORKER_MEMORY_MB
from console.capacity.plan import (
    MIN_WORKERS,
    THROTTLES,
    WORKER_TIMEOUT_SECONDS,
    Demand,
    LanePlan,
    TooMuch,
    plan_of,
    requests_an_image,
)
from console.capacity.prices import PER_MILLION, cost
from darkroom.domain.lanes import LANES
from darkroom.domain.tenants import Tier
from tests.unit.console.conftest import Run

BUSY = Demand(per_second=200, seconds=3)


def lanes_of(demand: Demand) -> tuple[LanePlan, LanePlan]:
    """What the fast and the slow lane need; other lanes have no share unless one is given."""
    plans = {lane.lane: lane for lane in plan_of(demand).lanes}
    return plans["fast"], plans["slow"]


def test_workers_are_the_rate_times_the_seconds_with_a_fifth_to_spare() -> None:
    fast, slow = lanes_of(BUSY)
    assert (fast.busy_workers, fast.concurrency, fast.drain_per_second) == (300, 375, 125)
    assert fast == slow or fast.concurrency == slow.concurrency
    parameters = plan_of(Demand(per_second=10, seconds=0.5, peak=4, paid_share=0.25)).parameters
    assert parameters.keys() == {f"{lane.capitalize()}Concurrency" for lane in LANES} | {"ReservedWorkers"}
    assert parameters["ReservedWorkers"] == str(7 + 19 + MIN_WORKERS * (len(LANES) - 2)), "no other has a share"
    assert parameters["FastConcurrency"] == "7", "10 × 4 × 0.25 × 0.5 ÷ 0.8 = 6.25"
    assert parameters["SlowConcurrency"] == "19", "18.75"


def test_the_marks_are_what_the_lanes_work_off_in_time() -> None:
    fast, slow = lanes_of(BUSY)
    assert (fast.high_water_mark, slow.high_water_mark) == (3_750, 75_000)
    assert (fast.shed_at["free"], fast.shed_at["paid"]) == (1_875, 2_625)
    assert (slow.shed_at["free"], slow.shed_at["paid"]) == (37_500, 52_500)
    assert fast.shed_at.keys() == slow.shed_at.keys() == set(Tier)
    assert lanes_of(Demand(per_second=200, seconds=3, sla_seconds={"fast": 60}))[0].high_water_mark == 7_500


def test_a_lane_with_a_share_of_its_own_leaves_the_others_the_rest() -> None:
    fast, slow = lanes_of(Demand(per_second=100, seconds=1, paid_share=0.5, shares={"slow": 0.8}))
    assert (fast.peak_per_second, slow.peak_per_second) == pytest.approx((10, 80))


def test_a_lane_has_two_workers_at_least_and_a_thousand_at_most() -> None:
    assert [lane.concurrency for lane in lanes_of(Demand(per_second=0.01, seconds=0.25, paid_share=0))] == [2, 2]
    assert lanes_of(Demand(per_second=800, seconds=1, paid_share=0))[1].concurrency == 1000
    with pytest.raises(TooMuch, match=r"slow lane would need 1,002 workers"):
        plan_of(Demand(per_second=801, seconds=1, paid_share=0))


@pytest.mark.parametrize(("seconds", "timeout_seconds"), [(0.25, 60), (6, 60), (6.1, 70), (30, 300)])
def test_visibility_is_six_timeouts_and_those_hold_the_longest_batch(seconds: float, timeout_seconds: int) -> None:
    plan = plan_of(Demand(per_second=1, seconds=seconds))
    assert (plan.worker_timeout_seconds, plan.visibility_seconds) == (timeout_seconds, 6 * timeout_seconds)


def test_a_month_is_the_average_and_not_the_peak() -> None:
    plan = plan_of(BUSY)
    assert plan.images == 200 * 30 * 86_400
    assert plan.gb_seconds == pytest.approx(plan.images * (1769 / 1024 * 3 + 0.5 * 0.14))
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
    parameters = raw_template()["Parameters"]
    for name, (per_second, at_once) in THROTTLES.items():
        assert parameters[f"{name}PerSecond"]["Default"] == per_second
        assert parameters[f"{name}AtOnce"]["Default"] == at_once <= parameters[f"{name}AtOnce"]["MaxValue"]
    sources = resources("AWS::Lambda::EventSourceMapping")
    for lane in LANES.values():
        assert sources[f"TranscodeImageFunction{lane.name.capitalize()}Lane"]["BatchSize"] == lane.batch_size


def test_a_rate_beyond_the_gateways_throttles_raises_them() -> None:
    usual = plan_of(Demand(per_second=400, seconds=0.1)).parameters
    assert not [name for name in usual if name.endswith(("PerSecond", "AtOnce"))]
    busy = plan_of(Demand(per_second=500, peak=2, seconds=0.1)).parameters
    assert (busy["UploadsPerSecond"], busy["UploadsAtOnce"]) == ("1250", "2500")
    assert (busy["RequestsPerSecond"], busy["RequestsAtOnce"]) == ("2500", "5000")


def test_the_command_prints_the_parameters_to_set(run: Run) -> None:
    result = run("capacity", "--rate", "200", "--seconds", "3")
    assert result.exit_code == 0
    deploy, of_a_new_stack = result.stdout.splitlines()[-2:]
    assert "--parameter-overrides Environment=prod Architecture=arm64 FastConcurrency=375 SlowConcurrency=375" in deploy
    assert "build --config-env prod --architecture arm64 " in deploy, "what is deployed"
    assert "Access=" not in deploy and "AlarmEmail=" not in deploy, "an existing stack keeps its own"
    assert of_a_new_stack.endswith("Access=keys AlarmEmail=you@example.com")
    for text in ("3,750", "75,000", "360 s (6 × timeout + window)", "518,400,000 images", "November 2026"):
        assert text in result.stdout
    assert "template.yaml" not in result.stdout, "nothing else is to be changed"


def test_the_command_says_what_else_must_be_changed(run: Run) -> None:
    result = run("capacity", "--rate", "60", "--seconds", "12", "--memory", "3008", "--slow-sla", "300")
    assert result.exit_code == 0
    for text in ("ask for 909", "Timeout to 120", "VISIBILITY_SECONDS to 720", "MemorySize to 3008", "sla_seconds"):
        assert (text in result.stdout) == (text != "ask for 909"), text


@pytest.mark.parametrize("share", ["fast", "fast=2", "fast=-0.1", "quick=0.5", "fast=many"])
def test_an_invalid_share_is_refused(run: Run, share: str) -> None:
    result = run("capacity", "--rate", "1", "--seconds", "1", "--share", share)
    assert result.exit_code == 2 and f"'{share}' is not a share of a lane" in result.stderr


def test_shares_are_parts_of_a_whole(run: Run) -> None:
    result = run("capacity", "--rate", "1", "--seconds", "1", "--share", "fast=0.5", "--share", "slow=0.75")
    assert result.exit_code == 2 and "add up to more than 1" in result.stderr
    result = run("capacity", "--rate", "100", "--seconds", "1", "--share", "fast=0.25", "--share", "slow=0.75")
    assert "FastConcurrency=32 SlowConcurrency=94" in result.stdout


def test_an_account_that_needs_a_higher_quota_is_told_so(run: Run) -> None:
    result = run("capacity", "--rate", "400", "--seconds", "2.5", "--paid", "0.5")
    others = MIN_WORKERS * (len(LANES) - 2)
    assert f"ask for {1_306 + others:,}" in result.stdout


def test_what_no_lane_can_do_is_an_error_that_says_what_to_do(run: Run) -> None:
    result = run("capacity", "--rate", "2000", "--seconds", "3")
    assert result.exit_code == 1
    assert "at most 1,000" in result.stderr
