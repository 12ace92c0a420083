"""The AWS requests of each way to wait, by the names in the price list."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

AWS_CALL_MILLISECONDS = 10.0
"""How long one call to SQS, S3, DynamoDB or Step Functions takes within a region: the time that a function waits."""

LANE_DELAY_SECONDS = 900
BATCH = 10
MONTH_SECONDS = 30 * 24 * 3600


@dataclass(frozen=True, kw_only=True)
class Way:
    """Another way to wait: what a message costs for a delay, and why it may be impossible."""

    name: str
    requests: Callable[[float], Counter[str]]
    limit: Callable[[int, float], str | None] = lambda count, seconds: None


def _hops(seconds: float) -> Counter[str]:
    """A message that a function sends again every 15 minutes: received, deleted and sent in batches of ten."""
    hops = max(1, -(-seconds // LANE_DELAY_SECONDS))
    return Counter(
        {
            "SQS requests": 1 + 3 * (hops - 1) / BATCH,
            "Lambda requests": (hops - 1) / BATCH,
            "Lambda GB-milliseconds": 0.5 * AWS_CALL_MILLISECONDS * (hops - 1) / BATCH,
        }
    )


def _leases(seconds: float) -> Counter[str]:
    """A message that a function hides for twelve hours at a time: received and hidden in batches of ten."""
    leases = max(1, -(-seconds // (12 * 3600)))
    return Counter(
        {
            "SQS requests": 1 + 2 * leases / BATCH,
            "Lambda requests": leases / BATCH,
            "Lambda GB-milliseconds": 0.5 * AWS_CALL_MILLISECONDS * leases / BATCH,
        }
    )


def _scheduler(_: float) -> Counter[str]:
    """One schedule per message, which sends it to its lane."""
    return Counter({"Scheduler invocations": 1, "SQS requests": 1})


def _table(_: float) -> Counter[str]:
    """An item with a due time, found by an index per minute: written and removed in table and index, then sent."""
    return Counter(
        {
            "DynamoDB write units": 4,
            "DynamoDB read units": 0.1,
            "SQS requests": 1 / BATCH,
            "Lambda GB-milliseconds": 0.5 * AWS_CALL_MILLISECONDS * 2 / BATCH,
        }
    )


WAYS = (
    Way(
        name="SQS hops of 15 minutes",
        requests=_hops,
        limit=lambda count, seconds: "recursion stop at 16 hops" if seconds > 16 * LANE_DELAY_SECONDS else None,
    ),
    Way(
        name="visibility leases",
        requests=_leases,
        limit=lambda count, seconds: (
            "14 days at most"
            if seconds > 14 * 24 * 3600
            else "120,000 hidden messages at most"
            if count > 120_000
            else None
        ),
    ),
    Way(
        name="EventBridge Scheduler",
        requests=_scheduler,
        limit=lambda count, seconds: "10 million schedules at most" if count > 10_000_000 else None,
    ),
    Way(name="DynamoDB due times", requests=_table),
)
