"""Accepts the next edits of an image: the last ones that are accepted are what its variants show in the end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from darkroom.domain.images.image import Image, Status
from darkroom.domain.images.order import check_idempotency_key, key_reused
from darkroom.domain.images.transitions import accept_edit
from darkroom.domain.images.works import require_few_edited
from darkroom.domain.kernel.errors import Retryable
from darkroom.domain.kernel.lanes import live_lane_for
from darkroom.operations.images.add_variants import AddVariantsPorts, NotDone, digest
from darkroom.operations.images.check_order import ImageRequest
from darkroom.operations.images.enqueue import enqueue_edit
from darkroom.operations.images.owned_image import owned_image
from darkroom.operations.images.pin_overlays import pin_overlays
from darkroom.ports.images import EditQueue
from darkroom.ports.kernel import Fenced

if TYPE_CHECKING:
    from darkroom.domain.images.image import EarlierEdit, Edit
    from darkroom.domain.recipes.edits import Edits

_TRIES = 5
"""A worker, the sweeper or another request may each come between reading the row and writing it; not five in a row."""


@dataclass(frozen=True, kw_only=True)
class EditImagePorts(AddVariantsPorts):
    """What editing needs: a stack that orders the messages of edits has an `edit_queue`."""

    edit_queue: EditQueue | None = None


@dataclass(frozen=True, kw_only=True)
class EditRequest(ImageRequest):
    """How a client wants its image to be from now on."""

    image_id: str
    edits: Edits


@dataclass(frozen=True, kw_only=True)
class Edited:
    """The image with its last edit, which is that of the request unless that repeats one with the same key
    (`replayed`)."""

    image: Image
    replayed: bool


def edit_image(ports: EditImagePorts, request: EditRequest) -> Edited:
    """Writes the edit into the image's row, and sends its message if it is or becomes work that nobody has begun. If
    other work is under way, the end of that begins it.

    Raises UnknownImage, NotDone for an image that has ended without variants, Rejected (`invalid_idempotency_key`,
    `idempotency_key_reused`, `too_many_variants`, `quota_exceeded`, `invalid_recipe` for an overlay that is no image of
    the tenant's), TurnedAway (`overloaded`) while its lane has too much work, and Retryable if the table cannot answer
    or the row keeps changing: then nothing was promised. A queue that cannot answer is no error: the row is due, and
    the sweeper sends the message.
    """
    check_idempotency_key(request.idempotency_key)
    key = None if request.idempotency_key is None else digest(request.idempotency_key)
    fingerprint = digest(request.edits.model_dump_json(exclude_defaults=True))
    for _ in range(_TRIES):
        image = owned_image(ports.images, request.image_id, tenant_id=request.tenant_id)
        if key is not None and (asked := _asked_before(image, key)) is not None:
            if asked != fingerprint:  # guard: bulk-edit-key-reuse-refused
                raise key_reused()
            _send(ports, image)
            return Edited(image=image, replayed=True)
        if image.outcome is not Status.DONE and image.outcome.is_terminal:
            raise NotDone(image)
        require_few_edited(image, request.edits)
        ports.quotas.require_room(request.tenant_id, request.quota, size_bytes=0, images=0)
        lane = live_lane_for(image.home_lane, request.tier, request.lane)
        ports.load_shedder.require_capacity(lane, request.tier)
        recipe = request.edits.recipe
        after = accept_edit(
            image,
            request.edits,
            now=ports.clock(),
            overlays=None if recipe is None else pin_overlays(ports.images, recipe, request.tenant_id),
            key=key,
            fingerprint=fingerprint,
            lane=lane,
        )
        try:
            written = ports.images.change(image, after, fence=("version",))  # guard: bulk-edit-version-fence
        except Fenced:
            continue
        _send(ports, written)
        return Edited(image=written, replayed=False)
    raise Retryable("the image changed under every attempt to edit it")


def _asked_before(image: Image, key: str) -> str | None:
    """The fingerprint of the latest edit that a request with this key has asked for, if the row still has it."""
    if image.edit is None:
        return None
    asked: tuple[Edit | EarlierEdit, ...] = (image.edit, *reversed(image.edit.earlier))
    return next((each.fingerprint for each in asked if each.key == key), None)


def _send(ports: EditImagePorts, image: Image) -> None:
    """Sends the message of an edit that nobody has begun: an earlier request may have ended before it did."""
    is_work = image.edit is not None and image.work is not None and image.edit.run == image.run
    if is_work and image.status is Status.PENDING and image.attempt == 0:
        enqueue_edit(ports, ports.edit_queue, image)
