"""Adds a tenant: an operator command."""

from __future__ import annotations

from dataclasses import dataclass

from darkroom.domain.kernel.tenants import TENANT_ID_PATTERN, Tenant, Tier, is_tenant_id
from darkroom.domain.kernel.visibility import Visibility
from darkroom.ports.kernel import Clock
from darkroom_cli.operator.operations.kernel.audit_trail import Trail
from darkroom_cli.operator.ports import TenantRegistry


class TenantExists(Exception):
    """A tenant with that id already exists: `tenant`."""

    def __init__(self, tenant: Tenant) -> None:
        super().__init__(f"there is a tenant {tenant.tenant_id}")
        self.tenant = tenant


@dataclass(frozen=True, kw_only=True)
class AddTenantPorts:
    """What adding a tenant needs."""

    tenants: TenantRegistry
    clock: Clock
    audit: Trail


def add_tenant(
    ports: AddTenantPorts,
    tenant_id: str,
    *,
    tier: Tier,
    requests_per_second: int | None,
    burst: int | None,
    max_stored_bytes: int | None = None,
    max_images: int | None = None,
    visibility: Visibility | None = None,
    viewer_seconds: int | None = None,
) -> Tenant:
    """Returns the new tenant, which has no key yet.

    Raises TenantExists, ValueError for an invalid tenant id, and Retryable if the table cannot answer.
    """
    if not is_tenant_id(tenant_id):
        raise ValueError(f"a tenant's id matches {TENANT_ID_PATTERN}")
    tenant = Tenant(
        tenant_id=tenant_id,
        tier=tier,
        created_at=ports.clock(),
        requests_per_second=requests_per_second,
        burst=burst,
        max_stored_bytes=max_stored_bytes,
        max_images=max_images,
        visibility=visibility,
        viewer_seconds=viewer_seconds,
    )
    with ports.audit.action("add_tenant", tenant_id, tier=tier.value):
        stored_tenant = ports.tenants.add_tenant(tenant)
        if stored_tenant != tenant:
            raise TenantExists(stored_tenant)
    return stored_tenant
