"""Limits the rate of an operator's work on many images."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from darkroom.domain.kernel.instants import Milliseconds
from darkroom.ports.kernel import Clock


@dataclass(kw_only=True)
class RateLimiter:
    """Lets things happen at most `per_second` times per second."""

    per_second: float
    clock: Clock
    pause: Callable[[float], None]
    next_at: Milliseconds = 0

    def wait(self) -> None:
        """Waits until the next one may happen."""
        left_milliseconds = self.next_at - self.clock()
        if left_milliseconds > 0:
            self.pause(left_milliseconds / 1000)

    def spend(self) -> None:
        """Counts one that happens."""
        self.next_at = max(self.clock(), self.next_at) + round(1000 / self.per_second)
