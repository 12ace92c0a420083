"""The monthly bill of a stack on which nothing happens, calculated from the template at list prices.

    python -m checks.idle_cost [--write]

`--write` also writes it where the documents and `darkroom capacity` have it, after a change of the template.
Prices are those of darkroom_cli/capacity/prices.py, without the free tier. A month has 30 days.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from darkroom.domain.images.image import DUE_PARTITIONS, waiting_shards_of
from darkroom.domain.kernel.lanes import LANES
from darkroom.domain.webhooks import endpoint
from darkroom_cli.capacity.bill import Kept, bill
from darkroom_cli.capacity.plan import MONTH_SECONDS, Demand
from darkroom_cli.capacity.prices import ALARM, COMPOSITE_ALARM, METRIC, SECRET, cost
from repository.expand_template import deployed, referred
from repository.report import ROOT

LIMIT_DOLLARS = 7.30 + 0.45 * (len(LANES) - 2)
"""What an idle stack may cost: a further lane has a queue, its dead letters and their alarm."""

CORE = dict.fromkeys(("Webhooks", "Usage", "Imports", "Page", "Bulk", "Observability"), "false")
"""The parameters of a core alone."""

CORE_LIMIT_DOLLARS = 3.00 + 0.35 * (len(LANES) - 2)
"""What it may cost."""

MINUTES = 30 * 24 * 60

IDLE_METRICS = {"OldestDeadLetterSeconds": 4 / 24}
"""The metrics that are emitted while nothing happens, each with the share of the hours in which it is. (Cold starts are
not in it: whether the archiver has any is up to Lambda.)"""

POLLERS, POLL_SECONDS = 5, 20
"""Lambda keeps five pollers at an empty queue, and each poll lasts 20 seconds
(https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-scaling.html)."""

SWEEP_QUERIES = sum(map(len, DUE_PARTITIONS.values())) + sum(len(waiting_shards_of(lane)) + 1 for lane in LANES)
"""The due index, the waiting index of each lane, and each lane's outcomes."""

SWEEP_GIGABYTE_MILLISECONDS = 250 * 1.0
"""Of a sweep with nothing to do on a usual day, by `make bench-sweeper`."""

ENDPOINT_SWEEP_GIGABYTE_MILLISECONDS = 150 * 0.5
"""The same of a sweep of endpoints: eight calls after another's four at once."""

BULK_SWEEP_GIGABYTE_MILLISECONDS, BULK_SWEEP_LOG_KILOBYTES = 50 * 0.5, 0.5
"""A sweep of bulk work with nothing to do: one query of what is due."""

SWEEP_LOG_KILOBYTES, ENDPOINT_SWEEP_LOG_KILOBYTES = 0.9, 0.7
"""Of a sweep, as measured on the local stack, with InvocationLogs=sampled."""

_QUERY_UNITS = 0.5
"""An eventually consistent read that finds nothing."""

_PAUSES_UNITS = 1.0
"""The consistent read of what is paused, which is nothing."""

_RECONCILIATION_UNITS = 1.0
"""The consistent read of the reconciliation's row. What a night compares grows with the images."""


@dataclass(frozen=True, kw_only=True)
class BillItem:
    """A line of the bill, in dollars per month."""

    name: str
    dollars: float


def items(**parameters: str) -> list[BillItem]:
    """The lines of the bill of a stack with these parameters, the dearest first."""
    stack = deployed(Environment="prod", Access="keys", **parameters)

    def of(kind: str) -> dict[str, Any]:
        return {name: resource.get("Properties", {}) for name, resource in stack.items() if resource["Type"] == kind}

    alarms, composites = of("AWS::CloudWatch::Alarm"), len(of("AWS::CloudWatch::CompositeAlarm"))
    watched = sum(sum("MetricStat" in query for query in alarm.get("Metrics", ())) or 1 for alarm in alarms.values())
    polled = [
        mapping
        for mapping in of("AWS::Lambda::EventSourceMapping").values()
        if "StartingPosition" not in mapping  # a stream's reads by Lambda cost nothing
    ]
    queues_by_name = of("AWS::SQS::Queue")
    ordered = sum("FifoQueue" in queues_by_name[referred(it["EventSourceArn"]) or ""] for it in polled)
    polls = POLLERS * MINUTES * 60 / POLL_SECONDS
    asked = {"SQS requests": (len(polled) - ordered) * polls, "SQS FIFO requests": ordered * polls}
    secrets = len(of("AWS::SecretsManager::Secret"))
    with_webhooks = "SweepDueEndpointsFunction" in stack
    queues, queries = dead_letter_queues(stack), SWEEP_QUERIES + with_webhooks * endpoint.DUE_SHARDS
    with_bulk = "SweepDueBulkFunction" in stack
    sweep = {
        "Lambda requests": 1 + with_webhooks + with_bulk,
        "Lambda GB-milliseconds": SWEEP_GIGABYTE_MILLISECONDS
        + with_webhooks * ENDPOINT_SWEEP_GIGABYTE_MILLISECONDS
        + with_bulk * BULK_SWEEP_GIGABYTE_MILLISECONDS,
    }
    looks = {"SQS requests": queues + 1, "SNS requests": with_webhooks}
    runs, others = "the sweeper, one a minute", " and the fetch queue"
    if with_webhooks:
        runs, others = "both sweepers, one a minute of each", ", the fetch queue and the followers of events"
    if with_bulk:
        runs += ", and that of bulk work"
    logs = SWEEP_LOG_KILOBYTES + with_webhooks * ENDPOINT_SWEEP_LOG_KILOBYTES + with_bulk * BULK_SWEEP_LOG_KILOBYTES
    lines = [
        BillItem(name=f"{len(alarms)} alarms, on {watched} metrics", dollars=ALARM * watched),
        BillItem(name=f"{composites} composite alarm, which pages", dollars=COMPOSITE_ALARM * composites),
        BillItem(name=f"Lambda's pollers on {len(polled)} empty queues", dollars=cost(asked)),
        BillItem(name=f"{secrets} secrets, of webhooks and of messages", dollars=SECRET * secrets),
        BillItem(name="the archiver's metric", dollars=METRIC * sum(IDLE_METRICS.values())),
        BillItem(
            name=f"the runs of {runs}",
            dollars=MINUTES * cost(sweep),
        ),
        BillItem(
            name=f"… their {queries} index reads",
            dollars=MINUTES
            * cost(
                {
                    "DynamoDB read units": (queries + with_bulk) * _QUERY_UNITS
                    + with_bulk * _RECONCILIATION_UNITS
                    + _PAUSES_UNITS * (parameters.get("Bulk", "true") == "true")
                }
            ),
        ),
        BillItem(
            name=f"… their looks at {queues} dead-letter queues{others}",
            dollars=MINUTES * cost(looks),
        ),
        BillItem(name="… their logs", dollars=MINUTES * cost({"Log kilobytes": logs})),
    ]
    return sorted((line for line in lines if line.dollars), key=lambda line: -line.dollars)


def dead_letter_queues(stack: Mapping[str, Any]) -> int:
    """How many queues of dead letters the stack's sweeps look at."""
    places = (
        ("SweepDueImagesFunction", "DEAD_LETTER_QUEUES"),
        ("SweepDueEndpointsFunction", "EVENT_DEAD_LETTER_QUEUES"),
    )
    return sum(
        stack[name]["Properties"]["Environment"]["Variables"][variable]["Fn::Sub"].count("=")
        for name, variable in places
        if name in stack
    )


def alarms() -> int:
    """How many alarms there are by default, of both kinds."""
    kinds = [resource["Type"] for resource in deployed(Environment="prod", Access="keys").values()]
    return kinds.count("AWS::CloudWatch::Alarm") + kinds.count("AWS::CloudWatch::CompositeAlarm")


def total_dollars(**parameters: str) -> float:
    """The bill of a month."""
    return sum(line.dollars for line in items(**parameters))


def table(**parameters: str) -> str:
    """The bill, of a core as docs/parts.md has it."""
    rows = [f"| {line.name} | {line.dollars:.2f} |" for line in items(**parameters)]
    return "\n".join(["| item | dollars per month |", "|---|---|", *rows])


LOADS = (1_000, 100_000, 10_000_000)
"""Images a month."""

OF_LOADS = "| dollars a month | 1,000 images | 100,000 | 10,000,000 |\n|---|---|---|---|\n"


def table_of_loads() -> str:
    """The bills of loads as docs/deploy.md has them, of three months."""
    demands = [Demand(per_second=images / MONTH_SECONDS, seconds=0.5) for images in LOADS]
    of_month = partial(bill, kept=Kept(), idle_dollars=round(total_dollars(), 2))
    rows = []
    for month in (1, 12, 36):
        bills = [of_month(demand, month=month) for demand in demands]
        rows.append((f"**month {month}**", [sum(line.dollars for line in lines) for lines in bills]))
    return OF_LOADS + "".join(
        f"| {name} | {' | '.join(f'{dollars:,.2f}' for dollars in of_loads)} |\n" for name, of_loads in rows
    )


def write() -> None:
    """Writes the bill where the documents have it."""
    total = f"{total_dollars():.2f}"
    for name, figures in (
        (
            "docs/deploy.md",
            {
                r"(costs about \$)[0-9.]+": total,
                r"()\| dollars a month \| 1,000 images \|.*\n(?:\|.+\n)+": table_of_loads(),
            },
        ),
        (
            "docs/parts.md",
            {
                r"(costs about \$)[0-9.]+": f"{total_dollars(**CORE):.2f}",
                r"()\| item \| dollars per month \|\n(?:\|.+\n)+": table(**CORE) + "\n",
            },
        ),
        ("cli/darkroom_cli/capacity/prices.py", {r"(IDLE_DOLLARS = )[0-9.]+": total}),
        ("README.md", {r"(\[about \$)[0-9.]+": total, r"(its )[0-9]+(?= alarms)": str(alarms())}),
    ):
        page = ROOT / name
        text = page.read_text()
        for figure, value in figures.items():
            text = re.sub(figure, lambda match: match[1] + value, text)  # noqa: B023 - called at once
        page.write_text(text)


if __name__ == "__main__":
    print(f"An idle stack costs ${total_dollars():.2f} per month.\n\n{table()}")
    if sys.argv[1:] == ["--write"]:
        write()
