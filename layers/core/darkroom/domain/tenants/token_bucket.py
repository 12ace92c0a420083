"""Each tenant's allowance as a token bucket, stored as one instant.

This is the generic cell rate algorithm (ITU-T I.371): each token that is taken moves the stored instant (the
theoretical arrival time, `tat`) by `interval_of` its allowance. The bucket is full when that instant has passed, and
empty when it is a whole burst ahead.
"""

from __future__ import annotations

from dataclasses import dataclass

from darkroom.domain.kernel.tenants import Allowance

type Microseconds = int
"""An instant as microseconds since 1970: a tenant may be allowed ten requests per millisecond."""


def interval_of(allowance: Allowance) -> int:
    """How many microseconds one token takes, rounded up so that never more is allowed than was agreed."""
    return -(-1_000_000 // allowance.requests_per_second)


def latest_tat(allowance: Allowance, now: Microseconds, tokens: int = 1, needed: int = 1) -> Microseconds:
    """The furthest ahead that the stored instant may be for a request to still get so many tokens.

    The bucket gives its last tokens to a request that needs them, but more than it needs only while half of the bucket
    is left after that: what one process holds in reserve is then never what another one's request is refused for.
    """
    left = 0 if tokens <= needed else -(-allowance.burst // 2)  # guard: allowances-prefetch-fuller-half
    return now + (allowance.burst - left - tokens) * interval_of(allowance)


def grant(tat: Microseconds | None, allowance: Allowance, now: Microseconds, wanted: int, needed: int = 1) -> int:
    """How many tokens the bucket with that stored instant gives to one who wants so many, and can do with `needed`:
    all, those, or none. None as an instant is a bucket that was never used."""
    stands = max(tat or 0, now)
    # guard: allowances-all-or-none
    return next((tokens for tokens in (wanted, needed) if stands <= latest_tat(allowance, now, tokens, needed)), 0)


@dataclass(frozen=True, kw_only=True)
class Take:
    """The result of asking for tokens: how many there were, and the stored instant afterwards."""

    tokens: int
    tat: Microseconds

    @property
    def is_taken(self) -> bool:
        """Whether the request may go on."""
        return self.tokens > 0


def take(tat: Microseconds | None, allowance: Allowance, now: Microseconds, wanted: int = 1, needed: int = 1) -> Take:
    """Takes tokens from the bucket with that stored instant; None is a bucket that was never used."""
    tokens = grant(tat, allowance, now, wanted, needed)
    if tokens == 0:
        return Take(tokens=0, tat=tat or now)
    return Take(tokens=tokens, tat=max(tat or 0, now) + tokens * interval_of(allowance))


def tokens_left(tat: Microseconds, allowance: Allowance, now: Microseconds) -> int:
    """How many tokens are left."""
    interval = interval_of(allowance)
    return max(0, (allowance.burst * interval - max(0, tat - now)) // interval)


def seconds_to_next(tat: Microseconds, allowance: Allowance, now: Microseconds, needed: int = 1) -> int:
    """Whole seconds, rounded up, until so many tokens are there; 0 if they are."""
    return max(0, -(-(tat - latest_tat(allowance, now, needed, needed)) // 1_000_000))
