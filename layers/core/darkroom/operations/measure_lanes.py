"""Measures what the alarms watch: how long images wait, whether attempts fail, how fast budgets burn, dead letters."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial

from darkroom.domain.lanes import Lane
from darkroom.domain.service_level import (
    FAST_MINUTES,
    SLOW_MINUTES,
    Outcomes,
    burn,
    failing_percent,
    needed_since,
)
from darkroom.ports import AtOnce, Clock, DeadLetters, FetchQueue, Images, OutcomeCounts


@dataclass(frozen=True, kw_only=True)
class Ports:
    """What measuring needs: the dead letters of images and those of events, and in `service` each lane's deployed
    configuration."""

    images: Images
    outcome_counts: OutcomeCounts
    dead_letters: DeadLetters
    event_dead_letters: DeadLetters
    fetch_queue: FetchQueue
    clock: Clock
    at_once: AtOnce
    service: Mapping[str, Lane]


@dataclass(frozen=True, kw_only=True)
class Measures:
    """By lane: how long its oldest unfinished image has waited (0 if none waits), the share of its attempts that failed
    lately, in percent, and how fast its error budget burns. By queue: how many dead letters of images and of events
    there are. `untaken_fetches` is how many messages wait in the fetch queue while no worker has one, which lasts for
    seconds unless nothing takes them. `problems` has an error for everything that could not be measured."""

    oldest_seconds: dict[str, float] = field(default_factory=dict)
    failing_percent: dict[str, float] = field(default_factory=dict)
    fast_burn: dict[str, float] = field(default_factory=dict)
    slow_burn: dict[str, float] = field(default_factory=dict)
    dead: dict[str, int] = field(default_factory=dict)
    dead_of_events: dict[str, int] = field(default_factory=dict)
    untaken_fetches: int = 0
    problems: dict[str, Exception] = field(default_factory=dict)


def measure_lanes(ports: Ports) -> Measures:
    """Measures everything that can be measured now. It never raises: what cannot be is a problem of that lane or queue
    alone."""
    problems: dict[str, Exception] = {}
    now = ports.clock()

    def each[Value](what: str, names: Iterable[str], call: Callable[[str], Value]) -> dict[str, Value]:
        measured: dict[str, Value] = {}

        def measure(name: str) -> None:
            try:
                measured[name] = call(name)
            except Exception as error:
                problems[f"{what} of {name}"] = error

        ports.at_once([partial(measure, name) for name in names])
        return measured

    def oldest_seconds(lane: str) -> float:
        since = ports.images.oldest_waiting(lane)
        return 0.0 if since is None else max(0.0, (now - since) / 1000)

    def untaken(_: str) -> int:
        depth = ports.fetch_queue.depth()
        return 0 if depth.taken else depth.waiting

    def recent(lane: str) -> Mapping[int, Outcomes]:
        return ports.outcome_counts.since(lane, needed_since(now))

    oldest = each("the oldest image", ports.service, oldest_seconds)
    outcomes = each("the outcomes", ports.service, recent)
    return Measures(
        oldest_seconds=oldest,
        failing_percent={lane: failing_percent(minutes, now) for lane, minutes in outcomes.items()},
        fast_burn={lane: burn(minutes, FAST_MINUTES, now) for lane, minutes in outcomes.items()},
        slow_burn={lane: burn(minutes, SLOW_MINUTES, now) for lane, minutes in outcomes.items()},
        dead=each("the dead letters", ports.dead_letters.queues, ports.dead_letters.depth),
        dead_of_events=each("the dead letters", ports.event_dead_letters.queues, ports.event_dead_letters.depth),
        untaken_fetches=sum(each("what waits", ("the fetch queue",), untaken).values()),
        problems=problems,
    )
