"""Takes a token from a tenant's bucket for one request."""

from __future__ import annotations

from dataclasses import dataclass

from darkroom.domain.errors import Retryable
from darkroom.domain.tenants import Caller
from darkroom.domain.token_bucket import Take
from darkroom.ports import Clock, TokenBuckets


@dataclass(frozen=True, kw_only=True)
class Ports:
    """What taking a token needs."""

    token_buckets: TokenBuckets
    clock: Clock


def take_token(ports: Ports, caller: Caller) -> Take | None:
    """Returns the result; None if the caller has no allowance, or if its bucket cannot answer now.

    A bucket that does not answer stops nobody: it exists for fairness, and a request that cannot be served fails
    anyway.
    """
    if caller.allowance is None:
        return None
    try:
        return ports.token_buckets.take(caller.tenant_id, caller.allowance, ports.clock() * 1000)
    except Retryable:
        return None
