"""Changing a tenant: an operator's verb. Keys that are out act by it within the authorizer's cache time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from darkroom.domain.tenants import Tenant
from darkroom.ports import Tenants


class UnknownTenant(LookupError):
    """There is no tenant of that id."""


@dataclass(frozen=True, kw_only=True)
class Ports:
    """What changing a tenant needs from outside."""

    tenants: Tenants


def change_tenant(ports: Ports, tenant_id: str, change: Callable[[Tenant], Tenant]) -> Tenant:
    """The tenant after `change`, of which only what differs is written: what another operator changes meanwhile stays.

    Raises UnknownTenant, and Retryable where the table cannot answer.
    """
    before = ports.tenants.tenant(tenant_id)
    after = None if before is None else ports.tenants.change_tenant(before, change(before))
    if after is None:
        raise UnknownTenant(tenant_id)
    return after
