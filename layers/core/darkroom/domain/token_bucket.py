"""Each tenant's allowance as a token bucket, stored as one instant.

This is the generic cell rate algorithm (ITU-T I.371): each request moves the stored instant (the theoretical arrival
time, `tat`) by `interval_of` its allowance. The bucket is full when that instant has passed, and empty when it is a
whole burst ahead.
"""

from __future__ import annotations

from dataclasses import dataclass

from darkroom.domain.tenants import Allowance

type Microseconds = int
"""An instant as microseconds since 1970: a tenant may be allowed ten requests per millisecond."""


def interval_of(allowance: Allowance) -> int:
    """How many microseconds one request takes, rounded up so that never more is allowed than was agreed."""
    return -(-1_000_000 // allowance.requests_per_second)


def latest_tat(allowance: Allowance, now: Microseconds) -> Microseconds:
    """The furthest ahead that the stored instant may be for a request to still get a token."""
    return now + (allowance.burst - 1) * interval_of(allowance)


@dataclass(frozen=True, kw_only=True)
class Take:
    """The result of asking for a token: whether there was one, and the stored instant afterwards."""

    is_taken: bool
    tat: Microseconds


def take(tat: Microseconds | None, allowance: Allowance, now: Microseconds) -> Take:
    """Takes a token from the bucket with that stored instant; None is a bucket that was never used."""
    if tat is not None and tat > latest_tat(allowance, now):
        return Take(is_taken=False, tat=tat)
    return Take(is_taken=True, tat=max(tat or 0, now) + interval_of(allowance))


def tokens_left(tat: Microseconds, allowance: Allowance, now: Microseconds) -> int:
    """How many requests may follow at once."""
    interval = interval_of(allowance)
    return max(0, (allowance.burst * interval - max(0, tat - now)) // interval)


def seconds_to_next(tat: Microseconds, allowance: Allowance, now: Microseconds) -> int:
    """Whole seconds, rounded up, until there is a token again; 0 if there is one."""
    return max(0, -(-(tat - latest_tat(allowance, now)) // 1_000_000))
