"""One endpoint alone: a healthy one gets 200 deliveries a second, and a slow or silent one four at a time."""

from __future__ import annotations

import random
import time
from statistics import median
from typing import Any

from benchmarks.forms import by_form
from benchmarks.webhooks.load import BURSTING, endpoints, events
from benchmarks.webhooks.neighbours import counted, percentile
from benchmarks.webhooks.plane import Plane
from benchmarks.webhooks.receivers import Behaviour, black_hole, five_seconds, healthy, ordinary
from darkroom.domain.webhooks.endpoint import MAX_FLIGHTS
from repository.report import Goal

PER_SECOND = 200.0
MINUTES = by_form(short=0.25, usual=5.0, long=30.0)
"""How many deliveries come in a second, and for how long."""

MOST_P99_MILLISECONDS, MOST_CALLS = 1000.0, 10.0
"""What one in a hundred may take from its event to the answer, and the calls that a delivery takes on average."""

BAD_PER_SECOND, BAD_SECONDS, TURNS_AT = 10.0, 120.0, by_form(short=12.0, usual=60.0)
"""The load of a slow endpoint; after how many seconds a healthy one under the whole load stops answering."""

NEIGHBOURS_PER_SECOND = 40.0


def healthy_one(*, seed: int) -> dict[str, Any]:
    """A healthy endpoint, which nothing is known of before."""
    began = time.monotonic()
    chance = random.Random(seed)
    endpoint, seconds = endpoints(chance)[-1], MINUTES * 60
    plane = Plane([endpoint], {endpoint.endpoint_id: healthy}, seed=seed)
    plane.come(events(chance, [endpoint], deliveries=round(PER_SECOND * seconds), seconds=seconds, in_bursts=0))
    plane.run(seconds)
    drained = plane.run_until_delivered({endpoint.endpoint_id}, most_seconds=3600)
    took = plane.latencies({endpoint.endpoint_id})
    row = counted(plane) | {
        "part": "one endpoint",
        "seed": seed,
        "deliveries": len(plane.wanted),
        "drained_seconds": drained,
        "p50": round(median(took)),
        "p99": round(percentile(took, 0.99)),
        "worst": round(took[-1]),
        "most_in_flight": plane.most_in_flight[endpoint.endpoint_id],
        "sent_twice": sum(seen.times > 1 for seen in plane.seen.values()),
        "outcomes": dict(plane.outcomes),
    }
    plane.close()
    calls: dict[str, float] = row["calls"]
    row |= {"calls_each": round(sum(calls.values()), 2), "broken": dict(+plane.broken)}
    return row | {"real_seconds": round(time.monotonic() - began, 1)}


def bad_one(*, seed: int, kind: str, behaviour: Behaviour) -> dict[str, Any]:
    """One that is bad from the beginning: the most that are on their way to it."""
    chance = random.Random(seed)
    endpoint = endpoints(chance)[-1]
    plane = Plane([endpoint], {endpoint.endpoint_id: behaviour}, seed=seed)
    coming = events(
        chance, [endpoint], deliveries=round(BAD_PER_SECOND * BAD_SECONDS), seconds=BAD_SECONDS, in_bursts=0
    )
    plane.come(coming)
    plane.run(BAD_SECONDS)
    plane.close()
    return {
        "part": f"one {kind} endpoint",
        "seed": seed,
        "most_in_flight": plane.most_in_flight[endpoint.endpoint_id],
        "broken": dict(+plane.broken),
    }


def turning(*, seed: int) -> dict[str, Any]:
    """A wide one stops answering under the whole load: what is on its way to it half as much later, and what that
    costs the others."""
    chance = random.Random(seed)
    known = endpoints(chance)
    others, turner = known[:-BURSTING], known[-1]
    plane = Plane([*others, turner], {endpoint.endpoint_id: ordinary for endpoint in known}, seed=seed)
    plane.behaves[turner.endpoint_id] = healthy
    seconds = 2 * TURNS_AT
    plane.come(events(chance, [turner], deliveries=round(PER_SECOND * seconds), seconds=seconds, in_bursts=0))
    coming = events(chance, others, deliveries=round(NEIGHBOURS_PER_SECOND * seconds), seconds=seconds, in_bursts=0)
    plane.come(coming)
    ids = {endpoint.endpoint_id for endpoint in others}
    plane.run(TURNS_AT)
    before = plane.latencies(ids)
    plane.behaves[turner.endpoint_id] = black_hole
    plane.run(1.5 * TURNS_AT)
    on_their_way = plane.most_in_flight.pop(turner.endpoint_id)
    plane.run(seconds)
    drained = plane.run_until_delivered(ids, most_seconds=600)
    after = sorted(
        (seen.delivered_at or 0) - plane.wanted[key]
        for key, seen in plane.seen.items()
        if key[0] in ids and plane.wanted[key] >= TURNS_AT * 1000
    )
    plane.close()
    return {
        "part": "one endpoint turns",
        "seed": seed,
        "most_in_flight_before": on_their_way,
        "most_in_flight": plane.most_in_flight[turner.endpoint_id],
        "others_p99_before": round(percentile(before, 0.99)),
        "others_p99": round(percentile(after, 0.99)),
        "others_worst": round(after[-1]),
        "drained_seconds": drained,
        "outcomes": dict(plane.outcomes),
        "broken": dict(+plane.broken),
    }


def measure(*, seed: int) -> tuple[list[dict[str, Any]], list[Goal]]:
    """All of these, and the goals."""
    well = healthy_one(seed=seed)
    bad = [
        bad_one(seed=seed, kind=kind, behaviour=behaviour)
        for kind, behaviour in (("slow", five_seconds), ("silent", black_hole))
    ]
    turned = turning(seed=seed)
    goals = [
        Goal(
            name=f"p99 to one healthy endpoint at {PER_SECOND:.0f} a second (ms)",
            value=well["p99"],
            limit=MOST_P99_MILLISECONDS,
        ),
        Goal(name="calls of a delivery to it", value=well["calls_each"], limit=MOST_CALLS),
        Goal(
            name="deliveries on their way to a slow or silent endpoint",
            value=max(row["most_in_flight"] for row in (*bad, turned)),
            limit=MAX_FLIGHTS,
        ),
        Goal(name="deliveries that it took twice", value=well["sent_twice"], limit=0),
    ]
    return [well, *bad, turned], goals
