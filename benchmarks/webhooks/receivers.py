"""How receivers answer: each behaviour says after how many milliseconds, and what."""

from __future__ import annotations

import random
from collections.abc import Callable

from darkroom.domain.webhooks.delivery import Answer
from tests.support.virtual.latencies import Drawn

type Behaviour = Callable[[random.Random], tuple[float, Answer]]
"""What a receiver does with a delivery. The same one gets equal chances in each run."""

TIMEOUT_MILLISECONDS = 15_000.0
"""When the function gives up: the `Receiver` port's limit."""

SLOW_MILLISECONDS = 10_000.0


def ordinary(chance: random.Random) -> tuple[float, Answer]:
    """Within 60 ms, the median; 200 ms or more for one in a hundred."""
    milliseconds = min(chance.lognormvariate(4.1, 0.5), TIMEOUT_MILLISECONDS)
    return milliseconds, Answer(milliseconds=round(milliseconds), status=200, body="ok")


def healthy(chance: random.Random) -> tuple[float, Answer]:
    """Within 60 ms, the median; 300 ms or more for one in a hundred."""
    milliseconds = min(Drawn(median=60, p99=300).draw(chance), TIMEOUT_MILLISECONDS)
    return milliseconds, Answer(milliseconds=round(milliseconds), status=200, body="ok")


def five_seconds(chance: random.Random) -> tuple[float, Answer]:
    """Well, after five seconds."""
    return 5000.0, Answer(milliseconds=5000, status=200, body="ok")


def black_hole(chance: random.Random) -> tuple[float, Answer]:
    """Never."""
    milliseconds = TIMEOUT_MILLISECONDS
    return milliseconds, Answer(milliseconds=round(milliseconds), error="timeout", was_too_slow=True)


def slow(chance: random.Random) -> tuple[float, Answer]:
    """Well, after ten seconds."""
    return SLOW_MILLISECONDS, Answer(milliseconds=round(SLOW_MILLISECONDS), status=200, body="ok")
