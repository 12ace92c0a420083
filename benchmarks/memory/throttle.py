"""Gives a process a share of processor time, as Lambda gives it to a function in proportion to its memory.

Lambda's share is enforced by the kernel (CFS bandwidth control): in each period the function's threads may together use
so much processor time, and stand still for the rest of the period. Here a thread does the same with signals, which
needs no privilege: it reads the process's clock, stops the process when the period's time is used up, and continues it
in the next one. What a period used in excess is taken off the next, so the share is exact over several periods.
"""

from __future__ import annotations

import ctypes
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

VCPU_MEGABYTES = 1769
""""At 1,769 MB, a function has the equivalent of one vCPU", and processor time is "in proportion to the amount of
memory configured" (https://docs.aws.amazon.com/lambda/latest/dg/configuration-memory.html)."""

PERIOD_SECONDS = 0.02
"""AWS does not say how long its period is."""

_LEAST_SLEEP_SECONDS = 0.0002


def share_of(megabytes: int) -> float:
    """How many vCPUs a function with that memory has."""
    return megabytes / VCPU_MEGABYTES


@contextmanager
def limited(process: int, share: float) -> Iterator[None]:
    """Within this block, the process and its threads use at most `share` of a processor; above 1, of several."""
    ended = threading.Event()
    clock = _clock_of(process)
    controller = threading.Thread(target=_control, args=(process, clock, share * PERIOD_SECONDS, ended))
    controller.start()
    try:
        yield
    finally:
        ended.set()
        controller.join()


def _control(process: int, clock: int, quota: float, ended: threading.Event) -> None:
    processors = os.process_cpu_count() or 1
    is_stopped = False
    left, period_ends, before = quota, time.monotonic() + PERIOD_SECONDS, time.clock_gettime(clock)
    with suppress(OSError):  # it has died: the caller, which waits for its answer, says so
        while not ended.is_set():
            used, now = time.clock_gettime(clock), time.monotonic()
            left, before = left - (used - before), used
            if now >= period_ends:
                # Time that was not used is lost, as in the kernel; a debt is not.
                periods = 1 + int((now - period_ends) / PERIOD_SECONDS)
                left, period_ends = min(quota, left + periods * quota), period_ends + periods * PERIOD_SECONDS
            if is_stopped != (left <= 0):
                is_stopped = not is_stopped
                os.kill(process, signal.SIGSTOP if is_stopped else signal.SIGCONT)
            soonest = period_ends if is_stopped else min(period_ends, now + left / processors)
            ended.wait(max(_LEAST_SLEEP_SECONDS, soonest - now))
        os.kill(process, signal.SIGCONT)


def _clock_of(process: int) -> int:
    """The clock of the processor time of all threads of a process (clock_getcpuclockid(3))."""
    clock = ctypes.c_int()
    error = ctypes.CDLL(None).clock_getcpuclockid(process, ctypes.byref(clock))
    if error:
        raise OSError(error, os.strerror(error))
    return clock.value
