"""Which tenants are suspended, asked of the Tenants table and remembered for a minute."""

from __future__ import annotations

from darkroom.domain.kernel.instants import Milliseconds
from darkroom.domain.kernel.tenants import AUTHORIZER_CACHE_SECONDS, TenantState
from darkroom.ports.kernel import Clock
from darkroom.ports.tenants import Tenants

_MOST = 10_000
"""How many tenants are remembered."""


class Suspensions:
    """Implements the `IsSuspended` port. A tenant without a row, as with other credentials than API keys, is not
    suspended. It remembers as long as the gateway does."""

    def __init__(self, tenants: Tenants, clock: Clock) -> None:
        self._tenants = tenants
        self._clock = clock
        self._known: dict[str, tuple[Milliseconds, bool]] = {}

    def __call__(self, tenant_id: str) -> bool:
        now = self._clock()
        known = self._known.get(tenant_id)
        if known is not None and 0 <= now - known[0] < AUTHORIZER_CACHE_SECONDS * 1000:
            return known[1]
        tenant = self._tenants.tenant(tenant_id)
        is_suspended = tenant is not None and tenant.state is TenantState.SUSPENDED
        if len(self._known) >= _MOST:
            self._known.clear()
        self._known[tenant_id] = (now, is_suspended)
        return is_suspended
