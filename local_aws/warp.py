"""Moves the clock of the running stack, and makes sure that it has moved."""

import email.utils
import urllib.error
import urllib.request
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from local_aws import clock, stack
from local_aws.failures import ClockFixed
from local_aws.paths import State
from local_aws.project import given

_ATTEMPTS = 20
_PAUSE_SECONDS = 0.5
_TIMEOUT_SECONDS = 10
# The clock's answer is cut to whole seconds.
_TOLERANCE = timedelta(seconds=2)


def warp(state: State, seconds: int, *, pause: Callable[[float], None]) -> datetime:
    """Move the clock ahead by that much, and return its time once every process follows it.

    Nothing is deployed meanwhile. Raises NotRunning, ClockFixed, and what `pause` raises to end the wait.
    """
    with stack.deploying(state, pause):
        serving = stack.running(state)
        obstacle = clock.obstacle(given().emulator_python)
        if obstacle is not None:
            raise ClockFixed(obstacle)
        ahead = clock.seconds_ahead(state.clock) + seconds
        clock.set_ahead(state.clock, ahead)
        pause(clock.SETTLE_SECONDS)
        for _ in range(_ATTEMPTS):
            moment = _told_by(serving.aws_endpoint_url)
            if moment >= datetime.now(UTC) + timedelta(seconds=ahead) - _TOLERANCE:
                return moment
            pause(_PAUSE_SECONDS)
    raise ClockFixed(
        f"The emulator's clock has not followed: it says {moment:%Y-%m-%d %H:%M:%S} UTC. "
        f"Start the stack anew: {given().start}"
    )


def now(state: State) -> datetime:
    """The running stack's clock, to the second. Raises NotRunning and ClockFixed."""
    return _told_by(stack.running(state).aws_endpoint_url)


def _told_by(gateway_url: str) -> datetime:
    # Directly to the loopback address, ignoring any proxy of the machine.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        opener.open(gateway_url, timeout=_TIMEOUT_SECONDS).close()
    except urllib.error.HTTPError as refused:  # it is not signed, and the refusal has the emulator's time
        return email.utils.parsedate_to_datetime(refused.headers["Date"])
    except OSError as error:
        raise ClockFixed(f"The emulator does not say what time it is: {error}") from error
    raise ClockFixed(f"What answers at {gateway_url} is not this stack's emulator.")
