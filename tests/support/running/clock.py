"""A local stack whose clock is moved, and waiting for what must happen meanwhile."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime

from darkroom.operations.schedules.release_images import WINDOWS_AHEAD_SECONDS
from tests.support.running.stack import Stack

PATIENCE_SECONDS = 120
_WINDOW_SECONDS = 61


def rfc3339(instant: int) -> str:
    """A number of seconds since 1970, as the API takes it."""
    return datetime.fromtimestamp(instant, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class TimeTravel:
    """How far ahead a stack's clock is; `broken` lists what was found wrong on the way."""

    def __init__(self, stack: Stack) -> None:
        self.stack = stack
        self.broken: list[str] = []
        self._ahead_seconds = 0

    def expect(self, kept: bool, breach: str) -> None:
        """Record a broken promise."""
        if not kept:
            self.broken.append(breach)

    def go_to(self, instant: int) -> None:
        """Move the stack's clock to that second, unless it is there already."""
        self._go(instant - int(time.time()) - self._ahead_seconds)

    def hold(self) -> None:
        """Let the hold queue's window pass, and wait until the queue is empty."""
        self._go(_WINDOW_SECONDS)
        self._wait(lambda: self.stack.messages("HoldQueueUrl") == 0, "the hold queue is drained")

    def let_go(self, process_at: int, *, still_waiting: int = 0) -> None:
        """Go to when images of one time get their release windows, and wait until all but so many executions ended."""
        self.go_to(process_at - WINDOWS_AHEAD_SECONDS + 5)
        self._wait(lambda: self._running() <= still_waiting, "the releases have sent their messages")

    def _go(self, seconds: int) -> None:
        if seconds > 0:
            said = self.stack.darkroom("local", "warp", f"{seconds}s")
            if "exit status 0" not in said:
                raise RuntimeError(said)
            self._ahead_seconds += seconds

    def _running(self) -> int:
        return len([execution for execution in self.stack.executions() if execution["status"] == "RUNNING"])

    def _wait(self, is_so: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not is_so():
            if time.monotonic() > deadline:
                self.broken.append(f"waited in vain until {what}")
                return
            time.sleep(0.2)
