"""Checks what is ordered of a new image, whichever way its bytes come, before its row is written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from darkroom.domain.images.image import Image
from darkroom.domain.images.order import Order, unknown_notify
from darkroom.domain.images.transitions import accept
from darkroom.domain.kernel.instants import Milliseconds
from darkroom.domain.kernel.lanes import lane_for
from darkroom.domain.kernel.tenants import Quota, Tier
from darkroom.domain.schedules.schedule import Timetable, appoint
from darkroom.operations.images.load_shedder import LoadShedder
from darkroom.operations.images.pin_overlays import pin_overlays
from darkroom.operations.images.quota_keeper import QuotaKeeper
from darkroom.ports.images import HasRecipient, Images, no_recipient


@dataclass(frozen=True, kw_only=True)
class CheckOrderPorts:
    """What checking an order needs; an operation that takes orders adds its own ports."""

    images: Images
    has_recipient: HasRecipient = no_recipient
    load_shedder: LoadShedder
    quotas: QuotaKeeper


def check_order(
    ports: CheckOrderPorts,
    order: Order,
    timetable: Timetable,
    *,
    tenant_id: str,
    tier: Tier,
    quota: Quota,
    size_bytes: int,
    now: Milliseconds,
) -> Callable[..., Image]:
    """Checks the order for a file of so many bytes, and returns `accept` with all of its arguments that follow from it.

    It comes after looking for an earlier request with the same key: a time that was in the future then may have passed
    since, and a repetition is let in though its lane or its tenant's quota is full. Raises Rejected (`unknown_notify`,
    `quota_exceeded`, `invalid_recipe` for an overlay that is no image of the tenant's, and what `appoint` raises),
    TurnedAway (`overloaded`) while the lane of the tenant's tier has too much work, and Retryable if the table cannot
    answer.
    """
    appointment = appoint(timetable, now=now)
    # guard: webhook-notify-own-tenant
    if order.notify is not None and not ports.has_recipient(tenant_id, order.notify):
        raise unknown_notify()
    ports.quotas.require_room(tenant_id, quota, size_bytes=size_bytes)  # guard: quotas-room-required
    lane = lane_for(tier).name  # guard: tenants-upload-tier-lane
    # guard: load-shedding-announcement
    ports.load_shedder.require_capacity(lane, tier, process_at=appointment.process_at)
    return partial(
        accept,
        tenant_id=tenant_id,
        lane=lane,
        preset=order.preset,
        recipe=order.recipe,
        now=now,
        process_at=appointment.process_at,
        expires_at=appointment.expires_at,
        notify=order.notify,
        overlays=pin_overlays(ports.images, order.recipe, tenant_id),
    )
