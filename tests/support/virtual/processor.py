"""The processor of a Lambda function: its memory decides how much of one it has, and Python uses one at a time."""

from __future__ import annotations

from tests.support.virtual.virtual_time import VirtualTime

WHOLE_MEGABYTES = 1769
"""The memory with which a function has one vCPU; it has a share in proportion to its memory
(https://docs.aws.amazon.com/lambda/latest/dg/configuration-memory.html)."""


class Processor:
    """One server for all threads of a function, because Python's lock lets one work at a time: what is asked for waits
    for what was asked for before. `busy_milliseconds` is how long it has worked."""

    def __init__(self, time: VirtualTime, *, megabytes: int) -> None:
        self.busy_milliseconds = 0.0
        self._time = time
        self._share = min(1.0, megabytes / WHOLE_MEGABYTES)
        self._free_at = 0.0

    def take(self, milliseconds: float) -> float:
        """Takes so much of a whole processor's time; returns how many milliseconds from now that will be done."""
        now = self._time.elapsed()
        lasts = milliseconds / self._share
        self.busy_milliseconds += lasts
        self._free_at = max(now, self._free_at) + lasts
        return self._free_at - now
