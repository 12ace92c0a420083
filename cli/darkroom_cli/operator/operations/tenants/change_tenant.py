"""Changes a tenant: an operator command. It takes effect for existing keys within the authorizer's cache time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from darkroom.domain.kernel.tenants import Tenant
from darkroom_cli.operator.operations.kernel.audit_trail import Trail
from darkroom_cli.operator.ports import TenantRegistry


class UnknownTenant(LookupError):
    """There is no tenant with that id."""


@dataclass(frozen=True, kw_only=True)
class ChangeTenantPorts:
    """What changing a tenant needs."""

    tenants: TenantRegistry
    audit: Trail


def change_tenant(ports: ChangeTenantPorts, tenant_id: str, change: Callable[[Tenant], Tenant]) -> Tenant:
    """Returns the tenant after `change`. Only the difference is written: another operator's concurrent changes stay.

    Raises UnknownTenant, and Retryable if the table cannot answer.
    """
    before = ports.tenants.tenant(tenant_id)
    if before is None:
        raise UnknownTenant(tenant_id)
    wanted = change(before)
    with ports.audit.action("change_tenant", tenant_id, **_difference(before, wanted)):
        after = ports.tenants.change_tenant(before, wanted)
        if after is None:
            raise UnknownTenant(tenant_id)
    return after


def _difference(before: Tenant, after: Tenant) -> dict[str, Any]:
    """What is changed, as it is written to the audit log."""
    was, is_ = vars(before), vars(after)
    return {name: "none" if is_[name] is None else is_[name] for name in is_ if is_[name] != was[name]}
