"""How many messages per second are held and released on a local stack, next to how many uploads it accepts."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass

from benchmarks.stage import stack_of
from repository.report import ROOT
from tests.support.running.clock import TimeTravel, rfc3339
from tests.support.running.load import photos, upload
from tests.support.running.stack import Stack

STATE = ROOT / "build" / "bench-delay" / "stack"

_AHEAD_SECONDS = 2 * 86_400
_CLIENTS = 8
# Of a function that logs JSON, and of one that logs text.
_DURATION = re.compile(
    r'^\{.*"type":"platform\.report".*"durationMs":([0-9.]+)|^REPORT RequestId: \S+\s+Duration: ([0-9.]+) ms'
)


@dataclass(frozen=True, kw_only=True)
class Throughput:
    """Messages per second of the functions' own time, and uploads per second of all clients together."""

    images: int
    accepted_per_second: float
    held_per_second: float
    released_per_second: float
    broken: tuple[str, ...]


def measure(*, images: int) -> Throughput:
    """Schedule so many images for one instant on a separate stack, have them held, and released."""
    with stack_of(STATE) as stack:
        travel, process_at = TimeTravel(stack), int(time.time()) + _AHEAD_SECONDS
        (photo,) = photos(1)
        started = time.monotonic()
        answers = upload(
            stack.api_url,
            [photo] * images,
            clients=_CLIENTS,
            persistent=True,
            api_key=stack.record.api_key,
            parameters={"process_at": rfc3339(process_at)},
        )
        accepting_seconds = time.monotonic() - started
        travel.expect(all(answer.is_accepted for answer in answers), "not all uploads were accepted")
        travel.hold()
        held_seconds = _seconds_of(stack, "HoldImagesLogs")
        travel.let_go(process_at)
        return Throughput(
            images=images,
            accepted_per_second=images / accepting_seconds,
            held_per_second=images / held_seconds,
            released_per_second=images / _seconds_of(stack, "ReleaseImagesLogs"),
            broken=tuple(travel.broken),
        )


def _seconds_of(stack: Stack, log_group: str) -> float:
    """The total time of a function's invocations, including initialisation."""
    durations = (_DURATION.search(message) for message in stack.log_messages(log_group))
    return sum(float(match[1] or match[2]) for match in durations if match) / 1000
