"""Changing a tenant: an operator's verb. Keys that are out act by it within the authorizer's cache time."""

from __future__ import annotations

from collections.abc import Callable

from darkroom.domain.tenants import Tenant
from darkroom.ports import Tenants


class UnknownTenant(LookupError):
    """There is no tenant of that id."""


def change_tenant(tenant_id: str, change: Callable[[Tenant], Tenant], *, tenants: Tenants) -> Tenant:
    """The tenant after `change`, of which only what differs is written: what another operator changes meanwhile stays.

    Raises UnknownTenant, and Retryable where the table cannot answer.
    """
    before = tenants.tenant(tenant_id)
    after = None if before is None else tenants.change_tenant(before, change(before))
    if after is None:
        raise UnknownTenant(tenant_id)
    return after
