"""Decides which requests are turned away while a lane has more work than it can finish in time, and when to come
back."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil

from darkroom.domain.lanes import Lane
from darkroom.domain.tenants import Tier

ENOUGH_IMAGES = 20
"""The fewest images that a rate is derived from: single photos differ by a factor of twenty."""

LOOK_SECONDS = 5
"""How long a process relies on its last look at a lane's backlog."""

CALM_SECONDS = 15
"""How long a process relies on its last look at a calm lane, and on the drain that it last read."""

LOOK_SHARE = 0.02
"""A process that has accepted this share of the high-water mark since its last look looks again before those seconds
are over: otherwise many concurrent processes could accept several times the lane's capacity."""


@dataclass(frozen=True, kw_only=True)
class Work:
    """What workers did in some time: how many messages they settled, and how long they were busy, failures included."""

    settled: int
    busy_milliseconds: int

    def __add__(self, other: Work) -> Work:
        return Work(
            settled=self.settled + other.settled, busy_milliseconds=self.busy_milliseconds + other.busy_milliseconds
        )


NO_WORK = Work(settled=0, busy_milliseconds=0)


def drain_per_second(lane: Lane, minutes: Iterable[Work]) -> float:
    """The rate at which the lane works off its backlog while all of its workers are busy: their number divided by the
    time that each took per image (Little's law), in the latest minutes that together had enough images.

    If all minutes together do not have enough, the result is the rate that the lane certainly keeps.
    """
    measured = measured_drain(lane, minutes, enough=ENOUGH_IMAGES)
    return lane.drain_floor_per_second if measured is None else measured


def measured_drain(lane: Lane, minutes: Iterable[Work], *, enough: int) -> float | None:
    """The same rate, from at least `enough` images; None if the minutes have fewer.

    `minutes` come newest first, and each is only used if those before it did not suffice.
    """
    done = NO_WORK
    for minute in minutes:
        done += minute
        if done.settled >= enough and done.busy_milliseconds > 0:
            return lane.concurrency * done.settled * 1000 / done.busy_milliseconds
    return None


def high_water_mark(lane: Lane, drain: float) -> float:
    """The backlog, in images, that the lane works off within its service level."""
    return drain * lane.sla_seconds


@dataclass(frozen=True, kw_only=True)
class Accept:
    """The lane has room for it."""


@dataclass(frozen=True, kw_only=True)
class Shed:
    """The lane has no room: the present backlog will be worked off after `retry_after_seconds`."""

    retry_after_seconds: int


def is_calm(lane: Lane, *, depth: int, accepted: int) -> bool:
    """Whether a process that accepts `accepted` images between two looks need not know the lane's drain: at that depth
    nothing waits for a worker, and it looks often enough even for the costliest images."""
    certain = high_water_mark(lane, lane.drain_floor_per_second)
    return depth <= lane.concurrency and accepted <= LOOK_SHARE * certain


def decide(*, lane: Lane, tier: Tier, backlog: int, drain: float, begins_in_seconds: float = 0.0) -> Accept | Shed:
    """Decides whether a lane with that backlog and that drain rate accepts an image.

    An image that begins only when this backlog has been worked off (`begins_in_seconds`) does not count against it.
    """
    if backlog < tier.backlog_share * high_water_mark(lane, drain):
        return Accept()
    backlog_seconds = max(1, ceil(backlog / drain))
    return Accept() if begins_in_seconds >= backlog_seconds else Shed(retry_after_seconds=backlog_seconds)
