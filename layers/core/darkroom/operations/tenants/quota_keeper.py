"""Keeps tenants to what they may store, by a sum that is counted from events."""

from __future__ import annotations

from dataclasses import dataclass, field

from darkroom.bookkeeping import bookkeeping
from darkroom.domain.kernel.instants import Milliseconds
from darkroom.domain.kernel.stored import NOTHING, QuotaExceeded, Stored, has_room, is_near
from darkroom.domain.kernel.tenants import NO_QUOTA, Quota
from darkroom.ports.kernel import Clock
from darkroom.ports.tenants import StoredSums

KNOWN_MILLISECONDS = 10_000
"""How long a process relies on a tenant's sum that is far from its quota: a busy tenant costs one read in this time."""

_KNOWN_TENANTS = 1000


@dataclass(kw_only=True)
class QuotaKeeper:
    """Decides whether a tenant may store more, one per process.

    The sum is some seconds behind: what is accepted and not counted yet, is announced or fetched, or is yet to be
    developed goes beyond the quota. A sum that cannot be read stops nobody, nor does a stack that counts none.
    """

    sums: StoredSums | None
    clock: Clock
    _known: dict[str, tuple[Milliseconds, Stored]] = field(default_factory=dict)

    def require_room(self, tenant_id: str, quota: Quota, *, size_bytes: int, images: int = 1) -> Stored:
        """Lets one more image in whose original has so many bytes, or none but more of its variants. Returns what the
        tenant has stored, NOTHING if that is not known or nothing bounds it. Raises QuotaExceeded."""
        if quota == NO_QUOTA:  # guard: unfinished-unlimited-unread
            return NOTHING
        used = None if self.sums is None else self._used(self.sums, tenant_id, quota)
        if used is None:
            return NOTHING
        if not has_room(quota, used, size_bytes, images):
            raise QuotaExceeded(used, quota)
        return used

    def _used(self, sums: StoredSums, tenant_id: str, quota: Quota) -> Stored | None:
        now = self.clock()
        read_at, known = self._known.get(tenant_id, (0, NOTHING))
        # If the clock was set back, the sum seems to have been read in the future.
        # guard: quotas-fresh-read-near-limit, quotas-known-sum-expiry
        if tenant_id in self._known and 0 <= now - read_at < KNOWN_MILLISECONDS and not is_near(quota, known):
            return known
        with bookkeeping("what a tenant stores not read", tenant_id=tenant_id):  # guard: quotas-unreadable-sum-admits
            used = sums.stored(tenant_id).shown  # guard: quotas-negative-sum-no-credit
            if len(self._known) >= _KNOWN_TENANTS:
                self._known.clear()
            self._known[tenant_id] = now, used
            return used
        return None
