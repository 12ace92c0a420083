"""What a tenant is reported its allowance: the header fields of draft-ietf-httpapi-ratelimit-headers-11."""

from __future__ import annotations

from darkroom.domain.tenants import Allowance

POLICY = "tenant"
"""What the policy is called in `RateLimit-Policy` and `RateLimit`."""


def policy_field(allowance: Allowance) -> str:
    """`RateLimit-Policy`: the burst, and the seconds in which it comes back whole
    (draft-ietf-httpapi-ratelimit-headers-11, section 3)."""
    return f'"{POLICY}";q={allowance.burst};w={-(-allowance.burst // allowance.requests_per_second)}'


def limit_field(left: int, allowance: Allowance, *, wait_seconds: int) -> str:
    """`RateLimit`: what is left, and in how many seconds to use no more than that (the same draft, section 4).

    Who spends what is left evenly over that time is never turned away by it; with nothing left it is `wait_seconds`.
    """
    seconds = -(-left // allowance.requests_per_second) if left else max(1, wait_seconds)
    return f'"{POLICY}";r={left};t={seconds}'
