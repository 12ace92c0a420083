"""Accepts another visibility of an image that is done: work beside it, which moves its variants."""

from __future__ import annotations

from dataclasses import dataclass

from darkroom.domain.images.image import DeadLetterState, Image, Status, WorkKind
from darkroom.domain.images.order import require_delivery
from darkroom.domain.images.transitions import begin_work
from darkroom.domain.images.works import has_visibility
from darkroom.domain.kernel.errors import Retryable
from darkroom.domain.kernel.lanes import live_lane_for
from darkroom.domain.kernel.tenants import Tier
from darkroom.domain.kernel.visibility import Visibility
from darkroom.operations.images.add_variants import NotDone
from darkroom.operations.images.enqueue import EnqueuePorts, enqueue
from darkroom.operations.images.load_shedder import LoadShedder
from darkroom.operations.images.owned_image import owned_image
from darkroom.ports.kernel import Fenced

_TRIES = 5
"""A worker, the sweeper or another request may each come between reading the row and writing it; not five in a row."""


@dataclass(frozen=True, kw_only=True)
class ChangeVisibilityPorts(EnqueuePorts):
    """What changing a visibility needs besides the ports of sending its message; `delivers` is whether the stack has an
    edge."""

    load_shedder: LoadShedder
    delivers: bool


def change_visibility(
    ports: ChangeVisibilityPorts,
    image_id: str,
    wanted: Visibility,
    *,
    tenant_id: str,
    tier: Tier,
    moved_to: str | None = None,
) -> Image:
    """Writes the work into the image's row and sends its message; an image that has this visibility stays as it is. A
    repeated request finds the work of the first, and sends its message again. `moved_to` is the lane that the tenant
    was moved to, if it was.

    Raises UnknownImage, NotDone, Rejected (`part_not_deployed`), TurnedAway (`overloaded`) while its lane has too much
    work, and Retryable if the table cannot answer or the row keeps changing: then nothing was promised. A queue that
    cannot answer is no error: the row is due, and the sweeper sends the message.
    """
    for _ in range(_TRIES):
        image = owned_image(ports.images, image_id, tenant_id=tenant_id)
        require_delivery(wanted, delivers=ports.delivers)
        if image.work is not None and image.work.visibility is wanted:
            if image.status is Status.PENDING and image.attempt == 0:  # guard: visibility-repeat-resends-message
                enqueue(ports, image)
            return image
        # guard: visibility-one-work-at-a-time
        if image.status is not Status.DONE or image.dead_letter is DeadLetterState.OWED:
            raise NotDone(image)
        if has_visibility(image, wanted):
            return image
        lane = image.home_lane
        lane = live_lane_for(lane, tier, moved_to)  # guard: visibility-live-lane
        ports.load_shedder.require_capacity(lane, tier)
        after = begin_work(image, WorkKind.VISIBILITY, now=ports.clock(), visibility=wanted, lane=lane)
        try:
            written = ports.images.change(image, after, fence=("version",))  # guard: visibility-version-fence
        except Fenced:
            continue
        enqueue(ports, written)
        return written
    raise Retryable("the image changed under every attempt to change its visibility")
