"""Takes from a tenant's bucket what one request costs; a busy process takes some in advance."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from darkroom.bookkeeping import bookkeeping
from darkroom.domain.kernel.instants import Milliseconds
from darkroom.domain.kernel.tenants import Allowance, Caller
from darkroom.domain.tenants.rate_limits import Policy, bucket_of
from darkroom.domain.tenants.token_bucket import Microseconds, Take, interval_of, latest_tat
from darkroom.ports.kernel import Clock
from darkroom.ports.tenants import TokenBuckets

MAX_BLOCK = 10
"""The most requests whose tokens a process takes at once: one write for ten costs next to nothing for each."""

BLOCKS_OF_A_BURST = 20
"""A process takes more than MAX_BLOCK tokens only of a bucket that holds so many times as much: all processes of one
tenant write one item, which takes 1,000 writes a second."""

HOLD_MILLISECONDS = 4000
"""How long tokens are held. A tenant may exceed its burst by what its bucket has regained since they were taken: by the
requests of four seconds."""

_HELD_BUCKETS = 1000
"""Of how many buckets a process holds tokens: those of more are dropped, as they would be soon after."""


@dataclass
class Held:
    """What a process holds from a bucket: `tokens` with the `allowance` that they were taken by, the instant of the
    bucket without them (`tat`), when they were taken, and when the latest requests came, each with its cost. `stood` is
    the bucket's own instant when it last answered: it can only be later by now."""

    allowance: Allowance | None = None
    tokens: int = 0
    tat: Microseconds = 0
    taken_at: Milliseconds = 0
    stood: Microseconds = 0
    requests: deque[tuple[Milliseconds, int]] = field(default_factory=lambda: deque(maxlen=MAX_BLOCK - 1))

    def spare(self, allowance: Allowance, now: Milliseconds) -> int:
        """How many of the tokens may still be used."""
        # If the clock was set back, they seem to have been taken in the future, and could be held for long.
        # guard: allowances-clock-set-back, allowances-held-token-expiry
        is_fresh = 0 <= now - self.taken_at < HOLD_MILLISECONDS
        return self.tokens if is_fresh and allowance == self.allowance else 0  # guard: allowances-change-immediate

    def next(self, allowance: Allowance, now: Milliseconds, cost: int) -> Take | None:
        """Takes as many of the tokens; None if there are fewer that may still be used."""
        if self.spare(allowance, now) < cost:
            return None
        self.tokens -= cost
        self.tat += cost * interval_of(allowance)
        return Take(tokens=cost, tat=self.tat)

    def refuses(self, allowance: Allowance, now: Milliseconds, cost: int) -> bool:
        """Whether the bucket is known to have too little: then it is not asked, so that refusing costs no write."""
        return self.stood > latest_tat(allowance, now * 1000, cost, cost)

    def wanted(self, allowance: Allowance, now: Milliseconds, cost: int) -> int:
        """How many tokens this process will probably use while it may hold them: as many as in the time before."""
        lately = sum(spent for at, spent in self.requests if 0 <= now - at < HOLD_MILLISECONDS)
        # guard: allowances-prefetch-by-demand, tokens-block-size-by-burst
        return max(cost, min(cost + lately, max(MAX_BLOCK, allowance.burst // BLOCKS_OF_A_BURST)))

    def keep(self, taken: Take, allowance: Allowance, now: Milliseconds, cost: int) -> Take:
        """Uses those that were held, and as many of the tokens that were taken, and holds the others."""
        self.stood = taken.tat
        if not taken.is_taken:
            return taken
        tokens = self.spare(allowance, now) + taken.tokens - cost
        self.allowance, self.taken_at, self.tokens = allowance, now, tokens
        self.tat = taken.tat - tokens * interval_of(allowance)
        return Take(tokens=cost, tat=self.tat)


@dataclass(frozen=True, kw_only=True)
class TakeTokenPorts:
    """What taking a token needs; `held` is this process's reserve, by bucket."""

    token_buckets: TokenBuckets
    clock: Clock
    held: dict[str, Held] = field(default_factory=dict)


def take_token(ports: TakeTokenPorts, caller: Caller, policy: Policy = Policy.TENANT, cost: int = 1) -> Take | None:
    """Returns the result of asking the caller's bucket of that policy for `cost` tokens, which are at most its
    burst. None if the caller has no allowance, or if its bucket cannot answer now.

    A bucket that does not answer stops nobody: it exists for fairness, and a request that cannot be served fails
    anyway.
    """
    if caller.allowance is None:
        return None
    allowance, name = caller.allowance, bucket_of(policy, caller.tenant_id)
    now = ports.clock()
    if name not in ports.held and len(ports.held) >= _HELD_BUCKETS:
        ports.held.clear()
    held = ports.held.setdefault(name, Held())
    taken = held.next(allowance, now, cost)
    # guard: allowances-held-part-payment
    missing = cost - held.spare(allowance, now)  # what is held pays a part of what costs more
    if taken is None and held.refuses(allowance, now, missing):  # guard: allowances-empty-bucket-skipped
        return Take(tokens=0, tat=held.stood)
    if taken is None:
        wanted = held.wanted(allowance, now, missing)
        with bookkeeping("tokens not taken"):  # guard: allowances-fail-open
            taken = ports.token_buckets.take(name, allowance, now * 1000, wanted, missing)
        if taken is None:
            return None
        taken = held.keep(taken, allowance, now, cost)
    held.requests.append((now, cost))
    return taken
