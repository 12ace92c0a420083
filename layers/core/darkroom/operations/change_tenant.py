"""Changes a tenant: an operator command. It takes effect for existing keys within the authorizer's cache time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from darkroom.domain.tenants import Tenant
from darkroom.ports import Tenants


class UnknownTenant(LookupError):
    """There is no tenant with that id."""


@dataclass(frozen=True, kw_only=True)
class Ports:
    """What changing a tenant needs."""

    tenants: Tenants


def change_tenant(ports: Ports, tenant_id: str, change: Callable[[Tenant], Tenant]) -> Tenant:
    """Returns the tenant after `change`. Only the difference is written: another operator's concurrent changes stay.

    Raises UnknownTenant, and Retryable if the table cannot answer.
    """
    before = ports.tenants.tenant(tenant_id)
    after = None if before is None else ports.tenants.change_tenant(before, change(before))
    if after is None:
        raise UnknownTenant(tenant_id)
    return after
