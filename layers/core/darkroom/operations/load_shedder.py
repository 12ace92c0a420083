"""Letting work into a lane, or turning it away while the lane has more to do than it can in time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from darkroom.domain.errors import Retryable, TurnedAway
from darkroom.domain.instants import Milliseconds
from darkroom.domain.lanes import Lane
from darkroom.domain.load_shedding import (
    LOOK_SECONDS,
    LOOK_SHARE,
    NO_WORK,
    Shed,
    decide,
    drain_per_second,
    high_water_mark,
)
from darkroom.domain.tenants import Tier
from darkroom.ports import Clock, Depths, Throughput


@dataclass(kw_only=True)
class _View:
    """What a process knows of a lane: its depth and its drain when it looked, and what it has let in since.

    The depth is None where the queue did not answer, the drain where nobody waited, so that nothing was to be
    calculated.
    """

    looked_at: Milliseconds
    depth: int | None
    drain: float | None = None
    accepted: int = 0

    def is_fresh(self, lane: Lane, now: Milliseconds) -> bool:
        # A clock that was set back makes it look from the future, and is no reason never to look again.
        if not 0 <= now - self.looked_at < LOOK_SECONDS * 1000:
            return False
        known = lane.drain_floor_per_second if self.drain is None else self.drain
        return self.accepted <= LOOK_SHARE * high_water_mark(lane, known)


@dataclass(kw_only=True)
class LoadShedder:
    """The door of the lanes, one per process: it looks at a lane's queue now and then, and counts by itself in between.

    What it knows is a hint. It never fails: where a queue or the table does not answer, work is let in.
    """

    depths: Depths
    throughput: Throughput
    clock: Clock
    service: Mapping[str, Lane]
    _views: dict[str, _View] = field(default_factory=dict)

    def require_capacity(self, lane_name: str, tier: Tier, *, process_at: Milliseconds | None = None) -> None:
        """Lets an image into the lane. Raises TurnedAway (`overloaded`) where the lane has too much to do for its tier;
        not for one that is to begin (`process_at`) only when what waits now will be done with."""
        now, lane = self.clock(), self.service[lane_name]
        view = self._view(lane, now)
        if view.depth is not None:
            decision = decide(
                lane=lane,
                tier=tier,
                backlog=view.depth + view.accepted,
                drain=lane.drain_floor_per_second if view.drain is None else view.drain,
                begins_in_seconds=0.0 if process_at is None else (process_at - now) / 1000,
            )
            if isinstance(decision, Shed):
                raise TurnedAway(
                    "overloaded",
                    "There is more to do than can be done in time. Send the same request again after "
                    f"{decision.retry_after_seconds} seconds: by then what waits now will have been developed.",
                    retry_after_seconds=decision.retry_after_seconds,
                )
        if process_at is None or process_at <= now:
            view.accepted += 1

    def _view(self, lane: Lane, now: Milliseconds) -> _View:
        view = self._views.get(lane.name)
        if view is None or not view.is_fresh(lane, now):
            view = self._views[lane.name] = _View(looked_at=now, depth=self._depth(lane))
            if view.depth is not None and view.depth > lane.concurrency:
                view.drain = self._drain(lane, now)
        return view

    def _depth(self, lane: Lane) -> int | None:
        try:
            return self.depths.depth(lane.name)
        except Retryable:  # a queue is no reason to turn anything away: the row is what is promised
            return None

    def _drain(self, lane: Lane, now: Milliseconds) -> float:
        try:
            return drain_per_second(lane, self.throughput.latest(lane.name, now))
        except Retryable:
            return drain_per_second(lane, [NO_WORK])
