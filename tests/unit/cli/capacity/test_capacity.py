"""`darkroom capacity`: the arithmetic by hand, and the command's output."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

import pytest
from botocore.exceptions import ClientError

from darkroom.domain.kernel.lanes import LANES
from darkroom.domain.kernel.tenants import Tier
from darkroom_cli.capacity import commands
from darkroom_cli.capacity.commands import WORKER_MEMORY_MB
from darkroom_cli.capacity.limits import limits, rush
from darkroom_cli.capacity.plan import (
    MIN_WORKERS,
    THROTTLES,
    WORKER_TIMEOUT_SECONDS,
    Demand,
    LanePlan,
    TooMuch,
    plan_of,
)
from darkroom_cli.capacity.quotas import Quotas, quotas_of
from repository.expand_template import raw_template, resources
from tests.unit.cli.conftest import Run

BUSY = Demand(per_second=200, seconds=3)


OTHERS = sum(MIN_WORKERS if lane.tiers else lane.concurrency for lane in [*LANES.values()][2:])
"""The workers of the lanes that no upload of the examples chooses."""


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
    assert parameters["ReservedWorkers"] == str(7 + 19 + OTHERS), "no other has a share"
    assert parameters["FastConcurrency"] == "7", "10 × 4 × 0.25 × 0.5 ÷ 0.8 = 6.25"
    assert parameters["SlowConcurrency"] == "19", "18.75"


def test_the_marks_are_what_the_lanes_work_off_in_time() -> None:
    fast, slow = lanes_of(BUSY)
    assert (fast.high_water_mark, slow.high_water_mark) == (3_750, 75_000)
    assert (fast.shed_at["free"], fast.shed_at["paid"]) == (1_875, 2_438)
    assert (slow.shed_at["free"], slow.shed_at["paid"]) == (37_500, 48_750)
    assert fast.shed_at.keys() == slow.shed_at.keys() == set(Tier)
    assert lanes_of(Demand(per_second=200, seconds=3, sla_seconds={"fast": 60}))[0].high_water_mark == 7_500


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
    assert plan.requests["Lambda GB-milliseconds"] == pytest.approx(plan.images * 1000 * (1769 / 1024 * 3 + 0.5 * 0.14))
    assert plan_of(Demand(per_second=200, seconds=3, peak=1.5)).requests == plan.requests


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


def test_what_no_lane_can_do_is_an_error_that_says_what_to_do(run: Run) -> None:
    result = run("capacity", "--rate", "2000", "--seconds", "3")
    assert result.exit_code == 1
    assert "at most 1,000" in result.stderr


# ── Quotas ───────────────────────────────────────────────────────────────────────────────────────────────────────────


class FakeAccount:
    """Lambda's and Service Quotas' clients of an account, and a stack in it; it may not `read` some services."""

    parameters: Mapping[str, str] = MappingProxyType({"UploadsPerSecond": "80"})

    def __init__(self, *, denied: str = "") -> None:
        self.denied = denied
        self.quotas = {
            "apigateway": {"Throttle rate": 2500.0, "Throttle burst rate": 1250.0, "Regional APIs": 600.0},
            "dynamodb": {"Table-level read throughput limit": 1.0, "Table-level write throughput limit": 80_000.0},
            "sns": {"Messages Published per Second for Standard Topics": 300.0},
        }

    def client(self, service: str) -> Any:
        return self

    def get_account_settings(self) -> dict[str, Any]:
        self._asked("lambda")
        return {"AccountLimit": {"ConcurrentExecutions": 50}}

    def get_paginator(self, operation: str) -> Any:
        assert operation == "list_service_quotas"
        return self

    def paginate(self, *, ServiceCode: str) -> Iterator[dict[str, Any]]:  # noqa: N803
        self._asked(ServiceCode)
        for name, value in self.quotas.get(ServiceCode, {}).items():
            yield {"Quotas": [{"QuotaName": name, "Value": value}]}

    def _asked(self, service: str) -> None:
        if service == self.denied:
            raise ClientError({"Error": {"Code": "AccessDenied", "Message": "no"}}, "Read")


def test_quotas_are_the_accounts_own_where_it_may_be_asked() -> None:
    own = quotas_of(FakeAccount().client)
    assert own == Quotas(
        concurrency=50,
        gateway_per_second=2500,
        gateway_at_once=1250,
        table_writes=80_000,
        topic_messages=300,
        unread=(),
    )
    denied = quotas_of(FakeAccount(denied="lambda").client)
    assert (denied.concurrency, denied.gateway_per_second) == (1000, 2500)
    assert len(denied.unread) == 1 and denied.unread[0].startswith("lambda: ") and "AccessDenied" in denied.unread[0]
    account = FakeAccount()
    account.quotas["sns"] = {"Topics": 1.0}
    unlisted = quotas_of(account.client)
    assert (unlisted.topic_messages, unlisted.unread) == (
        30_000,
        ("sns: Service Quotas does not list Messages Published per Second for Standard Topics",),
    )


def test_the_first_limit_is_the_one_that_the_fewest_uploads_meet() -> None:
    demand = Demand(per_second=10, seconds=0.5, paid_share=0.5)
    lowest_first = limits(demand, {"fast": 20, "slow": 10}, 500, Quotas())
    assert [(limit.name, limit.uploads_per_second) for limit in lowest_first[:2]] == [
        ("workers of the slow lane (10)", 40),
        ("workers of the fast lane (20)", 80),
    ]
    assert [limit.uploads_per_second for limit in lowest_first] == sorted(
        limit.uploads_per_second for limit in lowest_first
    )
    few = limits(demand, {}, 500, Quotas(concurrency=10))
    assert few[0].name == "concurrent executions of the account (10)"
    assert few[0].uploads_per_second == pytest.approx(10 / 0.64)


def test_a_rush_needs_the_workers_that_lambda_can_begin_in_time_or_provisioned_pollers() -> None:
    some = rush(messages=15_000, within_seconds=180, each_seconds=0.5)
    assert some.workers == 43, "42 if all were there at once"
    assert (round(some.busy_workers, 1), some.pollers) == (41.7, 5)
    many = rush(messages=15_000, within_seconds=30, each_seconds=0.5)
    assert (many.workers, many.busy_workers, many.pollers) == (None, 250, 25)
    assert round(many.soonest_seconds, 1) == 53.8
    assert rush(messages=1, within_seconds=60, each_seconds=0.1).workers == 2


def test_the_command_answers_how_many_workers_a_rush_needs(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = ("capacity", "--messages", "15000", "--minutes", "3", "--seconds", "0.5")
    result = run(*asked)
    assert result.exit_code == 0
    for text in ("43 workers", "83.33 a second", "would bite", "AWS's defaults (the account was not asked)"):
        assert text in result.stdout
    assert (
        "in 0.9 minutes at the soonest"
        in run("capacity", "--messages", "15000", "--minutes", "0.5", *asked[-2:]).stdout
    )
    monkeypatch.setattr(commands, "reach", lambda *_: FakeAccount())
    of_the_account = run(*asked, "--stack", "darkroom-prod").stdout
    assert "that bites: concurrent executions of the account (50), at 78.12 uploads" in of_the_account
    assert "the gateway's throttle (80 a second)" in of_the_account
    assert "The quotas are the account's own." in of_the_account


@pytest.mark.parametrize(
    "options",
    [(), ("--rate", "1", "--messages", "1", "--minutes", "1"), ("--messages", "1"), ("--rate", "1", "--minutes", "1")],
)
def test_a_load_is_a_rate_or_a_rush(run: Run, options: tuple[str, ...]) -> None:
    result = run("capacity", *options, "--seconds", "1")
    assert result.exit_code == 2 and "give either --rate" in result.stderr


def test_an_account_that_needs_a_higher_quota_is_told_so(run: Run) -> None:
    result = run("capacity", "--rate", "400", "--seconds", "2.5", "--paid", "0.5")
    assert f"ask for {1_306 + OTHERS:,}" in result.stdout
