"""Checks what is ordered of a new image, whichever way its bytes come, before its row is written."""

from __future__ import annotations

from dataclasses import dataclass

from darkroom.domain.images.image import Image, Source
from darkroom.domain.images.order import (
    Order,
    check_idempotency_key,
    check_reuse,
    is_there,
    require_delivery,
    unknown_notify,
)
from darkroom.domain.images.transitions import accept
from darkroom.domain.kernel.errors import Rejected
from darkroom.domain.kernel.ids import image_id_for_key, image_id_from_bits, image_ids_for_photo
from darkroom.domain.kernel.instants import Milliseconds
from darkroom.domain.kernel.lanes import lane_of_upload
from darkroom.domain.kernel.sizes import excess_in_words
from darkroom.domain.kernel.tenants import NO_QUOTA, Quota, Tier
from darkroom.domain.kernel.visibility import Visibility
from darkroom.domain.schedules.schedule import Appointment, appoint
from darkroom.domain.tenants.upload_tokens import UploadToken
from darkroom.operations.images.load_shedder import LoadShedder
from darkroom.operations.images.pin_overlays import pin_overlays
from darkroom.operations.tenants.quota_keeper import QuotaKeeper
from darkroom.ports.images import HasRecipient, Images, JoinBatch, join_none, no_recipient
from darkroom.ports.kernel import Clock, Randomness
from darkroom.ports.tenants import UploadTokenUses


@dataclass(frozen=True, kw_only=True)
class ImageRequest:
    """Who asks for an image, by which request and key. The tenant's tier decides the lane unless `lane` names one, and
    its quota how much it may store; `visibility` and `viewer_seconds` are those of its images unless an order says
    otherwise. `upload_token` is the token of a browser that asks, None for who has a credential of the tenant's."""

    tenant_id: str
    correlation_id: str
    tier: Tier = Tier.FREE
    quota: Quota = NO_QUOTA
    visibility: Visibility = Visibility.PRIVATE
    viewer_seconds: int | None = None
    idempotency_key: str | None = None
    upload_token: UploadToken | None = None
    lane: str | None = None


@dataclass(frozen=True, kw_only=True)
class Accepted:
    """The image that a request became, or that an earlier one with the same key, or of the same bytes if it reuses
    them, became (`replayed`)."""

    image: Image
    replayed: bool


@dataclass(frozen=True, kw_only=True)
class CheckOrderPorts:
    """What checking an order needs; an operation that takes orders adds its own ports. `delivers` is whether the stack
    has an edge."""

    images: Images
    has_recipient: HasRecipient = no_recipient
    load_shedder: LoadShedder
    quotas: QuotaKeeper
    upload_token_uses: UploadTokenUses
    clock: Clock
    randomness: Randomness
    delivers: bool = False
    join_batch: JoinBatch = join_none


@dataclass(frozen=True, kw_only=True)
class CheckedOrder:
    """An order that may be taken `now`, into that lane, for that time; `overlays` are the originals that it needs, and
    `visibility` is what the image gets. It has joined its batch, if it is for one, and may await its turn there."""

    request: ImageRequest
    order: Order
    lane: str
    appointment: Appointment
    overlays: dict[str, Source] | None
    visibility: Visibility
    now: Milliseconds
    awaits_turn: bool = False

    def row(self, image_id: str, *, fingerprint: str, source: Source) -> Image:
        """The row of its image as if the bytes were here: the caller says if they are yet to come."""
        return accept(
            image_id=image_id,
            tenant_id=self.request.tenant_id,
            lane=self.lane,
            preset=self.order.preset,
            preset_version=self.order.preset_version,
            chooses=self.order.chooses,
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
            visibility=self.visibility,
            viewer_seconds=self.request.viewer_seconds,
            upload_token=None if self.request.upload_token is None else self.request.upload_token.token_id,
            batch=self.order.batch,
            awaits_turn=self.awaits_turn,
        )


def find_earlier(ports: CheckOrderPorts, request: ImageRequest) -> tuple[str, Image | None]:
    """The id of the image that the request asks for, and its row if an earlier request with the same key has made it.
    Raises Rejected (`invalid_idempotency_key`), and Retryable if the table cannot answer."""
    check_idempotency_key(request.idempotency_key)
    if request.idempotency_key is None:
        return image_id_from_bits(ports.randomness(16)), None
    # A token's keys are its own: a browser learns of no key of the tenant's, and takes none.
    of_token = "" if request.upload_token is None else f"#{request.upload_token.token_id}"
    image_id = image_id_for_key(request.tenant_id + of_token, request.idempotency_key)  # guard: upload-token-own-keys
    return image_id, ports.images.get(image_id)


def find_answer(
    ports: CheckOrderPorts, request: ImageRequest, order: Order, *, sha256: str
) -> tuple[str, Image | None]:
    """The same for a request whose bytes are known: an order that reuses images finds the one that an upload of the
    same bytes for the same recipe has made, if it is still there. A request that is to make it, and finds that another
    was faster, asks again.

    Raises Rejected (`conflicting_parameters`), and what `find_earlier` raises."""
    if not order.reuses:
        return find_earlier(ports, request)
    check_reuse(request.idempotency_key)
    ids = image_ids_for_photo(request.tenant_id, sha256, order.recipe.digest())
    rows, now = ports.images.get_all(ids), ports.clock()
    for image_id in ids:
        row = rows.get(image_id)
        # One that was made again since, by its preset's later version, is another answer.
        # guard: reuse-made-again-is-another
        if isinstance(row, Image) and is_there(row, now=now) and row.recipe == order.recipe:
            return image_id, row
    # Tombstones are forgotten after their time: so all ids were looked for, and the first may be free again.
    free = (image_id for image_id in ids if image_id not in rows)
    return next(free, None) or image_id_from_bits(ports.randomness(16)), None


def check_order(
    ports: CheckOrderPorts, request: ImageRequest, order: Order, image_id: str, *, size_bytes: int
) -> CheckedOrder:
    """Checks the order for a file of so many bytes, counts the image as one of its upload token's, if it has one, and
    has it join its batch.

    It comes after looking for an earlier request with the same key: a time that was in the future then may have passed
    since, and a repetition is let in though its lane or its tenant's quota is full, or its token used up. Raises
    Rejected (`unknown_notify`, `part_not_deployed`, `quota_exceeded`, `invalid_recipe` for an overlay that is no image
    of the tenant's, `conflicting_parameters`, and what `appoint` and joining a batch raise; by a token also
    `upload_token_expired`, `upload_token_used_up` and `upload_too_large`), TurnedAway (`overloaded`) while the lane has
    too much work and (`too_many_unfinished`) while too many of the tenant's images are that, and Retryable if a table
    cannot answer.
    """
    now, token = ports.clock(), request.upload_token
    if token is not None:
        _check_token(token, size_bytes=size_bytes, now=now)
    visibility = _visibility_of(ports, request, order)
    appointment = appoint(order.timetable, now=now)
    # guard: webhook-notify-own-tenant
    if order.notify is not None and not ports.has_recipient(request.tenant_id, order.notify):
        raise unknown_notify()
    # guard: quotas-room-required
    stored = ports.quotas.require_room(request.tenant_id, request.quota, size_bytes=size_bytes)
    lane = lane_of_upload(request.tier, request.lane)  # guard: tenants-upload-tier-lane
    if appointment.process_at is None:  # guard: unfinished-scheduled-accepted
        # guard: unfinished-turn-required
        ports.load_shedder.require_turn(lane, unfinished=stored.unfinished, most=request.quota.unfinished)
    # guard: load-shedding-announcement
    ports.load_shedder.require_capacity(lane, request.tier, process_at=appointment.process_at)
    overlays = pin_overlays(ports.images, order.recipe, request.tenant_id)
    # Last of all, and before anything is stored. What still fails can be sent again under its key, and is counted then.
    if token is not None and not ports.upload_token_uses.use(token, image_id):  # guard: upload-token-use-counted
        raise Rejected(
            "upload_token_used_up",
            f"This upload token has been used for as many photos as it allows: {token.count:,}. Ask the server that "
            "made it for another.",
        )
    # The image is known to its batch before there is a row of it: no crash leaves an image that the batch lacks.
    awaits_turn = order.batch is not None and ports.join_batch(request.tenant_id, order.batch, image_id, None)
    if awaits_turn and appointment.process_at is not None:  # guard: bulk-turn-or-time
        raise Rejected(
            "conflicting_parameters",
            "In a batch with a parallelism an image begins when it is its turn: leave out process_at and delay, or use "
            "a batch without one.",
        )
    return CheckedOrder(
        awaits_turn=awaits_turn,
        request=request,
        order=order,
        lane=lane,
        appointment=appointment,
        overlays=overlays,
        visibility=visibility,
        now=now,
    )


def _visibility_of(ports: CheckOrderPorts, request: ImageRequest, order: Order) -> Visibility:
    """What the order says, or else what the tenant usually wants, as far as the stack can deliver."""
    require_delivery(order.visibility, delivers=ports.delivers)
    usual = request.visibility if ports.delivers else Visibility.PRIVATE  # guard: visibility-usual-without-edge
    return usual if order.visibility is None else order.visibility


def _check_token(token: UploadToken, *, size_bytes: int, now: Milliseconds) -> None:
    if token.expires_at <= now:  # guard: upload-token-expiry-exact
        # The gateway lets it in for up to a minute more, as it does a key.
        raise Rejected(
            "upload_token_expired", "This upload token has expired. Ask the server that made it for another."
        )
    if size_bytes > token.max_bytes:  # guard: upload-token-max-bytes
        raise Rejected(
            "upload_too_large",
            f"The file has {excess_in_words(size_bytes, token.max_bytes)} are allowed by this upload token. Send a "
            "smaller version of the photo.",
        )
