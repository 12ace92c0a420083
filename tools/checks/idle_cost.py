"""The monthly bill of a stack on which nothing happens, calculated from the template at list prices.

    python -m checks.idle_cost [--write]

`--write` also writes it into docs/deploy.md and README.md, after a change of the template.
Prices of November 2026, us-east-1, without the free tier: https://aws.amazon.com/cloudwatch/pricing,
/secrets-manager/pricing, /xray/pricing, and those of console/capacity/prices.py. A month has 30 days.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass

from checks.expand_template import resources
from checks.report import ROOT
from console.capacity.prices import cost
from darkroom.domain import endpoint
from darkroom.domain.image import DUE_PARTITIONS, DUE_SHARDS
from darkroom.domain.lanes import LANES

LIMIT_DOLLARS = 7.50 + 0.45 * (len(LANES) - 2)
"""What an idle stack may cost: a further lane has a queue, its dead letters and their alarm."""

ALARM, COMPOSITE_ALARM, METRIC, SECRET, TRACES_PER_MILLION = 0.10, 0.50, 0.30, 0.40, 5.00
"""Dollars per month; an alarm is billed for each metric that it uses, a metric for the hours in which it has data."""

MINUTES = 30 * 24 * 60

IDLE_METRICS = {"SweepsCompleted": 1.0, "OldestDeadLetterSeconds": 4 / 24}
"""The metrics that are emitted while nothing happens, each with the share of the hours in which it is. (Cold starts are
not in it: whether the archiver has any is up to Lambda.)"""

POLLERS, POLL_SECONDS = 5, 20
"""Lambda keeps five pollers at an empty queue, and each poll lasts 20 seconds
(https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-scaling.html)."""

SWEEP_QUERIES = sum(map(len, DUE_PARTITIONS.values())) + DUE_SHARDS * len(LANES) + endpoint.DUE_SHARDS + len(LANES)
"""The due index, the waiting index of each lane, the due index of endpoints, and each lane's outcomes."""

SWEEP_GIGABYTE_MILLISECONDS = 250 * 1.0
"""Of a sweep with nothing to do on a usual day, by `make bench-sweeper`."""

SWEEP_LOG_KILOBYTES = 2.5
"""As measured on the local stack, Lambda's own lines included."""

_QUERY_UNITS = 0.5
"""An eventually consistent read that finds nothing."""


@dataclass(frozen=True, kw_only=True)
class Item:
    """A line of the bill, in dollars per month."""

    name: str
    dollars: float


def items() -> list[Item]:
    """The lines of the bill, the dearest first."""
    alarms, composites = resources("AWS::CloudWatch::Alarm"), len(resources("AWS::CloudWatch::CompositeAlarm"))
    watched = sum(sum("MetricStat" in query for query in its.get("Metrics", ())) or 1 for its in alarms.values())
    polled = [
        mapping
        for mapping in resources("AWS::Lambda::EventSourceMapping").values()
        if "StartingPosition" not in mapping  # a stream's reads by Lambda cost nothing
    ]
    polls = len(polled) * POLLERS * MINUTES * 60 / POLL_SECONDS
    secrets = len(resources("AWS::SecretsManager::Secret"))
    queues = dead_letter_queues()
    sweep = {"Lambda requests": 1, "Lambda GB-milliseconds": SWEEP_GIGABYTE_MILLISECONDS}
    lines = [
        Item(name=f"{len(alarms)} alarms, on {watched} metrics", dollars=ALARM * watched),
        Item(name=f"{composites} composite alarm, which pages", dollars=COMPOSITE_ALARM * composites),
        Item(name=f"Lambda's pollers on {len(polled)} empty queues", dollars=cost({"SQS requests": polls})),
        Item(name=f"{secrets} secrets, of webhooks and of messages", dollars=SECRET * secrets),
        Item(name="the metric of each sweep, and the archiver's", dollars=METRIC * sum(IDLE_METRICS.values())),
        Item(name="the sweeper's runs, one a minute", dollars=MINUTES * cost(sweep)),
        Item(
            name=f"… their {SWEEP_QUERIES} index reads",
            dollars=MINUTES * cost({"DynamoDB read units": SWEEP_QUERIES * _QUERY_UNITS}),
        ),
        Item(
            name=f"… their looks at {queues} dead-letter queues, the fetch queue and the followers of events",
            dollars=MINUTES * cost({"SQS requests": queues + 1, "SNS requests": 1}),
        ),
        Item(name="… their logs", dollars=MINUTES * cost({"Log kilobytes": SWEEP_LOG_KILOBYTES})),
        Item(name="… their traces", dollars=MINUTES * TRACES_PER_MILLION / 1_000_000),
    ]
    return sorted(lines, key=lambda line: -line.dollars)


def dead_letter_queues() -> int:
    """How many queues of dead letters a sweep looks at."""
    variables = resources("AWS::Lambda::Function")["SweepDueImagesFunction"]["Environment"]["Variables"]
    names = ("DEAD_LETTER_QUEUES", "EVENT_DEAD_LETTER_QUEUES")
    return sum(variables[name]["Fn::Sub"].count("=") for name in names)


def alarms() -> int:
    """How many alarms there are, of both kinds."""
    return len(resources("AWS::CloudWatch::Alarm")) + len(resources("AWS::CloudWatch::CompositeAlarm"))


def total_dollars() -> float:
    """The bill of a month."""
    return sum(line.dollars for line in items())


def table() -> str:
    """The bill as docs/deploy.md has it."""
    rows = [f"| {line.name} | {line.dollars:.2f} |" for line in items()]
    return "\n".join(["| item | dollars per month |", "|---|---|", *rows])


def write() -> None:
    """Writes the bill where the documents have it."""
    total = f"{total_dollars():.2f}"
    for name, figures in (
        (
            "docs/deploy.md",
            {r"(costs about \$)[0-9.]+": total, r"()\| item \| dollars per month \|\n(?:\|.+\n)+": table() + "\n"},
        ),
        ("README.md", {r"(\[about \$)[0-9.]+": total, r"(its )[0-9]+(?= alarms)": str(alarms())}),
    ):
        page = ROOT / name
        text = page.read_text()
        for figure, value in figures.items():
            text = re.sub(figure, lambda found: found[1] + value, text)  # noqa: B023 - called at once
        page.write_text(text)


if __name__ == "__main__":
    print(f"An idle stack costs ${total_dollars():.2f} per month.\n\n{table()}")
    if sys.argv[1:] == ["--write"]:
        write()
