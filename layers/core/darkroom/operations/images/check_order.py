"""Checks what is ordered of a new image, whichever way its bytes come, before its row is written."""

from __future__ import annotations

from dataclasses import dataclass

from darkroom.domain.images.image import Image, Source
from darkroom.domain.images.order import Order, check_idempotency_key, check_reuse, is_there, unknown_notify
from darkroom.domain.images.transitions import accept
from darkroom.domain.kernel.ids import image_id_for_key, image_id_from_bits, image_ids_for_photo
from darkroom.domain.kernel.instants import Milliseconds
from darkroom.domain.kernel.lanes import lane_for
from darkroom.domain.kernel.tenants import NO_QUOTA, Quota, Tier
from darkroom.domain.schedules.schedule import Appointment, appoint
from darkroom.operations.images.load_shedder import LoadShedder
from darkroom.operations.images.pin_overlays import pin_overlays
from darkroom.operations.images.quota_keeper import QuotaKeeper
from darkroom.ports.images import HasRecipient, Images, no_recipient
from darkroom.ports.kernel import Clock, Randomness


@dataclass(frozen=True, kw_only=True)
class ImageRequest:
    """Who asks for an image, by which request and key. The tenant's tier decides the lane, and its quota how much it
    may store."""

    tenant_id: str
    correlation_id: str
    tier: Tier = Tier.FREE
    quota: Quota = NO_QUOTA
    idempotency_key: str | None = None


@dataclass(frozen=True, kw_only=True)
class CheckOrderPorts:
    """What checking an order needs; an operation that takes orders adds its own ports."""

    images: Images
    has_recipient: HasRecipient = no_recipient
    load_shedder: LoadShedder
    quotas: QuotaKeeper
    clock: Clock
    randomness: Randomness


@dataclass(frozen=True, kw_only=True)
class CheckedOrder:
    """An order that may be taken `now`, into that lane, for that time; `overlays` are the originals that it needs."""

    request: ImageRequest
    order: Order
    lane: str
    appointment: Appointment
    overlays: dict[str, Source] | None
    now: Milliseconds

    def row(self, image_id: str, *, fingerprint: str, source: Source) -> Image:
        """The row of its image as if the bytes were here: the caller says if they are yet to come."""
        return accept(
            image_id=image_id,
            tenant_id=self.request.tenant_id,
            lane=self.lane,
            preset=self.order.preset,
            recipe=self.order.recipe,
            fingerprint=fingerprint,
            correlation_id=self.request.correlation_id,
            source=source,
            now=self.now,
            process_at=self.appointment.process_at,
            expires_at=self.appointment.expires_at,
            notify=self.order.notify,
            overlays=self.overlays,
            annotations=self.order.annotations,
        )


def find_earlier(ports: CheckOrderPorts, request: ImageRequest) -> tuple[str, Image | None]:
    """The id of the image that the request asks for, and its row if an earlier request with the same key has made it.
    Raises Rejected (`invalid_idempotency_key`), and Retryable if the table cannot answer."""
    check_idempotency_key(request.idempotency_key)
    if request.idempotency_key is None:
        return image_id_from_bits(ports.randomness(16)), None
    image_id = image_id_for_key(request.tenant_id, request.idempotency_key)
    return image_id, ports.images.get(image_id)


def find_duplicate(
    ports: CheckOrderPorts, request: ImageRequest, order: Order, *, sha256: str
) -> tuple[str, Image | None]:
    """The id of the image that the request asks for, and its row if an upload of the same bytes for the same recipe has
    made it, and it is still there. Who makes it and finds that another was faster, asks again.

    Raises Rejected (`conflicting_parameters`), and Retryable if the table cannot answer."""
    check_reuse(request.idempotency_key)
    ids = image_ids_for_photo(request.tenant_id, sha256, order.recipe.digest())
    rows, now = ports.images.get_all(ids), ports.clock()
    for image_id in ids:
        row = rows.get(image_id)
        if isinstance(row, Image) and is_there(row, now=now):
            return image_id, row
    # Tombstones are forgotten after their time: so all ids were looked for, and the first may be free again.
    free = (image_id for image_id in ids if image_id not in rows)
    return next(free, None) or image_id_from_bits(ports.randomness(16)), None


def check_order(ports: CheckOrderPorts, request: ImageRequest, order: Order, *, size_bytes: int) -> CheckedOrder:
    """Checks the order for a file of so many bytes.

    It comes after looking for an earlier request with the same key: a time that was in the future then may have passed
    since, and a repetition is let in though its lane or its tenant's quota is full. Raises Rejected (`unknown_notify`,
    `part_not_deployed`, `quota_exceeded`, `invalid_recipe` for an overlay that is no image of the tenant's, and what
    `appoint` raises), TurnedAway (`overloaded`) while the lane of the tenant's tier has too much work, and Retryable if
    the table cannot answer.
    """
    now = ports.clock()
    appointment = appoint(order.timetable, now=now)
    # guard: webhook-notify-own-tenant
    if order.notify is not None and not ports.has_recipient(request.tenant_id, order.notify):
        raise unknown_notify()
    ports.quotas.require_room(request.tenant_id, request.quota, size_bytes=size_bytes)  # guard: quotas-room-required
    lane = lane_for(request.tier).name  # guard: tenants-upload-tier-lane
    # guard: load-shedding-announcement
    ports.load_shedder.require_capacity(lane, request.tier, process_at=appointment.process_at)
    return CheckedOrder(
        request=request,
        order=order,
        lane=lane,
        appointment=appointment,
        overlays=pin_overlays(ports.images, order.recipe, request.tenant_id),
        now=now,
    )
