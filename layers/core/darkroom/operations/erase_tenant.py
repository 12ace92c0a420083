"""Erases a tenant: an operator command, which may be interrupted anywhere and started again.

1. Its requests are refused (`suspend`).
2. Each of its images becomes a tombstone (`image_ids`, `delete_image`), until a look finds none. Requests that were
   authorized before the suspension may bring more for as long as the gateway caches authorizations.
3. Its keys and its own row are removed (`forget_tenant`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from darkroom.domain.listing import MAX_PAGE_IMAGES, Cursor
from darkroom.domain.tenants import Tenant, TenantState
from darkroom.ports import Images, Tenants, UnreadableRow


@dataclass(frozen=True, kw_only=True)
class Ports:
    """What erasing a tenant needs."""

    tenants: Tenants
    images: Images


def suspend(ports: Ports, tenant_id: str) -> Tenant | None:
    """The tenant as it was before, with its requests refused from now on; None if it has no row. Raises Retryable, and
    UnreadableRow."""
    tenant = ports.tenants.tenant(tenant_id)
    if tenant is not None:
        ports.tenants.change_tenant(tenant, replace(tenant, state=TenantState.SUSPENDED))
    return tenant


def image_ids(ports: Ports, tenant_id: str) -> Iterator[str]:
    """The ids of the tenant's images that are not deleted, as the index has them, which is seconds behind its table;
    read as the caller iterates. Raises Retryable."""
    after: Cursor | None = None
    while True:
        listed = ports.images.newest(tenant_id, after=after, limit=MAX_PAGE_IMAGES)
        yield from (cursor.image_id for cursor in listed.cursors)
        if listed.next is None:
            return
        after = listed.next


def forget_tenant(ports: Ports, tenant_id: str) -> int:
    """Removes the tenant's keys and then its own row; returns how many keys there were. Raises Retryable."""
    keys = [
        key for key in ports.tenants.all_keys() if not isinstance(key, UnreadableRow) and key.tenant_id == tenant_id
    ]
    for key in keys:
        ports.tenants.remove_key(key.key_id)
    ports.tenants.remove_tenant(tenant_id)
    return len(keys)
