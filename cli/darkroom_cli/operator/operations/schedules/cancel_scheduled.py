"""Deletes one of many scheduled images, so that deleting all can be interrupted anywhere and started again."""

from __future__ import annotations

from dataclasses import dataclass

from darkroom.domain.images.transitions import delete
from darkroom.domain.kernel.errors import Retryable
from darkroom.domain.kernel.instants import Milliseconds
from darkroom.ports.images import Images
from darkroom.ports.kernel import Clock, Fenced
from darkroom_cli.operator.operations.kernel.audit_trail import AuditedAction
from darkroom_cli.operator.operations.schedules.list_scheduled import ScheduledSelection

REMOVALS_PER_SECOND = 10
"""How many images' objects per second the sweeper is asked to remove. It looks at each image twice, and keeps up with
800 deletions a minute on a bad day of AWS and 1,000 on a usual one (make bench-sweeper): the rest is left to clients'
own deletions."""

_TRIES = 5
"""The sweeper or a client may come between reading the row and writing it; not five times in a row."""


@dataclass(frozen=True, kw_only=True)
class CancelScheduledPorts:
    """What deleting needs; `audited` is the operator's action, of which each image is a part."""

    images: Images
    clock: Clock
    audited: AuditedAction


def cancel_scheduled(
    ports: CancelScheduledPorts, image_id: str, selection: ScheduledSelection, *, remove_at: Milliseconds
) -> bool:
    """Makes the image a tombstone, if it still belongs to the selection; returns whether it did. An image that a worker
    has meanwhile begun or finished is left alone.

    Its original is due to be removed at `remove_at`, or at once if that has passed. Raises Retryable if the table
    cannot answer or the row keeps changing.
    """
    for _ in range(_TRIES):
        image = ports.images.get(image_id)
        if image is None or not selection.covers(image):  # guard: day-cancel-selection-rechecked
            return False
        ports.audited.begin()  # guard: audit-cancel-announced
        after = delete(image, now=ports.clock(), remove_at=remove_at)
        try:
            ports.images.change(image, after, fence=("version",))  # guard: day-cancel-version-fence
        except Fenced:
            continue
        ports.audited.add(image_id, "deleted")
        return True
    raise Retryable("the image changed under every attempt to delete it")
