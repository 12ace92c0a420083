"""How the API reports a tenant's allowance: the header fields of draft-ietf-httpapi-ratelimit-headers-11."""

from __future__ import annotations

from darkroom.domain.kernel.tenants import Allowance
from darkroom.domain.tenants.rate_limits import Policy


def policy_field(policy: Policy, allowance: Allowance, *, cost: int) -> str:
    """`RateLimit-Policy`: the burst, and the seconds in which it fully refills
    (draft-ietf-httpapi-ratelimit-headers-11, section 3); and, as a parameter of our own, how much of it this request
    costs, if that is not 1."""
    refills_in = -(-allowance.burst // allowance.requests_per_second)
    return f'"{policy}";q={allowance.burst};w={refills_in}' + (f";cost={cost}" if cost != 1 else "")


def limit_field(policy: Policy, left: int, allowance: Allowance, *, wait_seconds: int) -> str:
    """`RateLimit`: what is left, and over how many seconds to spread it (the same draft, section 4).

    A client that spreads what is left evenly over that time is never turned away for it; with nothing left the time is
    `wait_seconds`.
    """
    seconds = -(-left // allowance.requests_per_second) if left else max(1, wait_seconds)
    return f'"{policy}";r={left};t={seconds}'
