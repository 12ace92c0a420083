"""The service level of a lane: its objective, what counts for it, and what the last minutes say about both.

The objective is that 99.9% of accepted images end well within their lane's service level, over 28 days. An image counts
once, by the end of its first run; one that was refused for what it is, or deleted, does not count.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass

from darkroom.domain.images.image import Image, Status
from darkroom.domain.kernel.instants import Milliseconds
from darkroom.domain.kernel.lanes import Lane

OBJECTIVE = 0.999


MINUTE = 60_000
"""The counts of a lane are kept by the minute, in milliseconds."""

FAST_MINUTES, SLOW_MINUTES = (5, 60), (30, 360)
"""The two windows of each burn, in minutes: the long one says that it matters, the short one that it still goes on
(https://sre.google/workbook/alerting-on-slos/, "Multiwindow, Multi-Burn-Rate Alerts")."""

FAST_BURN, SLOW_BURN = 14.4, 6.0
"""How many times faster than allowed the budget may burn: at the first it is gone in two days, and the last hour has
used up 2% of it; that pages. The second warns (see the same chapter)."""

LEAST_BAD = 10
"""Fewer bad images than this in the long window are no burn: in a lane with ten images per hour, one would be."""

FAILING_MINUTES = 3
"""The minutes in which attempts count as recent: the current one, however young, and the two before it."""

LEAST_FAILING_IMAGES = 3
"""Fewer images than this whose attempts fail say nothing about the others."""

MARKS = 256
"""An image's mark is one of so many: three images have three different ones in 99 of 100 cases, and the marks of a
minute need less than a kilobyte."""


@dataclass(frozen=True, kw_only=True)
class Outcomes:
    """What happened in a lane: attempts that ended, those that failed and the marks of their images; images that
    counted, those that were late, and those that were given up."""

    attempts: int = 0
    failed_attempts: int = 0
    failing_marks: frozenset[int] = frozenset()
    ended: int = 0
    late: int = 0
    given_up: int = 0

    def __add__(self, other: Outcomes) -> Outcomes:
        return Outcomes(
            attempts=self.attempts + other.attempts,
            failed_attempts=self.failed_attempts + other.failed_attempts,
            failing_marks=self.failing_marks | other.failing_marks,
            ended=self.ended + other.ended,
            late=self.late + other.late,
            given_up=self.given_up + other.given_up,
        )

    @property
    def bad(self) -> int:
        """The images that missed the objective."""
        return self.late + self.given_up


NO_OUTCOMES = Outcomes()

GIVEN_UP = Outcomes(ended=1, given_up=1)
"""An image that ended because of us."""

SUCCEEDED = Outcomes(attempts=1)
"""An attempt that ended well, also if it refused the image for what it is."""


def failed_attempt(image_id: str) -> Outcomes:
    """An attempt at that image that failed, through no fault of the image's."""
    return Outcomes(attempts=1, failed_attempts=1, failing_marks=frozenset({mark_of(image_id)}))


def mark_of(image_id: str) -> int:
    """The image's mark, spread evenly by CRC-32."""
    return zlib.crc32(image_id.encode()) % MARKS


def end_of(image: Image, *, waiting_since: Milliseconds | None, lane: Lane) -> Outcomes:
    """How an image that has just ended counts; `waiting_since` is what its service level counted from."""
    if image.run > 1 or waiting_since is None or image.completed_at is None:  # guard: service-level-first-run-only
        return NO_OUTCOMES
    is_late = image.completed_at - waiting_since > lane.sla_seconds * 1000
    if image.status is Status.FAILED and image.dead_letter is not None:  # guard: service-level-refused-image
        return GIVEN_UP
    # An image that its client let expire counts only if there had been time to develop it.
    # guard: service-level-wished-expiry
    if image.status is Status.DONE or (image.status is Status.EXPIRED and is_late):
        return Outcomes(ended=1, late=int(is_late))
    return NO_OUTCOMES


def needed_since(now: Milliseconds) -> Milliseconds:
    """The first of the minutes that are needed to say all of what follows: the longest window's."""
    return _first_of(SLOW_MINUTES[1], now)


def failing_percent(minutes: Mapping[Milliseconds, Outcomes], now: Milliseconds) -> float:
    """The share of the recent attempts that failed, in percent; 0 if too few images are concerned."""
    recent = _last(minutes, FAILING_MINUTES, now)
    if len(recent.failing_marks) < LEAST_FAILING_IMAGES:  # guard: failing-attempts-image-minimum
        return 0.0
    return 100 * recent.failed_attempts / recent.attempts


def burn(minutes: Mapping[Milliseconds, Outcomes], windows: tuple[int, int], now: Milliseconds) -> float:
    """How fast the error budget burns in both windows, in minutes: 1 uses it up in exactly 28 days. The smaller of two
    rates is above a limit only if both are, which one plain alarm can watch."""
    short, long = (_last(minutes, window, now) for window in windows)
    if long.bad < LEAST_BAD:  # guard: burn-few-bad-images
        return 0.0
    return min(_rate(short), _rate(long))  # guard: burn-both-windows


def _rate(outcomes: Outcomes) -> float:
    return 0.0 if outcomes.ended == 0 else outcomes.bad / outcomes.ended / (1 - OBJECTIVE)


def _last(minutes: Mapping[Milliseconds, Outcomes], count: int, now: Milliseconds) -> Outcomes:
    """What happened in the current minute and those before it, `count` minutes in all."""
    first = _first_of(count, now)
    return sum((outcomes for minute, outcomes in minutes.items() if minute >= first), NO_OUTCOMES)


def _first_of(count: int, now: Milliseconds) -> Milliseconds:
    """When the first of the last `count` minutes began, of which the current one is the last."""
    return (now // MINUTE - count + 1) * MINUTE
