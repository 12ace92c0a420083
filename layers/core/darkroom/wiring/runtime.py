"""What every function's process has: a clock, randomness, and a limit on the time of its calls to AWS."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context

from darkroom.aws import clients
from darkroom.domain.instants import Milliseconds


def clock() -> Milliseconds:
    """The current instant by this machine's clock."""
    return time.time_ns() // 1_000_000


randomness = secrets.token_bytes

within = clients.within


def at_once[Result](works: Sequence[Callable[[], Result]]) -> Sequence[Result]:
    """Does each work in a thread of its own, and within the same limit of time."""
    with ThreadPoolExecutor(max_workers=len(works)) as threads:
        begun = [threads.submit(copy_context().run, work) for work in works]
    return [work.result() for work in begun]
