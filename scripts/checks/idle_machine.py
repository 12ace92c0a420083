"""Says whether this machine is idle: only then does the time that something takes say anything about it.

    python3 scripts/checks/idle_machine.py

Prints why the machine is not idle, and exits with 1 if it is not. Any Python 3 runs it, before anything is installed.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

BUSY_SHARE = 0.1
"""What other programs may use of all processors together."""

_SECONDS, _LOOKS = 0.5, 4


def why_not_idle(read: Callable[[], str] = Path("/proc/stat").read_text, *, pause: float = _SECONDS) -> str:
    """Looks how much of the processors others use while this process sleeps; returns why that is too much, or "".

    It looks again for a while, as what has just ended may still be stopping.
    """
    for _ in range(_LOOKS):
        try:
            before = _times(read())
            time.sleep(pause)
            after = _times(read())
        except (OSError, ValueError):
            return "this machine does not say how busy it is"
        passed = sum(after) - sum(before)
        idle = after[3] + after[4] - before[3] - before[4]  # idle, and waiting for a disk
        share = 1 - idle / passed if passed else 0.0
        if share <= BUSY_SHARE:
            return ""
    return f"the machine was busy: other programs used {share:.0%} of its processors"


def _times(stat: str) -> list[int]:
    """The ticks since the start of the machine: user, nice, system, idle, iowait, irq, softirq, steal."""
    return [int(number) for number in stat.split("\n", 1)[0].split()[1:9]]


if __name__ == "__main__":
    reason = why_not_idle()
    print(reason or "the machine is idle")
    sys.exit(1 if reason else 0)
