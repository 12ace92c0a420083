"""The events of a batch: its end, told once, with how its images have ended."""

from __future__ import annotations

from collections.abc import Mapping

from darkroom.domain.bulk.batches import Batch, BatchState
from darkroom.domain.events.event import EventType, PublishedEvent
from darkroom.domain.kernel.paths import batch_path

_OF_ENDS: Mapping[BatchState, EventType] = {
    BatchState.COMPLETED: EventType.BATCH_COMPLETED,
    BatchState.FAILED: EventType.BATCH_FAILED,
    BatchState.CANCELLED: EventType.BATCH_CANCELLED,
}


def event_of_batch(before: Batch | None, after: Batch) -> PublishedEvent | None:
    """What one write of a batch's row has to tell: one event in all, when it ends. `before` is None for a new row, or
    one that an operator has put back."""
    if before is None or before.state.has_ended:  # guard: bulk-end-told-once
        return None
    return ended_event_of(after)


def ended_event_of(batch: Batch) -> PublishedEvent | None:
    """The event of the batch's end, with the id that it was first published with; None before its end."""
    if batch.counts is None or batch.ended_at is None or batch.ended_version is None:
        return None
    images = ("done", "failed", "cancelled", "expired")
    return PublishedEvent(
        type=_OF_ENDS[batch.state],
        subject=batch.batch_id,
        tenant_id=batch.tenant_id,
        sequence=batch.ended_version,
        time=batch.ended_at,
        notify=batch.notify,
        data={
            "id": batch.batch_id,
            "tenant_id": batch.tenant_id,
            "name": batch.name,
            "images": {name: getattr(batch.counts, name) for name in images},
            "links": {"self": batch_path(batch.batch_id)},
        },
    )
