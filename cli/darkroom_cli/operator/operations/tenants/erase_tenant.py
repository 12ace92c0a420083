"""Erases tenants: an operator command, which may be interrupted anywhere and started again.

1. They are suspended (`change_tenant`).
2. Each of their images becomes a tombstone (`image_ids`, `delete_image`): once at once, and once again when no request
   is authorized any more, because the gateway believes for some time what the authorizer answered before the
   suspension.
3. Their webhooks with the deliveries, their batches, their usage, their buckets of requests, their keys, what says
   that they are paused, and their own rows are removed (`forget_tenants`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from darkroom.domain.edge.instructions import on_request_bucket_of
from darkroom.domain.images.listing import MAX_PAGE_IMAGES, Cursor
from darkroom.domain.tenants.rate_limits import Policy, bucket_of
from darkroom.ports.images import Images
from darkroom.ports.kernel import UnreadableRow
from darkroom.ports.tenants import TokenBuckets
from darkroom.ports.usage import UsageCounts
from darkroom.ports.webhooks import Deliveries, Endpoints
from darkroom_cli.operator.operations.kernel.audit_trail import AuditedAction
from darkroom_cli.operator.ports import BatchRegistry, PauseRegistry, TenantRegistry


@dataclass(frozen=True, kw_only=True)
class EraseTenantPorts:
    """What erasing tenants needs."""

    tenants: TenantRegistry
    images: Images
    endpoints: Endpoints
    deliveries: Deliveries
    usage: UsageCounts
    token_buckets: TokenBuckets
    pauses: PauseRegistry
    batches: BatchRegistry


@dataclass(frozen=True, kw_only=True)
class Forgotten:
    """What there was of a tenant, besides its images and its own row. `usage` counts days, and what else is kept of
    it."""

    webhooks: int = 0
    deliveries: int = 0
    batches: int = 0
    usage: int = 0
    keys: int = 0


def image_ids(ports: EraseTenantPorts, tenant_id: str) -> Iterator[str]:
    """The ids of the tenant's images that are not deleted, as the index has them, which is seconds behind its table;
    read as the caller iterates. Raises Retryable."""
    after: Cursor | None = None
    while True:
        listed = ports.images.newest(tenant_id, after=after, limit=MAX_PAGE_IMAGES)
        yield from (cursor.image_id for cursor in listed.cursors)
        if listed.next is None:
            return
        after = listed.next


def keys_of(ports: EraseTenantPorts, tenant_ids: Collection[str]) -> Mapping[str, Sequence[str]]:
    """The ids of each tenant's keys, also of those that cannot be read. Raises Retryable."""
    ids: dict[str, list[str]] = {tenant_id: [] for tenant_id in tenant_ids}
    for key in ports.tenants.all_keys():
        if key.tenant_id in ids:  # guard: tenant-erasure-own-keys-only
            ids[key.tenant_id].append(key.row_id if isinstance(key, UnreadableRow) else key.key_id)
    return ids


def forget_tenants(
    ports: EraseTenantPorts, tenant_ids: Collection[str], audited: AuditedAction
) -> Mapping[str, Forgotten]:
    """Removes the webhooks of these tenants, 1 to MOST_ERASED_AT_ONCE, with their deliveries; and then of each its
    batches, its usage, its buckets, its keys, its pause and its own row. It reads all deliveries of the stack, once.
    `audited` is the operator's action. Raises Retryable."""
    audited.begin(*tenant_ids)  # guard: audit-erase-tenant-announced
    webhooks, deliveries = Counter[str](), Counter[str]()
    for tenant_id in tenant_ids:
        for endpoint in ports.endpoints.of_tenant(tenant_id):
            endpoint_id = endpoint.row_id if isinstance(endpoint, UnreadableRow) else endpoint.endpoint_id
            ports.endpoints.remove(tenant_id, endpoint_id)
            audited.add(endpoint_id, "webhooks")
            webhooks[tenant_id] += 1
    # guard: tenant-erasure-deliveries-once
    for tenant_id, endpoint_id in ports.deliveries.endpoints_of(tenant_ids):  # those of removed endpoints, too
        deliveries[tenant_id] += ports.deliveries.remove_all(endpoint_id)
    keys = keys_of(ports, tenant_ids)
    forgotten: dict[str, Forgotten] = {}
    for tenant_id in tenant_ids:
        usage = ports.usage.forget(tenant_id)  # guard: erasure-tenant-usage
        batches = ports.batches.forget(tenant_id)  # guard: erasure-tenant-batches
        for bucket in (*(bucket_of(policy, tenant_id) for policy in Policy), on_request_bucket_of(tenant_id)):
            ports.token_buckets.forget(bucket)  # guard: erasure-tenant-token-buckets
        for key_id in keys[tenant_id]:
            ports.tenants.remove_key(key_id)
            audited.add(key_id, "keys")
        ports.pauses.forget("tenant", tenant_id)  # guard: erasure-tenant-pause
        ports.tenants.remove_tenant(tenant_id)  # last, so that a repetition finds the tenant
        audited.add(tenant_id, "tenants")
        forgotten[tenant_id] = Forgotten(
            webhooks=webhooks[tenant_id],
            deliveries=deliveries[tenant_id],
            batches=batches,
            usage=usage,
            keys=len(keys[tenant_id]),
        )
    return forgotten
