"""Reschedules one of many scheduled images, so that rescheduling all can be interrupted anywhere and started again."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace

from darkroom.bookkeeping import bookkeeping
from darkroom.domain.kernel.errors import Rejected, Retryable
from darkroom.domain.kernel.instants import Milliseconds
from darkroom.domain.schedules.schedule import Timetable
from darkroom.operations.images.enqueue import DUE_FENCE, EnqueueInTimePorts, enqueue_in_time
from darkroom.operations.schedules.reschedule_image import rescheduled
from darkroom.ports.kernel import Fenced
from darkroom_cli.operator.operations.kernel.audit_trail import AuditedAction
from darkroom_cli.operator.operations.schedules.list_scheduled import ScheduledSelection

LOOK_SECONDS = 300
"""When the sweeper looks at a rescheduled image if the process died before it sent the message: after the usual
sends."""

_TRIES = 5
"""The sweeper or a client may come between reading the row and writing it; not five times in a row."""


@dataclass(frozen=True, kw_only=True)
class RescheduleScheduledPorts(EnqueueInTimePorts):
    """What rescheduling needs besides the ports of sending the message; `audited` is the operator's action, of which
    each image is a part."""

    audited: AuditedAction


def reschedule_scheduled(
    ports: RescheduleScheduledPorts,
    image_id: str,
    selection: ScheduledSelection,
    later: Callable[[Milliseconds], Milliseconds],
) -> bool:
    """Moves the image from its time to the result of `later`, if it still belongs to the selection; returns whether it
    did.

    A repetition finds it outside the selection and leaves it alone. A process that dies after the row was written may
    leave no message behind, and no repetition comes back to it: so the row is due for a look soon, until its message is
    sent. Raises Rejected (`invalid_process_at`, `invalid_expires_at`; `invalid_schedule` for a time in the selection's
    own period), and Retryable if the table cannot answer or the row keeps changing.
    """
    for _ in range(_TRIES):
        image = ports.images.get(image_id)
        # guard: day-move-selection-rechecked
        if image is None or image.process_at is None or not selection.covers(image):
            return False
        process_at = later(image.process_at)
        if process_at in selection.period:  # guard: day-move-into-period-refused
            raise Rejected(
                "invalid_schedule", "Its new time is in the period that is being moved: it would be moved again."
            )
        ports.audited.begin()  # guard: audit-reschedule-announced
        now = ports.clock()
        after = rescheduled(image, Timetable(process_at=process_at), now=now)
        look_at = now + LOOK_SECONDS * 1000
        try:
            written = ports.images.change(
                image,
                replace(after, due_at=min(look_at, after.due_at or look_at)),  # guard: day-dead-mover-due-soon
                fence=("version",),  # guard: day-move-version-fence
            )
        except Fenced:
            continue
        if enqueue_in_time(ports, written):
            with bookkeeping("look not spared"), suppress(Fenced):  # else it gets a needless one
                ports.images.change(written, replace(written, due_at=after.due_at), fence=DUE_FENCE)
        ports.audited.add(image_id, "rescheduled")
        return True
    raise Retryable("the image changed under every attempt to move it")
