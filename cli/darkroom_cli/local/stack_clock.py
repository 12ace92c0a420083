"""Moves the clock of the local stack for other commands."""

from __future__ import annotations

from collections.abc import Callable

from darkroom_client.client import ApiError
from local_aws import clock
from local_aws.failures import ClockFixed, NotRunning
from local_aws.paths import State
from local_aws.project import given
from local_aws.warp import warp


def can_be_moved() -> bool:
    """Whether the clock of this machine's stack can be moved at all."""
    return clock.obstacle(given().emulator_python) is None


def move(seconds: int, pause: Callable[[float], None]) -> None:
    """Moves it ahead by that much, and returns once every process follows. Raises ApiError, and what `pause` raises."""
    try:
        warp(State.current(), seconds, pause=pause)
    except (ClockFixed, NotRunning) as error:
        raise ApiError(str(error)) from error
