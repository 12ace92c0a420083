"""What every function's process has: a clock, randomness, and a limit on the time of its calls to AWS."""

from __future__ import annotations

import secrets
import time

from darkroom.aws import clients
from darkroom.domain.instants import Milliseconds


def clock() -> Milliseconds:
    """The current instant by this machine's clock."""
    return time.time_ns() // 1_000_000


randomness = secrets.token_bytes

within = clients.within
