"""A month's bill of a load: every line with its dollars, and with the counter or the assumption that it comes from."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp, log
from typing import Literal

from darkroom.domain.kernel.lanes import LANES
from darkroom_cli.capacity.plan import (
    API_GB,
    MONTH_SECONDS,
    STATUS_READS,
    Demand,
    requests_of_status,
    requests_of_upload,
    requests_of_worker,
)
from darkroom_cli.capacity.prices import IDLE_DOLLARS, METRIC, PER_MILLION, STORED_GB, cost

type Storage = Literal["standard", "infrequent", "intelligent"]

EVENTS = 2
"""An image is accepted, and done."""

EVENT_DOLLARS = {0.1: 2.90, 1: 2.34, 10: 1.55, 30: 1.03, 100: 0.50, 400: 0.29}
"""A million events, from the stream to the functions of both consumers, by events per second: `make bench-webhooks`.
The first is by arithmetic, with each event alone."""

EVENT_WORK = {
    "DynamoDB write units": 2.2,
    "DynamoDB read units": 0.5,
    "Lambda GB-milliseconds": API_GB * 30,
    "Log kilobytes": 1.3,
}
"""What the consumers do with an event if each is alone: a mark by which it is counted once, a share of the day's sums,
a look for endpoints; and what all three functions log."""

ACCESS_LOG_KILOBYTES = 0.4
"""The gateway's line for each request."""

INVOCATION_LOG_KILOBYTES = 0.55 + 0.9 * 0.62
"""Lambda's lines of the begin and the end of an invocation, and nine in ten lines of what took its time: only with
InvocationLogs=all."""

TRACED_PER_SECOND, TRACED_SHARE = 1.0, 0.05
"""X-Ray records one invocation a second of a function, and a twentieth of the others; for functions no rule changes it
(https://docs.aws.amazon.com/lambda/latest/dg/services-xray.html)."""

KEY_REMEMBERED_SECONDS = 60
"""For so long the gateway remembers a key; here all images are of one."""

METRICS_OF_TRAFFIC = 14
"""Metrics that have data in each hour with uploads: `make bench-costs` counts them."""

ROW_KILOBYTES = 1.7 + 0.1
"""The row of a done image with four variants, and its entry in the list; DynamoDB adds 100 bytes to an entry."""

SMALLEST_MOVED_MEGABYTES = 0.131072
"""S3 keeps smaller originals in its standard class."""


@dataclass(frozen=True, kw_only=True)
class Kept:
    """What is stored of an image, in megabytes, and how; nothing is deleted."""

    original_megabytes: float = 2.0
    variants_megabytes: float = 0.6
    storage: Storage = "standard"
    traced: bool = False
    logged: bool = False


@dataclass(frozen=True, kw_only=True)
class BillLine:
    """A line of the bill: `basis` is its counter, or its assumption."""

    name: str
    dollars: float
    basis: str


def bill(demand: Demand, kept: Kept, *, month: int = 1, idle_dollars: float = IDLE_DOLLARS) -> Sequence[BillLine]:
    """The lines of the month that is so many months after the first image."""
    images = demand.per_second * MONTH_SECONDS
    return [
        *_of_work(demand, images),
        *_of_watching(demand, kept, images),
        BillLine(name="an idle stack", dollars=idle_dollars, basis="python -m checks.idle_cost"),
        *stored(images, kept, month=month),
    ]


def _of_work(demand: Demand, images: float) -> Sequence[BillLine]:
    events_per_second = EVENTS * demand.per_second
    alone = 1 / batch(events_per_second)
    work = {name: count * (1 if name == "DynamoDB write units" else alone) for name, count in EVENT_WORK.items()}
    keys = min(1 + STATUS_READS, MONTH_SECONDS / KEY_REMEMBERED_SECONDS / images)
    asked = {"Lambda requests": 1, "Lambda GB-milliseconds": API_GB * 20, "DynamoDB read units": 1}
    return [
        BillLine(
            name="POST /images",
            dollars=images * cost(requests_of_upload()),
            basis="calls by make bench-calls, write units and log bytes by make bench-costs; 100 ms",
        ),
        BillLine(
            name="workers",
            dollars=images * cost(requests_of_worker(demand)),
            basis=f"the same; {demand.seconds:g} s of {demand.memory_mb:,} MB, four variants, half-full batches",
        ),
        BillLine(
            name=f"{STATUS_READS} looks at each status",
            dollars=images * STATUS_READS * cost(requests_of_status()),
            basis="calls by make bench-calls; a client that polls; 20 ms",
        ),
        BillLine(
            name="looks at the key",
            dollars=images * keys * cost(asked),
            basis="one key, which the gateway remembers for a minute; uploads come evenly",
        ),
        BillLine(
            name=f"{EVENTS} events of each, published and brought to two consumers",
            dollars=images * EVENTS * event_dollars(events_per_second) / 1_000_000,
            basis="make bench-webhooks, at this rate; no webhook is sent: a million cost $9",
        ),
        BillLine(
            name="… counted, and compared with endpoints",
            dollars=images * EVENTS * cost(work),
            basis="write units by make bench-scale, log bytes by make bench-costs",
        ),
    ]


def _of_watching(demand: Demand, kept: Kept, images: float) -> Sequence[BillLine]:
    invocations = invocations_an_image(demand)
    traces = sum(images * each * traced_share(demand.per_second * each) for each in invocations.values())
    requests = images * (1 + STATUS_READS)
    hours = 1 - exp(-images / (MONTH_SECONDS / 3600))
    logged = images * sum(invocations.values()) * INVOCATION_LOG_KILOBYTES
    return [
        BillLine(
            name="the gateway's access log",
            dollars=cost({"Log kilobytes": requests * ACCESS_LOG_KILOBYTES}),
            basis=f"{ACCESS_LOG_KILOBYTES:g} KB for each request",
        ),
        BillLine(
            name="lines of each invocation",
            dollars=cost({"Log kilobytes": logged}) if kept.logged else 0,
            basis="InvocationLogs=" + ("all: 1.1 KB more each" if kept.logged else "sampled"),
        ),
        BillLine(
            name="traces",
            dollars=cost({"X-Ray traces": traces}) if kept.traced else 0,
            basis="Tracing="
            + ("Active: one a second of each function, and a twentieth beyond" if kept.traced else "PassThrough"),
        ),
        BillLine(
            name=f"{METRICS_OF_TRAFFIC} metrics of traffic",
            dollars=METRIC * METRICS_OF_TRAFFIC * hours,
            basis=f"make bench-costs; uploads in {hours:.0%} of the hours",
        ),
    ]


def stored(images: float, kept: Kept, *, month: int) -> Sequence[BillLine]:
    """What is kept costs in that month: all images of the months before, and half a month of its own."""
    gigabytes = images / 1000  # of what is a megabyte for each image
    lived = month - 0.5
    logs = images * LOGGED_KILOBYTES / 1_000_000
    rows = gigabytes * ROW_KILOBYTES / 1000 * lived
    return [
        BillLine(
            name=f"originals, {kept.storage}",
            dollars=sum(
                originals_dollars(images, kept, months_old=age, share=0.5 if age == 0 else 1) for age in range(month)
            ),
            basis=f"{kept.original_megabytes:g} MB each, none deleted, month {month}",
        ),
        BillLine(
            name="variants",
            dollars=gigabytes * kept.variants_megabytes * lived * STORED_GB["S3 standard"],
            basis=f"{kept.variants_megabytes:g} MB for the four of an image, none deleted",
        ),
        BillLine(
            name="rows, and their recovery to any second",
            dollars=rows * (STORED_GB["DynamoDB"] + STORED_GB["DynamoDB, to any second"]),
            basis=f"{ROW_KILOBYTES:g} KB each",
        ),
        BillLine(
            name="logs, kept for 30 days",
            dollars=logs * (0.5 if month == 1 else 1) * STORED_GB["Logs"],
            basis=f"{LOGGED_KILOBYTES:g} KB of an image, not compressed",
        ),
    ]


LOGGED_KILOBYTES = (
    requests_of_upload()["Log kilobytes"]
    + requests_of_worker(Demand(per_second=1, seconds=1))["Log kilobytes"]
    + STATUS_READS * requests_of_status()["Log kilobytes"]
    + (1 + STATUS_READS) * ACCESS_LOG_KILOBYTES
    + EVENTS * EVENT_WORK["Log kilobytes"]
)
"""Of one image, in all groups; fewer where events come in batches."""


def originals_dollars(images: float, kept: Kept, *, months_old: int, share: float = 1) -> float:
    """What a month's originals cost in a later month: those uploaded `months_old` months before. Half of what moves
    after 30 days has moved on average in the first month after that of its upload."""
    gigabytes = images * kept.original_megabytes / 1000
    if kept.storage == "standard" or kept.original_megabytes < SMALLEST_MOVED_MEGABYTES:
        return gigabytes * share * STORED_GB["S3 standard"]
    moves = {"infrequent": 1, "intelligent": 0}[kept.storage] == months_old
    dollars = cost({"S3 transitions": images}) if moves else 0.0
    tiers = {
        "infrequent": ("S3 standard", "S3 infrequent", "S3 infrequent"),
        "intelligent": (
            "S3 intelligent, read",
            "S3 intelligent, 30 days unread",
            "S3 intelligent, 90 days unread",
        ),
    }[kept.storage]
    first, second, third = (STORED_GB[tier] for tier in tiers)
    per_gigabyte = {0: first, 1: (first + second) / 2, 2: second, 3: (second + third) / 2}.get(months_old, third)
    if kept.storage == "intelligent":
        dollars += share * cost({"S3 objects watched": images})
    return dollars + gigabytes * share * per_gigabyte


def invocations_an_image(demand: Demand) -> Mapping[str, float]:
    """How often each function runs for an image."""
    events = EVENTS / batch(EVENTS * demand.per_second)
    return {
        "submit_image": 1,
        "read_image": STATUS_READS,
        "transcode_image": sum(demand.share(lane) / lane.batch_size for lane in LANES.values()),
        "publish_events": events,
        "create_deliveries": events,
        "count_usage": events,
    }


def traced_share(per_second: float) -> float:
    """The share of a function's invocations that X-Ray records, at so many a second. The first of each second is one of
    so many on average, if they come at random."""
    first = (1 - exp(-per_second)) / per_second
    return min(1.0, TRACED_PER_SECOND * first + (1 - first) * TRACED_SHARE)


def batch(events_per_second: float) -> float:
    """How many events a function gets at once: `make bench-webhooks`, where 400 a second are 25."""
    return max(1.0, events_per_second / 16)


def event_dollars(events_per_second: float) -> float:
    """A million events at that rate: between two measured ones on the straight line over the rates' logarithms."""
    rates = [*EVENT_DOLLARS]
    at = min(max(events_per_second, rates[0]), rates[-1])
    after = min(max(bisect_right(rates, at), 1), len(rates) - 1)
    low, high = rates[after - 1], rates[after]
    part = log(at / low) / log(high / low)
    return EVENT_DOLLARS[low] + part * (EVENT_DOLLARS[high] - EVENT_DOLLARS[low])


def formula_dollars(demand: Demand) -> Mapping[str, float]:
    """A million uploads and their workers, by what is billed: without looks, events, watching and storage."""
    each: dict[str, float] = {}
    for part in (requests_of_upload(), requests_of_worker(demand)):
        for name, count in part.items():
            each[name] = each.get(name, 0) + PER_MILLION[name] * count
    return each
