"""Erases a tenant: an operator command, which may be interrupted anywhere and started again.

1. It is suspended (`change_tenant`).
2. Each of its images becomes a tombstone (`image_ids`, `delete_image`): once at once, and once again when no request is
   authorized any more, because the gateway believes for some time what the authorizer answered before the suspension.
3. Its webhooks with their deliveries, its keys and its own row are removed (`forget_tenant`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from darkroom.domain.listing import MAX_PAGE_IMAGES, Cursor
from darkroom.operations.audit_trail import Deeds
from darkroom.ports import Deliveries, Endpoints, Images, Tenants, UnreadableRow


@dataclass(frozen=True, kw_only=True)
class Ports:
    """What erasing a tenant needs."""

    tenants: Tenants
    images: Images
    endpoints: Endpoints
    deliveries: Deliveries


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


def keys_of(ports: Ports, tenant_id: str) -> list[str]:
    """The ids of the tenant's keys, also of those that cannot be read. Raises Retryable."""
    keys = [key for key in ports.tenants.all_keys() if key.tenant_id == tenant_id]
    return [key.row_id if isinstance(key, UnreadableRow) else key.key_id for key in keys]


def forget_tenant(ports: Ports, tenant_id: str, deeds: Deeds) -> int:
    """Removes the tenant's webhooks with their deliveries, its keys and then its own row; returns how many keys there
    were. It reads all deliveries of the stack. `deeds` is the operator's action. Raises Retryable."""
    deeds.begin(tenant_id)
    for endpoint in ports.endpoints.of_tenant(tenant_id):
        endpoint_id = endpoint.row_id if isinstance(endpoint, UnreadableRow) else endpoint.endpoint_id
        ports.endpoints.remove(tenant_id, endpoint_id)
        deeds.add(endpoint_id, "webhooks")
    for endpoint_id in ports.deliveries.endpoints_of(tenant_id):  # those of removed endpoints, too
        ports.deliveries.remove_all(endpoint_id)
    keys = keys_of(ports, tenant_id)
    for key_id in keys:
        ports.tenants.remove_key(key_id)
        deeds.add(key_id, "keys")
    ports.tenants.remove_tenant(tenant_id)
    deeds.add(tenant_id, "tenants")
    return len(keys)
