"""What is played: a pile of one tenant in front, an outage of SQS, a rate of deletions, and a sweep with no work."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median
from typing import Any

from benchmarks.forms import by_form
from benchmarks.sweeper.loads import MINUTE, NOISY, TENANTS, Load
from benchmarks.sweeper.plane import MEGABYTES, SWEEP_SECONDS, Plane
from darkroom.domain.images.image import Image
from darkroom.domain.kernel.instants import Milliseconds
from darkroom_cli.capacity.prices import cost
from tests.support.virtual.latencies import Latency
from tests.support.virtual.virtual_time import START

type Day = str | Mapping[str, Latency]

SMALLER = by_form(short=100, usual=1)
"""How much less there is to do in the short form."""

MONTH_SWEEPS = 30 * 24 * 60
GRACE_MINUTES = 30
"""How long after a deletion the last look at its tombstone comes."""


@dataclass(frozen=True, kw_only=True)
class Pile:
    """What one tenant has in front of everybody: rows that came evenly in the `minutes` before the beginning."""

    deletions: int = 100_000 // SMALLER
    announcements: int = 100_000 // SMALLER
    fetches: int = 10_000 // SMALLER
    minutes: float = 160.0

    def rows(self, load: Load) -> list[Image]:
        """The rows."""
        kinds = (load.deleted, self.deletions), (load.announced, self.announcements), (load.unfetched, self.fetches)
        return [make(NOISY, at) for make, count in kinds for at in self._instants(count)]

    def _instants(self, count: int) -> list[Milliseconds]:
        return [START - round((count - number) * self.minutes * MINUTE / count) for number in range(count)]


def behind_a_pile(
    *, day: Day, seed: int, pile: Pile | None = None, victims: int = 40, minutes: float = by_form(short=6.0, usual=25.0)
) -> dict[str, Any]:
    """Messages of other tenants are lost at random minutes, while one tenant has a pile in front; the others delete
    some, too."""
    plane, load, began = Plane(day=day, seed=seed), Load(seed), time.monotonic()
    plane.images.put((pile or Pile()).rows(load))
    others = TENANTS[1:]
    lost = [
        load.lost(others[number % len(others)], at, lane="fast" if number % 2 else "slow")
        for number, at in enumerate(load.instants(victims, since_minute=1, until_minute=minutes - 4))
    ]
    plane.images.put(lost)
    _delete_all_the_while(plane, load, per_minute=max(1, 100 // SMALLER), minutes=minutes)
    plane.sweep_every_minute()
    plane.run(minutes * 60)
    sent_at = plane.lanes.sent_at
    waits = sorted(_seconds_since(lost_row, sent_at.get(lost_row.image_id, minutes * MINUTE)) for lost_row in lost)
    row = {
        "part": "pile",
        "victims": victims,
        "unrescued": sum(lost_row.image_id not in sent_at for lost_row in lost),
        "rescued_seconds_p50": round(median(waits), 1),
        "rescued_seconds_worst": round(waits[-1], 1),
    }
    return _ended(plane, row, began)


def after_an_outage(
    *, day: Day, seed: int, rows: int = 60_000 // SMALLER, outage_minutes: float = 10
) -> dict[str, Any]:
    """SQS has just answered again, after minutes in which images were accepted whose messages could not be sent."""
    plane, load, began = Plane(day=day, seed=seed), Load(seed), time.monotonic()
    unsent = [
        load.unsent(TENANTS[number % len(TENANTS)], at, lane="fast" if number % 2 else "slow")
        for number, at in enumerate(load.instants(rows, since_minute=-outage_minutes, until_minute=0))
    ]
    plane.images.put(unsent)
    plane.sweep_every_minute()
    while len(plane.lanes.sent_at) < rows and plane.time.elapsed() < 60 * MINUTE:
        plane.run(plane.time.elapsed() / 1000 + 10)
    ends = sorted(plane.lanes.sent_at.values())
    is_all = len(ends) == rows
    row = {
        "part": "outage",
        "rows": rows,
        "rescued": len(ends),
        "minutes": round((ends[-1] if is_all else plane.time.elapsed()) / MINUTE, 2),
        "sent_twice": sum(times > 1 for times in plane.lanes.sendings.values()),
    }
    return _ended(plane, row, began)


def steady_removals(
    *, day: Day, seed: int, per_minute: int = 1000 // SMALLER, minutes: float = by_form(short=4.0, usual=20.0)
) -> dict[str, Any]:
    """So many images are deleted in each minute, of all tenants, as in the half hour before: each tombstone has a look
    that removes its objects and, half an hour later, its last one."""
    plane, load, began = Plane(day=day, seed=seed), Load(seed), time.monotonic()
    removed = [
        load.removed(load.tenant(), at)
        for at in load.instants(
            round(per_minute * minutes), since_minute=-GRACE_MINUTES, until_minute=minutes - GRACE_MINUTES
        )
    ]
    plane.images.put(removed)
    deleted = _delete_all_the_while(plane, load, per_minute=per_minute, minutes=minutes)
    plane.sweep_every_minute()
    ids = [row.image_id for row in (*deleted, *removed)]
    worst, waiting = 0.0, 0
    while plane.time.elapsed() < minutes * MINUTE:
        plane.run(plane.time.elapsed() / 1000 + SWEEP_SECONDS - 1)  # just before a sweep, when most is due
        overdue = plane.overdue_seconds(ids)
        worst, waiting = max([worst, *overdue]), len(overdue)
        plane.run(plane.time.elapsed() / 1000 + 1)
    row = {
        "part": "removals",
        "per_minute": per_minute,
        "removed": plane.outcomes["removed"],
        "oldest_overdue_seconds": round(worst, 1),
        "waiting_at_the_end": waiting,
    }
    return _ended(plane, row, began)


def idle(
    *, day: Day, seed: int, megabytes: int = MEGABYTES, sweeps: int = by_form(short=2, usual=20)
) -> dict[str, Any]:
    """Sweeps with nothing to do; the dollars are those of a month of them, without logs, traces and metrics."""
    plane, began = Plane(day=day, seed=seed, megabytes=megabytes), time.monotonic()
    plane.sweep_every_minute()
    plane.run(sweeps * SWEEP_SECONDS - 1)
    row = _ended(plane, {"part": "idle"}, began)
    return row | {
        "calls_each": row["calls"] / sweeps,
        "milliseconds_each": round(sum(plane.sweeps) / sweeps),
        "dollars": {
            unit: round(cost({unit: count / sweeps * MONTH_SWEEPS}), 4) for unit, count in row["billed"].items()
        },
    }


def working(*, day: Day, seed: int, megabytes: int, minutes: float = by_form(short=2.0, usual=3.0)) -> dict[str, Any]:
    """More to do of every kind than can be done: how much is done in a minute, and what that costs."""
    plane, load, began = Plane(day=day, seed=seed, megabytes=megabytes), Load(seed), time.monotonic()
    pile = 60_000 // SMALLER
    plane.images.put(Pile(deletions=pile, announcements=pile, fetches=pile // 10, minutes=60).rows(load))
    plane.images.put(load.unsent(load.tenant(), at) for at in load.instants(pile, since_minute=-10, until_minute=0))
    plane.sweep_every_minute()
    plane.run(minutes * 60 - 1)
    done = sum(plane.outcomes[name] for name in ("removed", "expired", "rescued"))
    row = _ended(plane, {"part": "memory", "done_a_minute": round(done / minutes)}, began)
    used = {unit: row["billed"][unit] for unit in ("Lambda GB-milliseconds", "Lambda requests")}
    return row | {"lambda_dollars_a_million": round(cost(used) / max(1, done) * 1_000_000, 3)}


def _delete_all_the_while(plane: Plane, load: Load, *, per_minute: int, minutes: float) -> list[Image]:
    """Images of all tenants that are deleted one after another; they are there from the beginning."""
    instants = load.instants(round(per_minute * minutes), since_minute=0, until_minute=minutes)
    images = [load.developed(load.tenant(), at=at - 60 * MINUTE) for at in instants]
    plane.images.put(images)
    for image, at in zip(images, instants, strict=True):
        plane.time.at(
            float(at - START),
            lambda image=image: plane.inside.delete(image.image_id, image.tenant_id),  # type: ignore[misc]
        )
    return images


def _seconds_since(image: Image, sent_at: float) -> float:
    return (START + sent_at - (image.due_at or 0)) / 1000


def _ended(plane: Plane, row: dict[str, Any], began: float) -> dict[str, Any]:
    plane.close()
    return row | {"megabytes": plane.megabytes} | plane.counted() | {"real_seconds": round(time.monotonic() - began, 1)}
