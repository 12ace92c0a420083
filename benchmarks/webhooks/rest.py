"""An endpoint that is disabled for an hour, and endpoints that fail: what is lost, and when each attempt is made."""

from __future__ import annotations

import random
import time
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from benchmarks.forms import by_form
from benchmarks.webhooks.load import endpoints, event, events
from benchmarks.webhooks.plane import SWEEP_SECONDS, Plane
from benchmarks.webhooks.receivers import Behaviour, black_hole, broken, ordinary, refusing
from darkroom.domain.webhooks.delivery import JITTER, MAX_ATTEMPTS, MESSAGE_SECONDS, OVERLOADED_SECONDS, RETRY_SECONDS
from repository.report import Goal

HOUR = 3600.0
PER_SECOND = by_form(short=0.5, usual=2.0)
"""How many events a second come for the endpoint that is disabled."""

HANDLING_SECONDS = 3.0
"""How much later than its due time an attempt may begin for the queue's sake: a delay is in whole seconds."""

LATER = by_form(short=0.2, usual=1.0)
"""For how many hours events come for it after it is enabled."""

EVENTS, WITHIN_HOURS, PLAYED_HOURS = 20, 10, 90
"""How many events a failing endpoint gets, within how long, and how long that is played: ten attempts take 76 hours."""


def disabled_for_an_hour(*, seed: int) -> tuple[dict[str, Any], Mapping[str, int]]:
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
    caught_up = next(at for number, at in enumerate(ends) if at > enabled_at and _come(arrivals, at) - number < 5)
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
    return row, +plane.broken


def _come(arrivals: Sequence[float], until: float) -> int:
    low, high = 0, len(arrivals)
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if arrivals[middle] <= until else (low, middle)
    return low


def failing(*, kind: str, seed: int) -> tuple[dict[str, Any], Mapping[str, int]]:
    """An endpoint at which all deliveries fail, or the first alone, until that has used its attempts."""
    chance = random.Random(f"{seed} {kind}")
    endpoint = endpoints(chance)[-1]
    coming = sorted(
        (event(chance, chance.uniform(0, WITHIN_HOURS * HOUR), endpoint.tenant_id) for _ in range(EVENTS)),
        key=lambda event: event.time,
    )
    first = coming[0].event_id
    behaves: Behaviour = {"errors": broken, "timeouts": black_hole, "one event": refusing(first)}[kind]
    plane = Plane([endpoint], {endpoint.endpoint_id: behaves}, seed=seed)
    plane.come(coming)
    plane.run(PLAYED_HOURS * HOUR)
    attempts = plane.seen[endpoint.endpoint_id, first].attempts
    least = OVERLOADED_SECONDS if kind == "timeouts" else 0
    outside = sum(
        not _is_in_its_window((begins - ended) / 1000, max(wait, least))
        for ((_, ended), (begins, _)), wait in zip(pairwise(attempts), RETRY_SECONDS, strict=False)
    )
    plane.close()
    row = {
        "part": "attempts",
        "kind": kind,
        "seed": seed,
        "attempts": len(attempts),
        "outside": outside + abs(MAX_ATTEMPTS - len(attempts)),
        "hours": round((attempts[-1][1] - attempts[0][0]) / 1000 / HOUR, 2),
        "waits": [round((begins - ended) / 1000, 1) for (_, ended), (begins, _) in pairwise(attempts)],
        "outcomes": dict(plane.outcomes),
        "broken": dict(+plane.broken),
    }
    return row, +plane.broken


def _is_in_its_window(seconds: float, wait: float) -> bool:
    """Whether an attempt is made a fifth around its time at most; what a message cannot wait for, the sweeper sends
    within its minute."""
    least, most = (1 - JITTER) * wait, (1 + JITTER) * wait
    late = HANDLING_SECONDS + (SWEEP_SECONDS if most > MESSAGE_SECONDS else 0)
    return least <= seconds <= most + late


KINDS = ("errors", "timeouts", "one event")


def measure(*, seeds: Sequence[int]) -> tuple[list[dict[str, Any]], list[Goal]]:
    """Both, for each seed; the goals are that nothing is lost and no attempt outside its window."""
    rows = [disabled_for_an_hour(seed=seeds[0])[0]]
    rows += [failing(kind=kind, seed=seed)[0] for kind in KINDS for seed in seeds]
    return rows, [
        Goal(
            name="deliveries lost by disabling and enabling",
            value=sum(rows[0]["broken"].values()),
            limit=0,
            at_least=False,
        ),
        Goal(
            name="attempts outside their windows, or not made",
            value=sum(row["outside"] for row in rows[1:]),
            limit=0,
            at_least=False,
        ),
    ]
