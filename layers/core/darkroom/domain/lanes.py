"""The lanes that work travels in: each has a queue of its own and a service level."""

from __future__ import annotations

from dataclasses import dataclass

from darkroom.domain.recipes import Effort


@dataclass(frozen=True, kw_only=True)
class Lane:
    """One queue's service level. `sla_seconds` is the p99 from acceptance to a terminal state; `effort` is how long its
    encoders may look for smaller files where a recipe does not say."""

    name: str
    sla_seconds: int
    effort: Effort


FAST = Lane(name="fast", sla_seconds=30, effort="fast")
SLOW = Lane(name="slow", sla_seconds=600, effort="balanced")

LANES = {lane.name: lane for lane in (FAST, SLOW)}
