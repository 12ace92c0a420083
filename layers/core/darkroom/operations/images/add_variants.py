"""Accepts more variants of an image that is done: work beside it, which the image itself does not wait for."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from darkroom.domain.images.image import DeadLetterState, Image, Status, WorkKind
from darkroom.domain.images.order import Order, check_idempotency_key, key_reused
from darkroom.domain.images.transitions import begin_work
from darkroom.domain.images.works import requested_before, require_few
from darkroom.domain.kernel.errors import Retryable
from darkroom.domain.kernel.lanes import live_lane_for
from darkroom.operations.images.check_order import CheckOrderPorts, ImageRequest
from darkroom.operations.images.enqueue import EnqueuePorts, enqueue
from darkroom.operations.images.owned_image import owned_image
from darkroom.operations.images.pin_overlays import pin_overlays
from darkroom.ports.kernel import Fenced

_TRIES = 5
"""A worker, the sweeper or another request may each come between reading the row and writing it; not five in a row."""


@dataclass(frozen=True, kw_only=True)
class VariantsRequest(ImageRequest):
    """Which variants a client wants besides those that its image has."""

    image_id: str
    order: Order


@dataclass(frozen=True, kw_only=True)
class Added:
    """The image with the work beside it, or with the work that an earlier request with the same key has asked for
    (`replayed`)."""

    image: Image
    replayed: bool


class NotDone(Exception):
    """Only an image that is done can get more variants, and only one work is under way beside it, or has failed and
    still owes its dead letter; `image` is as it is."""

    def __init__(self, image: Image) -> None:
        super().__init__(f"the image is {image.status}")
        self.image = image


@dataclass(frozen=True, kw_only=True)
class AddVariantsPorts(EnqueuePorts, CheckOrderPorts):
    """What adding variants needs besides the ports of sending their message."""


def add_variants(ports: AddVariantsPorts, request: VariantsRequest) -> Added:
    """Writes the work into the image's row and sends its message.

    Raises UnknownImage, NotDone, Rejected (`invalid_idempotency_key`, `idempotency_key_reused`, `too_many_variants`,
    `quota_exceeded`, `invalid_recipe` for an overlay that is no image of the tenant's, and what joining a batch
    raises), TurnedAway (`overloaded`) while its lane has too much work, and Retryable if the table cannot answer or the
    row keeps changing: then nothing was promised. A queue that cannot answer is no error: the row is due, and the
    sweeper sends the message.
    """
    check_idempotency_key(request.idempotency_key)
    key = None if request.idempotency_key is None else digest(request.idempotency_key)
    fingerprint = digest(request.order.request_signature)
    for _ in range(_TRIES):
        image = owned_image(ports.images, request.image_id, tenant_id=request.tenant_id)
        earlier = None if key is None else requested_before(image, key)
        if earlier is not None:
            return _replay(ports, image, is_same=earlier.fingerprint == fingerprint)
        # The dead letter of work that has failed is placed first: a run that was given up has exactly one.
        # guard: works-one-at-a-time, works-after-owed-dead-letter, bulk-edit-before-more-variants
        if image.status is not Status.DONE or image.dead_letter is DeadLetterState.OWED or image.edit_waits:
            raise NotDone(image)
        require_few(image, request.order.recipe)
        ports.quotas.require_room(request.tenant_id, request.quota, size_bytes=0, images=0)
        lane = image.home_lane
        lane = live_lane_for(lane, request.tier, request.lane)  # guard: works-live-lane
        ports.load_shedder.require_capacity(lane, request.tier)
        overlays = pin_overlays(ports.images, request.order.recipe, request.tenant_id)
        batch = request.order.batch
        # Known to its batch before the row says so, as an image is. A run that another request takes is dropped there.
        awaits_turn = batch is not None and ports.join_batch(image.tenant_id, batch, image.image_id, image.run + 1)
        after = begin_work(
            image,
            WorkKind.VARIANTS,
            now=ports.clock(),
            recipe=request.order.recipe,
            overlays=overlays,
            key=key,
            fingerprint=fingerprint,
            batch=batch,
            awaits_turn=awaits_turn,
            lane=lane,
        )
        try:
            written = ports.images.change(image, after, fence=("version",))  # guard: works-version-fence
        except Fenced:
            continue
        enqueue(ports, written)
        return Added(image=written, replayed=False)
    raise Retryable("the image changed under every attempt to add variants")


def _replay(ports: AddVariantsPorts, image: Image, *, is_same: bool) -> Added:
    if not is_same:  # guard: works-key-reuse-refused
        raise key_reused()
    # guard: works-repeat-resends-message
    if image.status is Status.PENDING and image.attempt == 0:
        # The earlier request may have ended between its row and its message: that is why clients repeat requests.
        enqueue(ports, image)
    return Added(image=image, replayed=True)


def digest(text: str) -> str:
    """SHA-256 of a key, or of what was asked for, as a row has it."""
    return hashlib.sha256(text.encode()).hexdigest()
