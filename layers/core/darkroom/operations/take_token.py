"""Takes a token from a tenant's bucket for one request; a busy process takes some in advance."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from darkroom.domain.errors import Retryable
from darkroom.domain.instants import Milliseconds
from darkroom.domain.tenants import Allowance, Caller
from darkroom.domain.token_bucket import Microseconds, Take, interval_of
from darkroom.ports import Clock, TokenBuckets

MAX_BLOCK = 10
"""The most tokens that a process takes at once: one write for ten requests costs next to nothing for each."""

HOLD_MILLISECONDS = 4000
"""How long tokens are held. A tenant may exceed its burst by what its bucket has regained since they were taken: by the
requests of four seconds."""

_HELD_TENANTS = 1000
"""Of how many tenants a process holds tokens: those of more are dropped, as they would be soon after."""


@dataclass
class Held:
    """What a process holds for a tenant: `tokens` with the `allowance` that they were taken by, the instant of the
    bucket without them (`tat`), when they were taken, and when the latest requests came."""

    allowance: Allowance | None = None
    tokens: int = 0
    tat: Microseconds = 0
    taken_at: Milliseconds = 0
    requests: deque[Milliseconds] = field(default_factory=lambda: deque(maxlen=MAX_BLOCK - 1))

    def next(self, allowance: Allowance, now: Milliseconds) -> Take | None:
        """Takes one of the tokens; None if there is none that may still be used."""
        # If the clock was set back, they seem to have been taken in the future, and could be held for long.
        is_fresh = 0 <= now - self.taken_at < HOLD_MILLISECONDS
        if not self.tokens or not is_fresh or allowance != self.allowance:
            return None
        self.tokens -= 1
        self.tat += interval_of(allowance)
        return Take(tokens=1, tat=self.tat)

    def wanted(self, now: Milliseconds) -> int:
        """How many tokens this process will probably use while it may hold them: as many as in the time before."""
        return 1 + sum(0 <= now - request < HOLD_MILLISECONDS for request in self.requests)

    def keep(self, taken: Take, allowance: Allowance, now: Milliseconds) -> Take:
        """Uses one of the tokens that were taken and holds the others."""
        self.allowance, self.taken_at, self.tokens = allowance, now, max(0, taken.tokens - 1)
        self.tat = taken.tat - self.tokens * interval_of(allowance)
        return Take(tokens=min(1, taken.tokens), tat=self.tat)


@dataclass(frozen=True, kw_only=True)
class Ports:
    """What taking a token needs; `held` is this process's reserve, by tenant."""

    token_buckets: TokenBuckets
    clock: Clock
    held: dict[str, Held] = field(default_factory=dict)


def take_token(ports: Ports, caller: Caller) -> Take | None:
    """Returns the result; None if the caller has no allowance, or if its bucket cannot answer now.

    A bucket that does not answer stops nobody: it exists for fairness, and a request that cannot be served fails
    anyway.
    """
    if caller.allowance is None:
        return None
    now = ports.clock()
    if caller.tenant_id not in ports.held and len(ports.held) >= _HELD_TENANTS:
        ports.held.clear()
    held = ports.held.setdefault(caller.tenant_id, Held())
    taken = held.next(caller.allowance, now)
    if taken is None:
        wanted = held.wanted(now)
        try:
            taken = ports.token_buckets.take(caller.tenant_id, caller.allowance, now * 1000, wanted)
        except Retryable:
            return None
        taken = held.keep(taken, caller.allowance, now)
    held.requests.append(now)
    return taken
