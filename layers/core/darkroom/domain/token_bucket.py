"""Each tenant's allowance as a token bucket, kept as the one instant by which its requests would have been in order.

This is the generic cell rate algorithm (ITU-T I.371): a request is worth `interval_of` its allowance. The bucket is
full when the stored instant (the theoretical arrival time, `tat`) has passed, and empty when it is a whole burst ahead.
"""

from __future__ import annotations

from dataclasses import dataclass

from darkroom.domain.tenants import Allowance

type Microseconds = int
"""An instant as microseconds since 1970: a tenant may be allowed ten requests a millisecond."""


def interval_of(allowance: Allowance) -> int:
    """How many microseconds one request stands for, rounded up so that never more is let through than was allowed."""
    return -(-1_000_000 // allowance.requests_per_second)


def latest_tat(allowance: Allowance, now: Microseconds) -> Microseconds:
    """The furthest that the stored instant may lie ahead of a request that there still is a token for."""
    return now + (allowance.burst - 1) * interval_of(allowance)


@dataclass(frozen=True, kw_only=True)
class Take:
    """What came of asking for a token: whether there was one, and the stored instant after that."""

    is_taken: bool
    tat: Microseconds


def take(tat: Microseconds | None, allowance: Allowance, now: Microseconds) -> Take:
    """Takes a token out of the bucket with that stored instant; None is a bucket that nobody has used."""
    if tat is not None and tat > latest_tat(allowance, now):
        return Take(is_taken=False, tat=tat)
    return Take(is_taken=True, tat=max(tat or 0, now) + interval_of(allowance))


def tokens_left(tat: Microseconds, allowance: Allowance, now: Microseconds) -> int:
    """How many requests may follow at once."""
    interval = interval_of(allowance)
    return max(0, (allowance.burst * interval - max(0, tat - now)) // interval)


def seconds_to_next(tat: Microseconds, allowance: Allowance, now: Microseconds) -> int:
    """How many whole seconds it takes, rounded up, until there is a token again; 0 where there is one."""
    return max(0, -(-(tat - latest_tat(allowance, now)) // 1_000_000))
