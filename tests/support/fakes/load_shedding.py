"""In-memory fakes of what lanes count: their depths, throughput and outcomes, and of token buckets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from darkroom.domain.images.load_shedding import NO_WORK, Work
from darkroom.domain.images.service_level import NO_OUTCOMES, Outcomes
from darkroom.domain.kernel.instants import Milliseconds
from darkroom.domain.kernel.lanes import LANES, Lane, lanes_with
from darkroom.domain.kernel.tenants import Allowance
from darkroom.domain.tenants.token_bucket import Microseconds, Take, take
from darkroom.ports.images import QueueDepth


def lanes_deployed_with(**concurrency: int) -> Mapping[str, Lane]:
    """The lanes, with other numbers of workers than usual for those that are named."""
    return lanes_with({name: lane.concurrency for name, lane in LANES.items()} | concurrency)


@dataclass
class FakeDepths:
    """The `Depths` port: a test sets how full lanes are, and how much of that waits, by default none of it; `looks`
    counts the calls."""

    depths: dict[str, int] = field(default_factory=dict)
    waiting: dict[str, int] = field(default_factory=dict)
    looks: int = 0

    def depth(self, lane: str) -> QueueDepth:
        self.looks += 1
        waiting = self.waiting.get(lane, 0)
        return QueueDepth(waiting=waiting, taken=self.depths.get(lane, 0) - waiting)


@dataclass
class FakeThroughput:
    """The `Throughput` port over a dictionary."""

    minutes: dict[tuple[str, int], Work] = field(default_factory=dict)
    busy: dict[tuple[str, int], Counter[str]] = field(default_factory=dict)

    def add(self, lane: str, work: Work, now: Milliseconds) -> None:
        key = lane, now // 60_000
        self.minutes[key] = self.minutes.get(key, NO_WORK) + work

    def latest(self, lane: str, now: Milliseconds) -> Sequence[Work]:
        worked = sorted((minute for name, minute in self.minutes if name == lane), reverse=True)
        return [self.minutes[lane, minute] for minute in worked if minute * 60_000 > now - 24 * 3600 * 1000][:5]

    def add_of_tenants(self, lane: str, busy_milliseconds: Mapping[str, int], now: Milliseconds) -> None:
        self.busy.setdefault((lane, now // 60_000), Counter()).update(busy_milliseconds)

    def of_tenants(self, lane: str, since: Milliseconds) -> Mapping[str, int]:
        minutes = [busy for (name, minute), busy in self.busy.items() if name == lane and minute * 60_000 >= since]
        return sum(minutes, Counter())


@dataclass
class FakeOutcomes:
    """The `OutcomeCounts` port over a dictionary."""

    minutes: dict[tuple[str, Milliseconds], Outcomes] = field(default_factory=dict)

    def add(self, lane: str, minute: Milliseconds, outcomes: Outcomes) -> None:
        self.minutes[lane, minute] = self.minutes.get((lane, minute), NO_OUTCOMES) + outcomes

    def since(self, lane: str, since: Milliseconds) -> Mapping[Milliseconds, Outcomes]:
        return {
            minute: outcomes for (name, minute), outcomes in self.minutes.items() if name == lane and minute >= since
        }


@dataclass
class FakeTokenBuckets:
    """The `TokenBuckets` port over a dictionary."""

    tats: dict[str, Microseconds] = field(default_factory=dict)

    def take(self, name: str, allowance: Allowance, now: Microseconds, wanted: int = 1, needed: int = 1) -> Take:
        taken = take(self.tats.get(name), allowance, now, wanted, needed)
        self.tats[name] = taken.tat
        return taken

    def forget(self, name: str) -> None:
        self.tats.pop(name, None)
