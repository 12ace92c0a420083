"""What two endpoints that do not answer cost the other forty-eight: each load is played with and without them."""

from __future__ import annotations

import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from benchmarks.webhooks.load import BURSTING, endpoints, events
from benchmarks.webhooks.plane import Plane
from benchmarks.webhooks.receivers import black_hole, ordinary, slow
from darkroom_cli.capacity.prices import cost
from repository.report import Goal

HOLE, SLOW = 0, 20
"""Which of the endpoints are the bad ones: one of a tenant's ten, and one of another tenant's two."""

MOST_RATIO = 1.1
DRAIN_SECONDS = 24 * 3600.0
MEMORY_GB = 0.5


@dataclass(frozen=True, kw_only=True)
class Run:
    """One load, with the bad endpoints or without. Latencies are those of the others, in milliseconds: of all, and of
    those that get no bursts."""

    row: Mapping[str, Any]
    broken: Mapping[str, int]
    all: Sequence[float]
    steady: Sequence[float]


def percentile(values: Sequence[float], share: float) -> float:
    """The value that so large a share of sorted values does not exceed."""
    return values[min(len(values) - 1, int(len(values) * share))]


def play(*, seed: int, deliveries: int, per_second: float, with_bad: bool) -> Run:
    """Plays the load to the end of every delivery; the black hole answers after all others have ended."""
    began = time.monotonic()
    chance = random.Random(seed)
    known = endpoints(chance)
    hole, slow_one = known[HOLE], known[SLOW]
    bad = {hole.endpoint_id: black_hole, slow_one.endpoint_id: slow}
    others = [endpoint for endpoint in known if endpoint.endpoint_id not in bad]
    seconds = deliveries / per_second
    coming = events(chance, known, deliveries=deliveries, seconds=seconds)
    plane = Plane(
        known if with_bad else others,
        {endpoint.endpoint_id: bad.get(endpoint.endpoint_id, ordinary) for endpoint in known},
        seed=seed,
    )
    plane.come(coming)
    plane.run(seconds)
    ids = {endpoint.endpoint_id for endpoint in others}
    drained = plane.run_until_delivered(ids, most_seconds=DRAIN_SECONDS)
    row = {
        "part": "neighbours",
        "seed": seed,
        "bad": with_bad,
        "per_second": per_second,
        "deliveries": len(plane.wanted),
        "drained_seconds": drained,
        "sent_twice": sum(seen.times > 1 for seen in plane.seen.values()),
        "outcomes": dict(plane.outcomes),
    } | counted(plane)
    if with_bad:
        row["slow_drained_seconds"] = plane.run_until_delivered({slow_one.endpoint_id}, most_seconds=DRAIN_SECONDS)
        row["hole_waited"] = sum(
            key[0] == hole.endpoint_id and plane.seen[key].delivered_at is None for key in plane.wanted
        )
        plane.behaves[hole.endpoint_id] = ordinary
        plane.change(hole, is_enabled=True)
        row["hole_drained_seconds"] = plane.run_until_delivered({hole.endpoint_id}, most_seconds=DRAIN_SECONDS)
    every, steady = (
        plane.latencies(ids),
        plane.latencies(ids - {endpoint.endpoint_id for endpoint in known[-BURSTING:]}),
    )
    for name, values in (("all", every), ("steady", steady)):
        row |= {f"{name}_p50": round(median(values)), f"{name}_p99": round(percentile(values, 0.99))}
        row[f"{name}_worst"] = round(values[-1])
    plane.close()
    row["broken"] = dict(+plane.broken)
    row["real_seconds"] = round(time.monotonic() - began, 1)
    return Run(row=row, broken=+plane.broken, all=every, steady=steady)


def counted(plane: Plane) -> dict[str, Any]:
    """What a delivery takes on average: its calls, and dollars for a million, without logs."""
    count = len(plane.wanted)
    queues = (plane.create_queue, plane.deliver_queue)
    billed = dict(plane.aws.billed)
    batches = sum(queue.counts["batches"] for queue in queues)
    billed["SQS requests"] += 2 * batches  # one receives a batch, one deletes it
    billed["Lambda requests"] = batches
    billed["Lambda GB-milliseconds"] = MEMORY_GB * sum(queue.counts["busy milliseconds"] for queue in queues)
    return {
        "calls": {name: round(calls / count, 3) for name, calls in sorted(plane.aws.calls.items())},
        "billed": {name: round(units / count, 3) for name, units in sorted(billed.items())},
        "dollars": {name: round(cost({name: units / count}) * 1_000_000, 3) for name, units in sorted(billed.items())},
        "most_batches": plane.deliver_queue.counts["most batches"],
    }


def measure(*, seeds: Sequence[int], deliveries: int, per_second: float) -> tuple[list[Run], list[Goal]]:
    """Each seed's load without and with the bad endpoints, and the goals: of the ratio of the others' p99s the median
    and the worst."""
    runs: list[Run] = []
    ratios: dict[str, list[float]] = {"all": [], "steady": []}
    for seed in seeds:
        pair = [play(seed=seed, deliveries=deliveries, per_second=per_second, with_bad=bad) for bad in (False, True)]
        for name, ratios_of_kind in ratios.items():
            without, with_bad = (float(run.row[f"{name}_p99"]) for run in pair)
            ratios_of_kind.append(with_bad / without)
        runs += pair
    goals = []
    for name, label in (("all", "the other 48"), ("steady", "the 38 without bursts")):
        for kind, value in (("median", median(ratios[name])), ("worst", max(ratios[name]))):
            goals.append(
                Goal(
                    name=f"p99 of {label}, with two that do not answer ÷ without, {kind}",
                    value=round(value, 3),
                    limit=MOST_RATIO,
                )
            )
    twice = sum(run.row["sent_twice"] for run in runs)
    goals.append(Goal(name="deliveries that a receiver took twice", value=twice, limit=0))
    return runs, goals
