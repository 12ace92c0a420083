"""An endpoint that is disabled for an hour: what waits, what is lost, and when it has caught up."""

from __future__ import annotations

import random
import time
from bisect import bisect_right
from typing import Any

from benchmarks.forms import by_form
from benchmarks.webhooks.load import endpoints, events
from benchmarks.webhooks.plane import Plane
from benchmarks.webhooks.receivers import ordinary
from repository.report import Goal

HOUR = 3600.0
PER_SECOND = by_form(short=0.5, usual=2.0)
"""How many events a second come for the endpoint that is disabled."""

LATER = by_form(short=0.2, usual=1.0)
"""For how many hours events come for it after it is enabled."""


def measure(*, seed: int) -> tuple[dict[str, Any], list[Goal]]:
    """An endpoint is disabled after five minutes and enabled an hour later, and events come all the time."""
    began = time.monotonic()
    chance = random.Random(seed)
    endpoint = endpoints(chance)[-1]
    seconds = (1 + LATER) * HOUR
    coming = events(chance, [endpoint], deliveries=round(seconds * PER_SECOND), seconds=seconds, in_bursts=0)
    plane = Plane([endpoint], {endpoint.endpoint_id: ordinary}, seed=seed)
    plane.come(coming)
    plane.run(300)
    plane.change(endpoint, is_enabled=False)
    plane.run(300 + HOUR)
    waited = sum(
        at <= plane.time.elapsed() and plane.seen[key].delivered_at is None for key, at in plane.wanted.items()
    )
    plane.change(endpoint, is_enabled=True)
    enabled_at = plane.time.elapsed()
    plane.run_until_delivered({endpoint.endpoint_id}, most_seconds=2 * seconds)
    ends = sorted(seen.delivered_at for seen in plane.seen.values() if seen.delivered_at is not None)
    since = [(at - enabled_at) / 1000 for at in ends if at > enabled_at]
    # It has caught up once so many have ended as have come until then.
    arrivals = sorted(plane.wanted.values())
    caught_up = next(
        at for number, at in enumerate(ends) if at > enabled_at and bisect_right(arrivals, at) - number < 5
    )
    plane.close()
    row = {
        "part": "disabled",
        "seed": seed,
        "deliveries": len(plane.wanted),
        "waited": waited,
        "first_seconds": round(since[0], 1),
        "first_minute": sum(at <= since[0] + 60 for at in since),
        "caught_up_seconds": round((caught_up - enabled_at) / 1000),
        "sent_twice": sum(seen.times > 1 for seen in plane.seen.values()),
        "outcomes": dict(plane.outcomes),
        "broken": dict(+plane.broken),
        "real_seconds": round(time.monotonic() - began, 1),
    }
    lost = sum((+plane.broken).values())
    return row, [Goal(name="deliveries lost by disabling and enabling", value=lost, limit=0)]
