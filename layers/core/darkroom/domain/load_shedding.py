"""Who is turned away while a lane has more to do than it can in time, and when it makes sense to come back."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil

from darkroom.domain.lanes import Lane
from darkroom.domain.tenants import Tier

ENOUGH_IMAGES = 20
"""The least that a rate is taken from: single photos differ by a factor of twenty."""

LOOK_SECONDS = 5
"""How long a process takes a lane's backlog for what it was when it looked."""

LOOK_SHARE = 0.02
"""A process that has let in that much of the high-water mark since looks again before those seconds are over: then many
processes at once cannot let in several times what the lane can do."""


@dataclass(frozen=True, kw_only=True)
class Work:
    """What workers did in a while: how many messages they were done with, and how long they were busy, those that
    failed included."""

    settled: int
    busy_milliseconds: int

    def __add__(self, other: Work) -> Work:
        return Work(
            settled=self.settled + other.settled, busy_milliseconds=self.busy_milliseconds + other.busy_milliseconds
        )


NO_WORK = Work(settled=0, busy_milliseconds=0)


def drain_per_second(lane: Lane, minutes: Iterable[Work]) -> float:
    """The rate at which the lane works off what waits in it while all of its workers are busy: their number by the time
    that each took for an image (Little's law), in the latest minutes that together had enough of them.

    `minutes` come newest first, and each is only looked at where those before it did not suffice. Where all of them do
    not, it is the rate that the lane surely keeps.
    """
    done = NO_WORK
    for minute in minutes:
        done += minute
        if done.settled >= ENOUGH_IMAGES and done.busy_milliseconds > 0:
            return lane.concurrency * done.settled * 1000 / done.busy_milliseconds
    return lane.drain_floor_per_second


def high_water_mark(lane: Lane, drain: float) -> float:
    """The backlog, in images, that the lane works off within its service level."""
    return drain * lane.sla_seconds


@dataclass(frozen=True, kw_only=True)
class Accept:
    """There is room for it."""


@dataclass(frozen=True, kw_only=True)
class Shed:
    """There is none: what waits now will have been worked off after `retry_after_seconds`."""

    retry_after_seconds: int


def decide(*, lane: Lane, tier: Tier, backlog: int, drain: float, begins_in_seconds: float = 0.0) -> Accept | Shed:
    """Whether an image may come to a lane with that backlog, which drains at that rate.

    What is to begin only when this backlog has been worked off (`begins_in_seconds`) takes no part in it.
    """
    if backlog < tier.backlog_share * high_water_mark(lane, drain):
        return Accept()
    backlog_seconds = max(1, ceil(backlog / drain))
    return Accept() if begins_in_seconds >= backlog_seconds else Shed(retry_after_seconds=backlog_seconds)
