"""Makes a Wait state end by the clock, however the clock gets there.

Gap: MiniStack computes the length of a wait when it begins, and sleeps for that long; the local stack's clock may be
moved ahead meanwhile (`warp.py`).
AWS: a Wait state ends at its Timestamp, or when its Seconds have passed.
https://docs.aws.amazon.com/step-functions/latest/dg/state-wait.html

What still differs from AWS: a wait ends up to half a second late. Between retries MiniStack waits a minute at most,
without jitter, and ignores MaxDelaySeconds.
"""

import time
from datetime import UTC, datetime
from typing import Any

from local_aws import clock
from local_aws.emulator import Emulator
from local_aws.ministack_internals import internals, replace

_LOOK_SECONDS = 0.5


def apply(emulator: Emulator) -> None:
    """Poll the clock instead of one long sleep."""
    service = internals("services.stepfunctions")
    replace(service, "_scaled_sleep", lambda _: _sleep)
    replace(service, "_sleep_until", lambda _: _sleep_until)


def _sleep(seconds: float) -> None:
    _wait_until(time.time() + seconds * internals("services.stepfunctions")._SFN_WAIT_SCALE)


def _sleep_until(timestamp: Any) -> None:
    try:
        seconds = (datetime.fromisoformat(timestamp) - datetime.now(UTC)).total_seconds()
    except (TypeError, ValueError):
        return  # as MiniStack does
    _sleep(seconds)


def _wait_until(moment: float) -> None:
    left = moment - time.time()
    while left > 0:
        time.sleep(min(left, _LOOK_SECONDS))
        before, left = left, moment - time.time()
        if before - left > clock.SETTLE_SECONDS:
            # The clock was moved. On AWS no two clocks are days apart: what follows begins when every process has seen
            # it, or a worker would take a message for one that comes a day early.
            time.sleep(clock.SETTLE_SECONDS)
