"""The bill of an idle stack: what the documents say is calculated from the template."""

from __future__ import annotations

import re

from checks import idle_cost
from darkroom_cli.capacity.prices import IDLE_DOLLARS, cost
from repository.expand_template import deployed
from repository.report import ROOT


def test_an_idle_stack_costs_no_more_than_it_may() -> None:
    assert idle_cost.total_dollars() <= idle_cost.LIMIT_DOLLARS


def test_an_idle_core_costs_no_more_than_it_may_and_the_page_says_what() -> None:
    dollars, page = idle_cost.total_dollars(**idle_cost.CORE), (ROOT / "docs" / "parts.md").read_text()
    assert dollars <= idle_cost.CORE_LIMIT_DOLLARS
    assert f"an idle core costs about ${dollars:.2f} per month" in page, "run `python -m checks.idle_cost --write`"
    assert idle_cost.table(**idle_cost.CORE) in page
    kinds = [resource["Type"] for resource in deployed(Environment="prod", Access="keys", **idle_cost.CORE).values()]
    counted = {kind: kinds.count(f"AWS::{kind}") for kind in ("Lambda::Function", "CloudWatch::Alarm")}
    assert f"It has {counted['Lambda::Function']} functions, {counted['CloudWatch::Alarm']} plain alarms" in page
    assert counted["Lambda::Function"] <= 14 and counted["CloudWatch::Alarm"] <= 5


def test_the_bill_of_a_load_has_that_of_an_idle_stack() -> None:
    assert round(idle_cost.total_dollars(), 2) == IDLE_DOLLARS, "run `python -m checks.idle_cost --write`"


def test_the_page_of_costs_has_the_calculated_bill() -> None:
    page = (ROOT / "docs" / "deploy.md").read_text()
    assert idle_cost.table_of_loads() in page, "run `python -m checks.idle_cost --write`"
    assert f"An idle stack costs about ${idle_cost.total_dollars():.2f} per month" in page


def test_the_page_of_edits_says_what_a_fifo_queue_costs() -> None:
    page = (ROOT / "docs" / "bulk.md").read_text()
    idle = idle_cost.total_dollars(EditOrder="fifo") - idle_cost.total_dollars()
    messages = [cost({name: 3_000_000}) for name in ("SQS requests", "SQS FIFO requests")]
    assert f"| ${messages[0]:.2f} for a million messages" in page
    assert f"| ${messages[1]:.2f}, and ${idle:.2f} a month, alarm and idle polls included |" in page


def test_the_readme_tells_the_bill_and_the_number_of_alarms() -> None:
    readme = " ".join((ROOT / "README.md").read_text().split())
    match = re.search(r"An idle stack costs \[about \$([0-9.]+) a month\]\([^)]+\), its (\d+) alarms included", readme)
    assert match
    assert (float(match[1]), int(match[2])) == (round(idle_cost.total_dollars(), 2), idle_cost.alarms())
