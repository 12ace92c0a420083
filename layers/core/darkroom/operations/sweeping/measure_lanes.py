"""Measures what the alarms watch: how long images wait, whether attempts fail, how fast budgets burn, dead letters."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from darkroom.domain.images.image import waiting_shards_of
from darkroom.domain.images.service_level import (
    FAST_MINUTES,
    SLOW_MINUTES,
    Outcomes,
    burn,
    failing_percent,
    needed_since,
)
from darkroom.domain.kernel.instants import Milliseconds
from darkroom.domain.kernel.lanes import LIVE_LANES, Lane
from darkroom.domain.pauses.pauses import Pauses
from darkroom.domain.tenants.shares import WINDOW_MINUTES, ranking
from darkroom.for_each import for_each
from darkroom.ports.dead_letters import DeadLetters
from darkroom.ports.images import FetchQueue, Images, OutcomeCounts, Throughput
from darkroom.ports.kernel import AtOnce, Clock
from darkroom.ports.pauses import KnownPauses, nothing_paused

THREADS = 16
"""How much is measured at the same time: a sweep with nothing to do waits for these calls and for little else."""


@dataclass(frozen=True, kw_only=True)
class MeasureLanesPorts:
    """What measuring needs; `service` is each lane's deployed configuration."""

    images: Images
    outcome_counts: OutcomeCounts
    throughput: Throughput
    dead_letters: DeadLetters
    fetch_queue: FetchQueue
    clock: Clock
    at_once: AtOnce
    service: Mapping[str, Lane]
    pauses: KnownPauses = nothing_paused


@dataclass(frozen=True, kw_only=True)
class Measures:
    """By lane: how long its oldest unfinished image has waited (0 if none waits, or it is paused), the share of its
    attempts that failed lately, in percent, how fast its error budget burns, and its noisy tenants. By queue: how many
    dead letters of images there are. `untaken_fetches` is how many messages wait in the fetch queue while no worker has
    one, which lasts for seconds unless nothing takes them, and `paused_seconds` is the age of the oldest pause.
    `problems` has an error for everything that could not be measured."""

    oldest_seconds: dict[str, float] = field(default_factory=dict)
    failing_percent: dict[str, float] = field(default_factory=dict)
    fast_burn: dict[str, float] = field(default_factory=dict)
    slow_burn: dict[str, float] = field(default_factory=dict)
    noisy: dict[str, tuple[str, ...]] = field(default_factory=dict)
    dead: dict[str, int] = field(default_factory=dict)
    untaken_fetches: int = 0
    paused_seconds: float = 0.0
    problems: dict[str, Exception] = field(default_factory=dict)


def waited_seconds(images: Images, pauses: Pauses, lane: str, shard: str, now: Milliseconds) -> float:
    """How long the oldest unfinished image in one of a lane's shards has waited; 0 if none waits, or the lane is
    paused. Raises Retryable."""
    if pauses.of(lane) is not None:  # guard: pause-lane-never-late
        return 0.0
    since = images.oldest_waiting(lane, shard)
    if since is not None:  # guard: pause-resumed-lane-not-late
        since = pauses.counted_since(since, lane)
    return 0.0 if since is None else max(0.0, (now - since) / 1000)


def measure_lanes(ports: MeasureLanesPorts) -> Measures:
    """Measures everything that can be measured now. It never raises: what cannot be is a problem of that lane or queue
    alone."""
    problems: dict[str, Exception] = {}
    now, pauses = ports.clock(), ports.pauses()

    def untaken() -> int:
        depth = ports.fetch_queue.depth()
        return 0 if depth.taken else depth.waiting  # guard: measures-slow-source-no-alarm

    works: list[tuple[str, str, Callable[[], Any]]] = [
        *(
            ("the oldest image", lane, partial(waited_seconds, ports.images, pauses, lane, shard, now))
            for lane in ports.service
            for shard in waiting_shards_of(lane)
        ),
        *(
            ("the outcomes", lane, partial(ports.outcome_counts.since, lane, needed_since(now)))
            for lane in ports.service
        ),
        *(("the dead letters", queue, partial(ports.dead_letters.depth, queue)) for queue in ports.dead_letters.queues),
        ("what waits", "the fetch queue", untaken),
    ]
    measured: defaultdict[tuple[str, str], list[Any]] = defaultdict(list)

    def measure(work: tuple[str, str, Callable[[], Any]]) -> None:
        what, name, call = work
        try:
            measured[what, name].append(call())
        except Exception as error:  # guard: sweep-measuring-isolated
            problems[f"{what} of {name}"] = error

    for_each(ports.at_once, measure, works, threads=THREADS)

    def of(what: str, names: Iterable[str]) -> dict[str, Any]:
        """What was measured of each, the most of it; what could not be measured of one is not told of that one."""
        values_by_name = {name: measured[what, name] for name in names if f"{what} of {name}" not in problems}
        return {
            name: values[0] if len(values) == 1 else max(values) for name, values in values_by_name.items() if values
        }

    outcomes: Mapping[str, Mapping[int, Outcomes]] = of("the outcomes", ports.service)
    for_each(ports.at_once, measure, _tenants_of(ports, outcomes, now), threads=THREADS)
    return Measures(
        oldest_seconds=of("the oldest image", ports.service),
        failing_percent={lane: failing_percent(minutes, now) for lane, minutes in outcomes.items()},
        fast_burn={lane: burn(minutes, FAST_MINUTES, now) for lane, minutes in outcomes.items()},
        slow_burn={lane: burn(minutes, SLOW_MINUTES, now) for lane, minutes in outcomes.items()},
        noisy={
            lane: tuple(share.tenant_id for share in ranking(busy, ports.service[lane].concurrency) if share.is_noisy)
            for lane, busy in of("the tenants", ports.service).items()
        },
        dead=of("the dead letters", ports.dead_letters.queues),
        untaken_fetches=sum(of("what waits", ("the fetch queue",)).values()),
        paused_seconds=_seconds_paused(pauses, now),
        problems=problems,
    )


def _tenants_of(
    ports: MeasureLanesPorts, outcomes: Mapping[str, Mapping[int, Outcomes]], now: Milliseconds
) -> list[tuple[str, str, Callable[[], Any]]]:
    """What reads whom each lane of uploads has worked for. One that has not worked is not asked: an idle stack pays for
    no such read."""
    since = now - WINDOW_MINUTES * 60_000
    # guard: noisy-idle-lane-unread, noisy-only-beside-live-work
    worked = [lane for lane, minutes in outcomes.items() if lane in LIVE_LANES and max(minutes, default=0) >= since]
    return [("the tenants", lane, partial(ports.throughput.of_tenants, lane, since)) for lane in worked]


def _seconds_paused(pauses: Pauses, now: Milliseconds) -> float:
    oldest = pauses.oldest()
    return 0.0 if oldest is None else max(0.0, (now - oldest.since) / 1000)
