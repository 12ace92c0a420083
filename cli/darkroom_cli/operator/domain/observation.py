"""What an operator sees of a stack at one moment, calculated from bounded reads of it."""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from typing import TYPE_CHECKING

from darkroom.domain.images.image import Image, Status, lease_lapsed
from darkroom.domain.images.transitions import SWEEP_INTERVAL_SECONDS
from darkroom.domain.kernel.instants import Milliseconds
from darkroom.domain.kernel.lanes import Lane

if TYPE_CHECKING:
    from darkroom.domain.webhooks.endpoint import Endpoint

type Entry = tuple[Milliseconds, str]
"""An entry of the waiting index: since when, or from when on, an image waits, and its id."""

HOUR, DAY = 3_600_000, 24 * 3_600_000

ERROR_MINUTES = 15
"""How far back errors of functions are shown: as long as their alarm stays on after the last one, and some more."""


@dataclass(frozen=True, kw_only=True)
class Counted:
    """A number of things; there may be more of them than were read unless it `is_all`."""

    number: int
    is_all: bool


# ── Queues and what CloudWatch counts ────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, kw_only=True)
class QueueCount:
    """About how many messages a queue has: `waiting` for a worker, `in_flight` with one (or hidden after a failed
    attempt), and `delayed` until their time."""

    waiting: int
    in_flight: int
    delayed: int

    @property
    def backlog(self) -> int:
        """What counts against the lane's high-water mark."""
        return self.waiting + self.in_flight

    @property
    def total(self) -> int:
        """All of them."""
        return self.backlog + self.delayed


@dataclass(frozen=True, kw_only=True)
class Flow:
    """What came into a lane's queue, and went out of it, in the whole minute that began at `minute_at`."""

    minute_at: Milliseconds
    incoming: int
    outgoing: int


@dataclass(frozen=True, kw_only=True)
class Measured:
    """The latest of what CloudWatch has: each lane's flow; how late scheduled images reached their lane, at most, in
    the last hour; and, of its worst five minutes, in which time the function that accepts images answered 99% of the
    requests, without cold starts and the gateway, how often 99% of the lanes' messages had been received at most, and
    in which time after their events half and 99% of the first attempts at webhooks that count were answered. None:
    there were none."""

    flows: Mapping[str, Flow]
    release_lateness_seconds: float | None = None
    accept_p99_milliseconds: float | None = None
    receives_p99: float | None = None
    first_attempt_p50_seconds: float | None = None
    first_attempt_p99_seconds: float | None = None


@dataclass(frozen=True, kw_only=True)
class LaneHistory:
    """A lane over the minutes of a history, None where nothing was measured: how many messages its queue had (waiting
    and in flight), the age of the oldest in seconds, and how many came in and went out."""

    depth: Sequence[int | None]
    oldest_seconds: Sequence[int | None]
    incoming: Sequence[int | None]
    outgoing: Sequence[int | None]


@dataclass(frozen=True, kw_only=True)
class History:
    """The lanes over the last hours: when each minute began, and what was measured in it."""

    minutes: Sequence[Milliseconds]
    lanes: Mapping[str, LaneHistory]


HISTORY_MINUTES = 180
"""How far back a history goes."""


@dataclass(frozen=True, kw_only=True)
class Recent:
    """What the last minutes of a lane say: how many times faster than allowed its error budget burns, in the short
    windows and in the long ones, and the share of its attempts that fail, in percent."""

    fast_burn: float
    slow_burn: float
    failing_percent: float


# ── Alarms ───────────────────────────────────────────────────────────────────────────────────────────────────────────

_DESCRIPTION = re.compile(r"(.+) First: (\./darkroom .+?)(?: --stack \S+)?\. See (docs/\S+#\S+)\.")
"""How the template describes an alarm."""


@dataclass(frozen=True, kw_only=True)
class Alarm:
    """An alarm that is on since `since`: its name in the template, what it says, why CloudWatch has raised it, and the
    names of those that it is made of, if it is made of others: then it is an incident."""

    name: str
    description: str
    reason: str
    since: Milliseconds
    is_critical: bool
    children: frozenset[str] = frozenset()

    @property
    def effect(self) -> str:
        """What it means, for users and their images."""
        match = _DESCRIPTION.fullmatch(self.description)
        return self.description if match is None else match[1]

    @property
    def command(self) -> str | None:
        """The command to begin with, without the options that reach the stack; None if the description has none."""
        match = _DESCRIPTION.fullmatch(self.description)
        return None if match is None else match[2]

    @property
    def section(self) -> str | None:
        """The section of the runbook, if the description names one."""
        match = _DESCRIPTION.fullmatch(self.description)
        return None if match is None else match[3]


def causes_of(incident: Alarm, on: Iterable[Alarm]) -> tuple[Alarm, ...]:
    """Those of these alarms that the incident is made of; none for an alarm that is made of no others."""
    return tuple(alarm for alarm in on if alarm.name in incident.children)


def incident_first(on: Sequence[Alarm]) -> tuple[Alarm, ...]:
    """The incident and the alarms that cause it, then other critical ones, then warnings; otherwise in this order."""
    causes = {cause.name for incident in on for cause in causes_of(incident, on)}

    def place(alarm: Alarm) -> int:
        # guard: top-incident-before-causes
        return 0 if alarm.children else 1 if alarm.name in causes else 2 if alarm.is_critical else 3

    return tuple(sorted(on, key=place))


# ── Unfinished images ────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, kw_only=True)
class LaneWaits:
    """The unfinished images of a lane whose time has come: how many, how many of them for longer than the lane's
    service level, and since when the oldest (None: there is none)."""

    images: Counted
    late: Counted
    oldest_since: Milliseconds | None


@dataclass(frozen=True, kw_only=True)
class Working:
    """An image that a worker has: who, in which attempt, since when and until when it may be relied on. If the worker
    `is_lost`, the sweeper takes care of the image by `returns_by` at the latest, if sweeps are on time: it sends a
    message for the next attempt, or gives it up after the last."""

    image_id: str
    tenant_id: str
    lane: str
    attempt: int
    request_id: str | None
    since: Milliseconds | None
    lease_until: Milliseconds | None
    is_lost: bool
    returns_by: Milliseconds | None = None


def longest_waiting(shards: Iterable[Sequence[Entry]], limit: int) -> list[Entry]:
    """The first `limit` entries of all shards, each of which is in order."""
    return list(islice(heapq.merge(*shards), limit))


def lane_waits(
    lane: Lane, shards: Sequence[Sequence[Entry]], rows: Sequence[Image], *, shard_limit: int, now: Milliseconds
) -> LaneWaits:
    """How a lane's images wait, by up to `shard_limit` entries of each of its shards, oldest first, and the rows of
    those that have waited longest: the index is seconds behind, and still lists what has ended."""
    late_until = now - lane.sla_seconds * 1000
    entries = [since for shard in shards for since, _ in shard]
    full = [shard for shard in shards if len(shard) >= shard_limit]
    # guard: top-oldest-excludes-ended
    actual = [row.waiting_since for row in rows if row.waiting_since is not None and not row.status.is_terminal]
    return LaneWaits(
        images=Counted(number=len(entries), is_all=not full),
        late=Counted(
            number=sum(since < late_until for since in entries),
            is_all=all(shard[-1][0] >= late_until for shard in full),
        ),
        oldest_since=min(actual, default=None),
    )


def working(rows: Iterable[Image], *, now: Milliseconds) -> tuple[Working, ...]:
    """The images in work among these rows, the longest first."""
    working_images = []
    for row in rows:
        if row.status is not Status.PROCESSING:
            continue
        latest = next(
            (attempt for attempt in reversed(row.attempts) if (attempt.run, attempt.number) == (row.run, row.attempt)),
            None,
        )
        is_lost = lease_lapsed(row, now)
        # guard: top-sweep-return-lost-only
        looks = [instant for instant in (row.due_at, row.not_before) if instant is not None] if is_lost else []
        working_images.append(
            Working(
                image_id=row.image_id,
                tenant_id=row.tenant_id,
                lane=row.lane,
                attempt=row.attempt,
                request_id=None if latest is None else latest.request_id,
                since=None if latest is None else latest.started_at,
                lease_until=row.lease_until,
                is_lost=is_lost,
                returns_by=max(looks) + SWEEP_INTERVAL_SECONDS * 1000 if looks else None,
            )
        )
    return tuple(sorted(working_images, key=lambda image: (image.since or 0, image.image_id)))


# ── Scheduled images ─────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, kw_only=True)
class Upcoming:
    """Images that wait for their time: all of them, those of the next hour and of the next day, and the next one's time
    (None: none waits)."""

    images: Counted
    within_hour: Counted
    within_day: Counted
    next_at: Milliseconds | None


def upcoming(shards: Sequence[Sequence[Entry]], *, shard_limit: int, now: Milliseconds) -> Upcoming:
    """What waits, by up to `shard_limit` entries of each shard, those of the future, in order."""
    times = [at for shard in shards for at, _ in shard]
    read_until = min((shard[-1][0] for shard in shards if len(shard) >= shard_limit), default=None)

    def before(end: Milliseconds) -> Counted:
        return Counted(number=sum(at < end for at in times), is_all=read_until is None or read_until >= end)

    return Upcoming(
        images=Counted(number=len(times), is_all=read_until is None),
        within_hour=before(now + HOUR),
        within_day=before(now + DAY),
        next_at=min(times, default=None),
    )


@dataclass(frozen=True, kw_only=True)
class Overdue:
    """Scheduled images whose time has come and that no worker has begun, and how late the latest of them is."""

    images: int
    latest_seconds: float


def overdue(rows: Iterable[Image], *, now: Milliseconds) -> Overdue:
    """Those among these rows."""
    late = [
        (now - row.process_at) / 1000
        for row in rows
        if row.status is Status.SCHEDULED and row.process_at is not None and row.process_at <= now
    ]
    return Overdue(images=len(late), latest_seconds=max(late, default=0.0))


# ── Webhooks ─────────────────────────────────────────────────────────────────────────────────────────────────────────


class Condition(StrEnum):
    """How an endpoint fares, the worst last."""

    HEALTHY = "healthy"
    PAUSED = "paused"
    FAILING = "failing"
    RESTING = "resting"
    DISABLED = "disabled"


def condition_of(endpoint: Endpoint) -> Condition:
    """How it fares."""
    if not endpoint.is_enabled:
        return Condition.DISABLED
    if endpoint.paused_at is not None:
        return Condition.PAUSED
    if endpoint.rests_until is not None:
        return Condition.RESTING
    return Condition.HEALTHY if endpoint.failing_since is None else Condition.FAILING


def condition_since(endpoint: Endpoint) -> Milliseconds | None:
    """Since when it is disabled or paused, or since when everything has failed."""
    if endpoint.is_enabled:
        return endpoint.failing_since if endpoint.paused_at is None else endpoint.paused_at
    return endpoint.disabled_at
