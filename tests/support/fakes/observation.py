"""In-memory fakes of what operators are shown: counts of queues, alarms and measurements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from darkroom.domain.kernel.instants import Milliseconds
from darkroom.domain.kernel.lanes import DELIVERY, FETCH, HOLD, LANES, UPLOAD
from darkroom_cli.operator.domain.budgets import Budget
from darkroom_cli.operator.domain.observation import Alarm, History, Measured, QueueCount

EMPTY = QueueCount(waiting=0, in_flight=0, delayed=0)


def _empty_queues() -> dict[str, QueueCount]:
    return dict.fromkeys((*LANES, HOLD, UPLOAD, FETCH, DELIVERY), EMPTY)


@dataclass
class FakeQueueCounts:
    """The `QueueCounts` port: a test sets what each queue has."""

    counts: dict[str, QueueCount] = field(default_factory=_empty_queues)

    @property
    def queues(self) -> tuple[str, ...]:
        return tuple(self.counts)

    def count(self, queue: str) -> QueueCount:
        return self.counts[queue]


@dataclass
class FakeRaisedAlarms:
    """The `Alarms` port: a test raises alarms."""

    raised: list[Alarm] = field(default_factory=list)

    def on(self) -> Sequence[Alarm]:
        return sorted(self.raised, key=lambda alarm: (alarm.since, alarm.name))


@dataclass
class FakeMeasurements:
    """The `Measurements` port: a test sets what was measured, now and in the `past`, what was `spent` and how often
    functions `failed`; `looks` counts the calls for the first two."""

    measured: Measured = field(default_factory=lambda: Measured(flows={}))
    past: History = field(default_factory=lambda: History(minutes=(), lanes={}))
    spent: dict[str, Budget] = field(default_factory=lambda: dict.fromkeys(LANES, Budget(ended=0, bad=0)))
    failed: dict[str, int] = field(default_factory=dict)
    looks: int = 0

    def latest(self, now: Milliseconds) -> Measured:
        self.looks += 1
        return self.measured

    def history(self, now: Milliseconds) -> History:
        self.looks += 1
        return self.past

    def budgets(self, now: Milliseconds) -> Mapping[str, Budget]:
        return dict(self.spent)

    def function_errors(self, now: Milliseconds) -> Mapping[str, int]:
        return dict(self.failed)


def count(waiting: int = 0, in_flight: int = 0, delayed: int = 0) -> QueueCount:
    """What a queue has."""
    return QueueCount(waiting=waiting, in_flight=in_flight, delayed=delayed)


def counts(**waiting: int) -> Mapping[str, QueueCount]:
    """What queues have of which only some messages wait."""
    return {name: count(number) for name, number in waiting.items()}
