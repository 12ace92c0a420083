"""The lanes that work travels in: each has a queue of its own and a service level."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Lane:
    """One queue's service level. `sla_seconds` is the p99 from acceptance to a terminal state."""

    name: str
    sla_seconds: int


FAST = Lane(name="fast", sla_seconds=30)
SLOW = Lane(name="slow", sla_seconds=600)

LANES = {lane.name: lane for lane in (FAST, SLOW)}
