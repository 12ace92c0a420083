"""How the API reports a tenant's allowance: the header fields of draft-ietf-httpapi-ratelimit-headers-11."""

from __future__ import annotations

from darkroom.domain.tenants import Allowance

POLICY = "tenant"
"""The policy's name in `RateLimit-Policy` and `RateLimit`."""


def policy_field(allowance: Allowance) -> str:
    """`RateLimit-Policy`: the burst, and the seconds in which it fully refills
    (draft-ietf-httpapi-ratelimit-headers-11, section 3)."""
    return f'"{POLICY}";q={allowance.burst};w={-(-allowance.burst // allowance.requests_per_second)}'


def limit_field(left: int, allowance: Allowance, *, wait_seconds: int) -> str:
    """`RateLimit`: what is left, and over how many seconds to spread it (the same draft, section 4).

    A client that spreads what is left evenly over that time is never turned away for it; with nothing left the time is
    `wait_seconds`.
    """
    seconds = -(-left // allowance.requests_per_second) if left else max(1, wait_seconds)
    return f'"{POLICY}";r={left};t={seconds}'
