"""Reschedules a scheduled image to another time, or to now: every message for its previous time becomes void."""

from __future__ import annotations

from dataclasses import dataclass, replace

from darkroom.domain.images.image import Image, Status
from darkroom.domain.images.transitions import reschedule
from darkroom.domain.kernel.errors import Rejected, Retryable
from darkroom.domain.kernel.instants import Milliseconds
from darkroom.domain.kernel.tenants import Tier
from darkroom.domain.schedules.schedule import Timetable, appoint
from darkroom.operations.images.enqueue import EnqueueInTimePorts, enqueue_in_time
from darkroom.operations.images.load_shedder import LoadShedder
from darkroom.operations.images.owned_image import owned_image
from darkroom.ports.kernel import Fenced

_TRIES = 5
"""The sweeper may come between reading the row and writing it; not five times in a row."""


@dataclass(frozen=True, kw_only=True)
class RescheduleImagePorts(EnqueueInTimePorts):
    """What rescheduling needs besides the ports of sending the message."""

    load_shedder: LoadShedder


def reschedule_image(
    ports: RescheduleImagePorts, image_id: str, timetable: Timetable, *, tenant_id: str, tier: Tier
) -> Image:
    """Gives the image the requested time, and returns its row; an `expires_at` that is not named stays.

    The row comes first, so that nothing is begun before the new time; then the message. Raises Rejected
    (`not_scheduled`, `invalid_schedule`, and what `appoint` raises), UnknownImage, TurnedAway (`overloaded`) if it
    would come to a lane that has too much work, and Retryable if the table cannot answer or the row keeps changing.
    """
    if timetable.process_at is None and timetable.delay_milliseconds is None:
        raise Rejected("invalid_schedule", "Give a time: process_at with an instant, or delay with a duration.")
    for _ in range(_TRIES):
        image = owned_image(ports.images, image_id, tenant_id=tenant_id)
        if image.status is not Status.SCHEDULED:
            raise Rejected("not_scheduled", f"Only a scheduled image can be rescheduled. This one is {image.status}.")
        after = rescheduled(image, timetable, now=ports.clock())
        # guard: load-shedding-reschedule
        ports.load_shedder.require_capacity(image.lane, tier, process_at=after.process_at)
        try:
            written = ports.images.change(image, after, fence=("version",))  # guard: delay-move-version-fence
        except Fenced:
            continue
        enqueue_in_time(ports, written)
        return written
    raise Retryable("the image changed under every attempt to move it")


def rescheduled(image: Image, timetable: Timetable, *, now: Milliseconds) -> Image:
    """The scheduled image at the requested time; an `expires_at` that is not named stays. Raises Rejected as `appoint`
    does."""
    kept = timetable if timetable.expires_at is not None else replace(timetable, expires_at=image.expires_at)
    appointment = appoint(kept, now=now)
    return reschedule(image, process_at=appointment.process_at, expires_at=appointment.expires_at, now=now)
