"""When a failed attempt is retried, and how often: backoff with jitter over a floor, as a value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

MAX_RECEIVES = 5
"""The receives of one message, the `maxReceiveCount` of every lane; not every receive becomes an attempt."""

LONGEST_HIDING_SECONDS = 12 * 3600 - 900
"""SQS hides a message for twelve hours after its receive at most, and a function may have had it for a quarter of one
(https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_ChangeMessageVisibility.html)."""

type RetryName = Literal["fast", "standard", "patient", "sidekiq"]


@dataclass(frozen=True, kw_only=True)
class RetryPolicy:
    """Backoff that doubles from `floor_seconds` to `highest_floor_seconds`, plus up to `jitter` times as much again,
    between the `attempts` of one run of an image.

    The floors 20, 40, 80 and 160 seconds add up to five minutes, so that the five receives of a message outlast a short
    outage. Jitter keeps a burst that failed together from coming back together
    (https://aws.amazon.com/builders-library/timeouts-retries-and-backoff-with-jitter/).
    """

    floor_seconds: float = 20.0
    factor: float = 2.0
    jitter: float = 0.5
    highest_floor_seconds: float = 600.0
    attempts: int = 5

    def delay_seconds(self, attempt: int, unit_random: float) -> int:
        """Whole seconds to wait after the failed `attempt` (1 is the first); `unit_random` is in [0, 1).

        Raises ValueError if either is out of range.
        """
        if attempt < 1:
            raise ValueError(f"attempts are counted from 1, not {attempt}")
        if not 0 <= unit_random < 1:
            raise ValueError(f"unit_random is in [0, 1), not {unit_random}")
        return int(self._pause(attempt, unit_random))

    def _pause(self, attempt: int, unit_random: float) -> float:
        floor = min(self.floor_seconds * self.factor ** (attempt - 1), self.highest_floor_seconds)
        return floor * (1 + self.jitter * unit_random)  # guard: retry-backoff-floor

    @property
    def least_seconds(self) -> int:
        """How long all pauses of a run take together without jitter."""
        return sum(self.delay_seconds(attempt, 0) for attempt in range(1, self.attempts))


class SidekiqRetryPolicy(RetryPolicy):
    """Backoff by Sidekiq's formula, whose first retry has count 0: `count**4 + 15 + rand(10) * (count + 1)` seconds
    (https://github.com/sidekiq/sidekiq/wiki/Error-Handling#automatic-job-retry)."""

    def _pause(self, attempt: int, unit_random: float) -> float:
        count = attempt - 1
        return count**4 + 15 + int(10 * unit_random) * (count + 1)


RETRIES: dict[RetryName, RetryPolicy] = {
    "fast": RetryPolicy(floor_seconds=5.0, attempts=4),
    "standard": RetryPolicy(),
    "patient": RetryPolicy(floor_seconds=60.0, factor=3.0, highest_floor_seconds=21_600.0, attempts=10),
    "sidekiq": SidekiqRetryPolicy(attempts=26),
}
"""The policies that a lane may have for its images: docs/retries.md has their pauses."""


FETCHES = RetryPolicy(floor_seconds=30.0, factor=3.0, jitter=0.25, highest_floor_seconds=810.0)
"""For sources of images that do not answer, or not well: about 30 seconds, 90 seconds, five minutes, and a
quarter of an hour."""

OUTAGE = RetryPolicy(floor_seconds=120.0)
"""For deliveries that fail because a service does not answer, by their receive count: 2, 4, 8, 10 minutes, up to 15
with jitter, so that the five receives of a message span more than twenty."""


def returns_in(delay_seconds: int, *, receive_count: int) -> int | None:
    """After how many seconds a received message with unfinished work must come back; None if it may go.

    After its last receive it would become a dead letter, although its work is not given up; and SQS does not hide it
    for days. Such a message may go: its row is due for a look until the work is done, and the sweeper sends another.
    """
    if delay_seconds > LONGEST_HIDING_SECONDS:  # guard: retry-longer-than-sqs-hides
        return None
    return delay_seconds if receive_count < MAX_RECEIVES else None  # guard: retry-last-receive
