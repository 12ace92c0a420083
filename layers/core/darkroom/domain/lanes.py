"""The lanes that work travels in: each has a queue of its own and a service level."""

from __future__ import annotations

from dataclasses import dataclass

from darkroom.domain.recipes import Effort
from darkroom.domain.tenants import Tier


@dataclass(frozen=True, kw_only=True)
class Lane:
    """One queue's service level. `sla_seconds` is the p99 from acceptance to a terminal state; `effort` is how long its
    encoders may look for smaller files where a recipe does not say; `drain_floor_per_second` is the rate of images that
    its workers keep even where every one takes the five seconds of the costliest recipe for a photo;
    `release_per_second` is how many scheduled images of the same time may come to it, so that live ones have room."""

    name: str
    sla_seconds: int
    effort: Effort
    drain_floor_per_second: float
    release_per_second: float


# The floors are MaximumConcurrency of the lane's event source, in template.yaml, over those five seconds; releases may
# take half of what as many workers do with photos that take a quarter of a second.
FAST = Lane(name="fast", sla_seconds=30, effort="fast", drain_floor_per_second=4.0, release_per_second=40.0)
SLOW = Lane(name="slow", sla_seconds=600, effort="balanced", drain_floor_per_second=2.0, release_per_second=20.0)

LANES = {lane.name: lane for lane in (FAST, SLOW)}


_LANE_OF_TIER = {Tier.FREE: SLOW, Tier.PAID: FAST}


def lane_for(tier: Tier) -> Lane:
    """The lane of an upload by a tenant of that tier. It is chosen once, when the image is accepted."""
    return _LANE_OF_TIER[tier]
