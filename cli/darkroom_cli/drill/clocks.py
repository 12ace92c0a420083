"""How a drill lets minutes pass: by moving the local stack's clock, or by waiting."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Protocol

from darkroom.domain.kernel.instants import Milliseconds
from darkroom_cli.places import HAS_LOCAL_STACK
from darkroom_cli.stack.operators import Stack

MINUTE_SECONDS = 60

LONGEST_STEP_SECONDS = 240
"""With longer steps the sweeper's alarm would take the minutes in between for silence: it looks at the last five."""

_SWEEP_SECONDS = 15.0
"""How long the sweep that follows a step may take, on a machine with much else to do."""

_LOOK_SECONDS = 0.2
_ALARMS_SECONDS = 1.2
"""The local stack evaluates alarms each second."""


class DrillClock(Protocol):
    """Lets time pass on a stack; `pause` waits for so many seconds of this machine's time, or raises to end the
    drill."""

    is_moved: bool
    is_swept: bool

    def pass_seconds(self, seconds: int, *, is_last: bool = True) -> None:
        """Returns when the stack's clock is so much further; unless another step follows anyway, alarms show what has
        come of it."""
        ...


class MovedClock:
    """The clock of the local stack, which is moved in steps. After each the sweeper's schedule gets its turn, unless it
    `is_swept` no longer, and alarms theirs."""

    is_moved = True

    def __init__(self, stack: Stack, pause: Callable[[float], None]) -> None:
        self._stack, self._pause = stack, pause
        self.is_swept = True

    def pass_seconds(self, seconds: int, *, is_last: bool = True) -> None:
        """Moves it at once: the caller chooses the steps."""
        since = self._stack.clock() + 1000 * seconds  # the sweep may be over before every process follows
        from darkroom_cli.local import stack_clock  # noqa: PLC0415 - it is there only with the local stack

        stack_clock.move(seconds, self._pause)
        deadline = time.monotonic() + (_SWEEP_SECONDS if self.is_swept and seconds >= MINUTE_SECONDS else 0)
        while time.monotonic() < deadline and not self._has_swept(since):
            self._pause(_LOOK_SECONDS)
        if is_last:
            self._pause(_ALARMS_SECONDS)

    def _has_swept(self, since: Milliseconds) -> bool:
        moment = datetime.fromtimestamp(since / 1000, UTC)
        answer = self._stack.client("cloudwatch").get_metric_statistics(
            Namespace="AWS/Lambda",
            MetricName="Errors",
            Dimensions=[{"Name": "FunctionName", "Value": self._stack.physical_id("SweepDueImagesFunction")}],
            StartTime=moment,
            EndTime=moment + timedelta(hours=1),
            Period=60,
            Statistics=["SampleCount"],
        )
        return bool(answer["Datapoints"])


class RealClock:
    """Everybody's clock."""

    is_moved = False

    def __init__(self, pause: Callable[[float], None]) -> None:
        self._pause = pause
        self.is_swept = True

    def pass_seconds(self, seconds: int, *, is_last: bool = True) -> None:
        """Waits."""
        self._pause(seconds)


def clock_of(stack: Stack, pause: Callable[[float], None]) -> DrillClock:
    """The stack's."""
    if stack.is_local and HAS_LOCAL_STACK:
        from darkroom_cli.local import stack_clock  # noqa: PLC0415

        if stack_clock.can_be_moved():
            return MovedClock(stack, pause)
    return RealClock(pause)
