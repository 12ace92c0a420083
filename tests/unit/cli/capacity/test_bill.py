"""The bill of a load: its lines by hand, what is stored month by month, and what watching costs."""

from __future__ import annotations

import re
from itertools import pairwise
from math import exp

import pytest

from darkroom_cli.capacity.bill import (
    EVENT_DOLLARS,
    METRICS_OF_TRAFFIC,
    BillLine,
    Kept,
    Storage,
    bill,
    event_dollars,
    formula_dollars,
    invocations_an_image,
    originals_dollars,
    stored,
    traced_share,
)
from darkroom_cli.capacity.plan import MONTH_SECONDS, STATUS_READS, Demand
from darkroom_cli.capacity.prices import IDLE_DOLLARS, METRIC
from repository.report import ROOT
from tests.unit.cli.conftest import Run


def demand_of(images: float) -> Demand:
    """So many images a month, half a second each."""
    return Demand(per_second=images / MONTH_SECONDS, seconds=0.5)


def dollars_in(lines: list[BillLine], name: str) -> float:
    """Those of the one line whose name begins so."""
    (line,) = [line for line in lines if line.name.startswith(name)]
    return line.dollars


def test_uploads_and_workers_are_the_formula_and_nothing_else() -> None:
    lines = [*bill(demand_of(1_000_000), Kept())]
    formula = formula_dollars(demand_of(1_000_000))
    assert dollars_in(lines, "POST /images") + dollars_in(lines, "workers") == pytest.approx(sum(formula.values()))
    assert formula["S3 puts"] == 25
    assert formula["Lambda GB-milliseconds"] == pytest.approx(0.0133334 * (1769 / 1024 * 500 + 50))


def test_watching_and_an_idle_stack_have_lines_of_their_own() -> None:
    lines = [*bill(demand_of(720), Kept())]
    assert dollars_in(lines, "an idle stack") == IDLE_DOLLARS
    metrics = dollars_in(lines, f"{METRICS_OF_TRAFFIC} metrics")
    assert metrics == pytest.approx(METRIC * METRICS_OF_TRAFFIC * (1 - exp(-1))), "one upload an hour comes at random"
    assert dollars_in(lines, "the gateway's access log") == pytest.approx(720 * (1 + STATUS_READS) * 0.4 / 2_000_000)


def test_traces_and_lines_of_each_invocation_cost_only_those_who_ask_for_them() -> None:
    demand = demand_of(1_000_000)
    usual, asked = [*bill(demand, Kept())], [*bill(demand, Kept(traced=True, logged=True))]
    assert dollars_in(usual, "traces") == dollars_in(usual, "lines of each") == 0
    runs = invocations_an_image(demand)
    assert runs["submit_image"] == 1 and runs["read_image"] == STATUS_READS and runs["transcode_image"] == 0.75
    expected = 5 * sum(each * traced_share(demand.per_second * each) for each in runs.values())
    assert dollars_in(asked, "traces") == pytest.approx(expected)


@pytest.mark.parametrize(("per_second", "share"), [(0.001, 1.0), (1.0, 0.65), (100.0, 0.06)])
def test_x_ray_records_the_first_of_each_second_and_a_twentieth_of_the_others(per_second: float, share: float) -> None:
    assert traced_share(per_second) == pytest.approx(share, abs=0.01)


def test_what_is_kept_costs_more_each_month() -> None:
    months = [sum(line.dollars for line in stored(100_000, Kept(), month=month)) for month in range(1, 13)]
    growth = [later - earlier for earlier, later in pairwise(months)]
    assert growth[1:] == pytest.approx([growth[1]] * 10), "each month adds as much; the first has half a month of logs"
    first, third = (dollars_in([*stored(100_000, Kept(), month=month)], "originals") for month in (1, 3))
    assert [first, third] == pytest.approx([200 * 0.5 * 0.023, 200 * 2.5 * 0.023])


@pytest.mark.parametrize(
    ("storage", "by_age"),
    [
        ("standard", [46.0, 46.0, 46.0, 46.0, 46.0]),
        ("infrequent", [46.0, 10 + 35.5, 25.0, 25.0, 25.0]),
        ("intelligent", [10 + 2.5 + 46.0, 2.5 + 35.5, 2.5 + 25.0, 2.5 + 16.5, 2.5 + 8.0]),
    ],
)
def test_originals_move_to_their_storage_class_as_they_age(storage: Storage, by_age: list[float]) -> None:
    kept = Kept(storage=storage, original_megabytes=2)
    dollars = [originals_dollars(1_000_000, kept, months_old=age) for age in range(5)]
    assert dollars == pytest.approx(by_age)


def test_events_cost_what_is_measured_at_their_rate() -> None:
    table = (ROOT / "docs" / "benchmarks.md").read_text().partition("| events a second | dollars a million |")[2]
    measured = dict(re.findall(r"^\| (\d+) \| (?:\*\*)?([\d.]+)(?:\*\*)? \|", table.partition("\n\n")[0], re.MULTILINE))
    assert {float(rate): float(dollars) for rate, dollars in measured.items()} == {
        rate: dollars for rate, dollars in EVENT_DOLLARS.items() if rate >= 1
    }
    assert [event_dollars(rate) for rate in (0.0001, 10, 1000)] == pytest.approx([2.90, 1.55, 0.29])
    assert 1.55 < event_dollars(3) < 2.34


def test_the_command_prints_each_line_and_what_later_months_cost(run: Run) -> None:
    asked = ("capacity", "--rate", "0.0385802", "--seconds", "0.5")
    printed = run(*asked).stdout
    for line in bill(demand_of(100_000), Kept()):
        assert line.name in printed and line.basis in printed
    assert "the month" in printed and "36." in printed
    assert "0.1 MB each" in run(*asked, "--original", "0.1").stdout
