"""Estimates how long waiting images still take, for those who watch them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from darkroom.bookkeeping import bookkeeping
from darkroom.domain.images.estimates import ENOUGH_IMAGES, Backlog, Outlook, estimated_seconds, waits_for_a_worker
from darkroom.domain.images.image import Image
from darkroom.domain.images.load_shedding import LOOK_SECONDS, measured_drain, ramp_of
from darkroom.domain.kernel.instants import Milliseconds
from darkroom.domain.kernel.lanes import Lane
from darkroom.ports.images import Depths, Throughput
from darkroom.ports.kernel import Clock
from darkroom.ports.pauses import KnownPauses, nothing_paused


@dataclass(kw_only=True)
class Estimator:
    """Looks at a lane when somebody asks for an image that waits there, and relies on that for some seconds; one per
    process. It never fails: what it cannot find out it does not tell, and asks no sooner for it again."""

    depths: Depths
    throughput: Throughput
    clock: Clock
    service: Mapping[str, Lane]
    pauses: KnownPauses = nothing_paused
    _looks: dict[str, tuple[Milliseconds, Backlog | None]] = field(default_factory=dict)

    def outlook(self, image: Image) -> Outlook:
        """In about how many seconds the image will be done, or that it is paused; None if it waits for no worker, or
        nothing is known."""
        if not image.status.is_terminal and self.pauses().of(image.lane, image.tenant_id) is not None:
            return "paused"
        if not waits_for_a_worker(image) or image.lane not in self.service:  # guard: estimate-unknown-lane
            return None
        now = self.clock()
        backlog = self._backlog(self.service[image.lane], now)
        return None if backlog is None else estimated_seconds(image, backlog, now)

    def _backlog(self, lane: Lane, now: Milliseconds) -> Backlog | None:
        looked_at, backlog = self._looks.get(lane.name, (None, None))
        # If the clock was set back, the last look seems to be in the future: that must not prevent the next one.
        # guard: estimate-clock-set-back, estimate-look-reuse
        if looked_at is None or not 0 <= now - looked_at < LOOK_SECONDS * 1000:
            backlog = self._look(lane, now)
            self._looks[lane.name] = now, backlog
        return backlog

    def _look(self, lane: Lane, now: Milliseconds) -> Backlog | None:
        with bookkeeping("lane's backlog not read"):  # guard: estimate-store-outage-tolerated
            drain = measured_drain(lane, self.throughput.latest(lane.name, now), enough=ENOUGH_IMAGES)
            if drain is None:
                return None
            depth = self.depths.depth(lane.name)
            return Backlog(depth=depth.waiting + depth.taken, drain=drain, ramp=ramp_of(lane, depth.taken))
        return None
