"""Accepts work into a lane, or turns it away while the lane has more than it can finish in time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import ceil

from darkroom.bookkeeping import bookkeeping
from darkroom.domain.images.load_shedding import (
    CALM_SECONDS,
    LOOK_SHARE,
    Shed,
    decide,
    drain_per_second,
    is_calm,
    look_seconds,
    room,
)
from darkroom.domain.kernel.errors import TurnedAway
from darkroom.domain.kernel.instants import Milliseconds
from darkroom.domain.kernel.lanes import Lane
from darkroom.domain.kernel.tenants import Tier
from darkroom.ports.images import Depths, QueueDepth, Throughput
from darkroom.ports.kernel import Clock
from darkroom.ports.pauses import KnownPauses, nothing_paused


@dataclass(kw_only=True)
class _View:
    """What a process knows about a lane: its depth at the last look (None if the queue did not answer), the `drain` to
    calculate with, how many seconds this may be relied on, and what the process has accepted since."""

    looked_at: Milliseconds
    depth: QueueDepth | None
    drain: float
    seconds: float
    accepted: int = 0

    def is_fresh(self, lane: Lane, now: Milliseconds) -> bool:
        # If the clock was set back, the last look seems to be in the future: that must not prevent the next one.
        if not 0 <= now - self.looked_at < self.seconds * 1000:
            return False
        taken = lane.concurrency * lane.batch_size if self.depth is None else self.depth.taken
        return self.accepted <= LOOK_SHARE * room(lane, taken, self.drain)


@dataclass(kw_only=True)
class LoadShedder:
    """Guards the lanes, one per process: it looks at a lane's queue now and then, and counts by itself in between.

    What it knows is a hint. It never fails: if a queue or the table does not answer, work is accepted.
    """

    depths: Depths
    throughput: Throughput
    clock: Clock
    service: Mapping[str, Lane]
    pauses: KnownPauses = nothing_paused
    _views: dict[str, _View] = field(default_factory=dict)
    _drains: dict[str, tuple[Milliseconds, float]] = field(default_factory=dict)

    def require_capacity(self, lane_name: str, tier: Tier, *, process_at: Milliseconds | None = None) -> None:
        """Accepts an image into the lane. Raises TurnedAway (`overloaded`) if the lane has too much work for the
        image's tier; not for one that begins (`process_at`) only after the present backlog is finished, and not while
        the lane is paused: who is accepted then knows that nothing is begun."""
        now, lane = self.clock(), self.service[lane_name]
        view = self._view(lane, now)
        if view.depth is not None:
            decision = decide(
                lane=lane,
                tier=tier,
                backlog=view.depth.waiting + view.depth.taken + view.accepted,  # guard: load-shedding-own-accepted
                taken=view.depth.taken,
                drain=view.drain,
                begins_in_seconds=0.0 if process_at is None else (process_at - now) / 1000,
            )
            # guard: pause-backlog-turns-nobody-away
            if isinstance(decision, Shed) and self.pauses().of(lane_name) is None:
                raise TurnedAway(
                    "overloaded",
                    "There is more work than can be finished in time. Send the same request again after "
                    f"{decision.retry_after_seconds} seconds: the present backlog will be finished by then.",
                    retry_after_seconds=decision.retry_after_seconds,
                )
        if process_at is None or process_at <= now:
            view.accepted += 1

    def require_turn(self, lane_name: str, *, unfinished: int, most: int) -> None:
        """Accepts an image of a tenant that has so many unfinished ones. Raises TurnedAway (`too_many_unfinished`) from
        `most` on, unless the lane's queue has fewer: some of those are scheduled, or have ended and are not counted
        yet, however late the counting is."""
        if unfinished < most:
            return
        view = self._view(self.service[lane_name], self.clock())
        # guard: unfinished-scheduled-or-uncounted
        if view.depth is None or view.depth.waiting + view.depth.taken + view.accepted < most:
            return
        seconds = max(1, ceil((unfinished - most + 1) / view.drain))
        raise TurnedAway(
            "too_many_unfinished",
            f"This tenant may have {most:,} unfinished images, and has them. Send the same request again after "
            f"{seconds} seconds: some will have ended by then.",
            retry_after_seconds=seconds,
        )

    def _view(self, lane: Lane, now: Milliseconds) -> _View:
        last = self._views.get(lane.name)
        if last is not None and last.is_fresh(lane, now):
            return last
        depth = self._depth(lane)
        seen = depth or QueueDepth(waiting=0, taken=0)
        calm = is_calm(lane, waiting=seen.waiting, taken=seen.taken, accepted=0 if last is None else last.accepted)
        view = self._views[lane.name] = _View(
            looked_at=now,
            depth=depth,
            drain=self._drain(lane, now, is_needed=not calm),
            # guard: load-shedding-unseen-not-calm
            seconds=CALM_SECONDS if calm and depth is not None else look_seconds(lane),
        )
        return view

    def _depth(self, lane: Lane) -> QueueDepth | None:
        # A queue is no reason to turn anything away: the row is what is promised.
        with bookkeeping("lane's depth not read"):  # guard: load-shedding-queue-outage
            return self.depths.depth(lane.name)
        return None

    def _drain(self, lane: Lane, now: Milliseconds, *, is_needed: bool) -> float:
        read_at, drain = self._drains.get(lane.name, (0, 0.0))
        if 0 <= now - read_at < CALM_SECONDS * 1000:  # guard: load-shedding-future-drain
            return drain
        if not is_needed:
            return lane.drain_floor_per_second
        with bookkeeping("lane's throughput not read"):
            drain = drain_per_second(lane, self.throughput.latest(lane.name, now))
            self._drains[lane.name] = now, drain
            return drain
        return lane.drain_floor_per_second
