"""How long an image that waits still takes: the backlog of its lane, worked off at the rate of the last minutes."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import Literal

from darkroom.domain.images.image import Image, Status
from darkroom.domain.images.load_shedding import Ramp
from darkroom.domain.kernel.instants import Milliseconds

ENOUGH_IMAGES = 3
"""The fewest images that an estimate's rate is derived from: a rough estimate is better than none."""

type Outlook = int | Literal["paused"] | None
"""In about how many seconds an image that waits for a worker will be done; None if it does not wait, or nothing is
known; `paused` if nothing of its lane or tenant is begun."""


@dataclass(frozen=True, kw_only=True)
class Backlog:
    """A lane now: `depth` images wait or are in work, `drain` are finished per second while all of its workers are
    busy; `ramp` says how soon they are."""

    depth: int
    drain: float
    ramp: Ramp


def waits_for_a_worker(image: Image) -> bool:
    """Whether there is anything to estimate: a scheduled image states its time, one in work is done in seconds,
    and one that awaits its turn waits for others of its batch."""
    # guard: estimate-waiting-images-only
    return image.outcome is Status.PENDING and not image.is_deleted and not image.awaits_turn


def estimated_seconds(image: Image, backlog: Backlog, now: Milliseconds) -> int:
    """In about how many seconds an image that waits will be done, if nothing fails: at least 1.

    As if it were the last in its lane: the backlog beyond what the workers hold at present, after that its own work,
    which takes as long as the others' (Little's law). An image that is tried again waits at least for its backoff.
    """
    each_seconds = backlog.ramp.most / backlog.drain
    waits = backlog.ramp.seconds_for(max(0, backlog.depth - backlog.ramp.most) * each_seconds)
    backoff = 0.0 if image.not_before is None else (image.not_before - now) / 1000
    return max(1, ceil(max(waits, backoff) + each_seconds))
