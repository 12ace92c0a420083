"""Decides which requests are turned away while a lane has more work than it can finish in time, and when to come
back."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil, sqrt

from darkroom.domain.kernel.lanes import Lane
from darkroom.domain.kernel.tenants import Tier

ENOUGH_IMAGES = 20
"""The fewest images that a rate is derived from: single photos differ by a factor of twenty."""

LOOK_SECONDS = 5
"""How long a process relies on its last look at a lane's backlog, at most."""

CALM_SECONDS = 15
"""How long a process relies on its last look at a calm lane, and on the drain that it last read."""

LOOK_SHARE = 0.02
"""A process that has accepted this share of the high-water mark since its last look looks again before those seconds
are over: otherwise many concurrent processes could accept several times the lane's capacity."""


FIRST_BATCHES, MORE_BATCHES_PER_SECOND = 5, 5.0
"""Lambda begins with so many batches of a queue at a time, and while messages wait it takes up to 300 more per minute
(https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-scaling.html)."""


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


@dataclass(frozen=True, kw_only=True)
class Ramp:
    """How many workers a lane has: `now`, and while messages wait a few more each second, up to `most`."""

    now: float
    most: float

    def worked_within(self, seconds: float) -> float:
        """The seconds of work that they do together."""
        grows = min(seconds, (self.most - self.now) / MORE_BATCHES_PER_SECOND)
        return self.most * seconds - (self.most - self.now) * grows + MORE_BATCHES_PER_SECOND * grows**2 / 2

    def seconds_for(self, work: float) -> float:
        """How long so many seconds of work take them."""
        grows = (self.most - self.now) / MORE_BATCHES_PER_SECOND
        rest = work - self.worked_within(grows)
        if rest >= 0:
            return grows + rest / self.most
        return (sqrt(self.now**2 + 2 * MORE_BATCHES_PER_SECOND * work) - self.now) / MORE_BATCHES_PER_SECOND


def ramp_of(lane: Lane, taken: int) -> Ramp:
    """The ramp of a lane whose workers have taken so many images."""
    begun = max(FIRST_BATCHES, taken / lane.batch_size)
    return Ramp(now=min(begun, lane.concurrency), most=lane.concurrency)  # guard: load-shedding-begun-workers


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


def room(lane: Lane, taken: int, drain: float) -> float:
    """The backlog, in images, that the lane works off within its service level, with the workers that it has so soon:
    at most the high-water mark."""
    return ramp_of(lane, taken).worked_within(lane.sla_seconds) * drain / lane.concurrency


def look_seconds(lane: Lane) -> float:
    """How long a process relies on its last look at a lane's backlog: the others' uploads of a thirtieth of the service
    level may come unseen."""
    return min(LOOK_SECONDS, lane.sla_seconds / 30)  # guard: load-shedding-look-interval


def is_calm(lane: Lane, *, waiting: int, taken: int, accepted: int) -> bool:
    """Whether a process that accepts `accepted` images between two looks need not know the lane's drain: at that depth
    nothing waits for a worker, and it looks often enough even for the costliest images."""
    # guard: load-shedding-waiting-not-calm
    has_room = waiting + taken <= lane.concurrency and waiting <= ramp_of(lane, taken).now
    # guard: load-shedding-busy-asks-drain, load-shedding-calm-work-limit
    return has_room and accepted <= LOOK_SHARE * room(lane, taken, lane.drain_floor_per_second)


def decide(
    *, lane: Lane, tier: Tier, backlog: int, taken: int, drain: float, begins_in_seconds: float = 0.0
) -> Accept | Shed:
    """Decides whether a lane with that backlog, of which workers have taken some, accepts an image; `drain` is its rate
    with all of its workers.

    An image that begins only when this backlog has been worked off (`begins_in_seconds`) does not count against it.
    """
    if backlog < tier.backlog_share * room(lane, taken, drain):
        return Accept()
    work_seconds = backlog * lane.concurrency / drain
    backlog_seconds = max(1, ceil(round(ramp_of(lane, taken).seconds_for(work_seconds), 6)))
    # guard: load-shedding-start-in-backlog
    return Accept() if begins_in_seconds >= backlog_seconds else Shed(retry_after_seconds=backlog_seconds)
