"""Has an image join a batch before there is a row of it, and says whether it is its turn there."""

from __future__ import annotations

from dataclasses import dataclass

from darkroom.bookkeeping import bookkeeping
from darkroom.domain.bulk.batches import is_batch_id, require_open
from darkroom.domain.bulk.members import Member, MemberState, members_of
from darkroom.domain.images.image import Image
from darkroom.domain.kernel.errors import Rejected
from darkroom.ports.bulk import Batches
from darkroom.ports.kernel import Clock


@dataclass(frozen=True, kw_only=True)
class JoinBatchPorts:
    """What joining needs."""

    batches: Batches
    clock: Clock


def join_batch(ports: JoinBatchPorts, tenant_id: str, batch_id: str, image_id: str, run: int | None = None) -> bool:
    """Notes that the image, or the work beside it for which that run will be, is one of the batch; returns whether it
    awaits its turn there.

    The batch is read again once the note is there: either it was still open then, and whoever ends it finds the note,
    or the image is refused. Raises Rejected (`unknown_batch`, `batch_closed`), and Retryable if the table cannot
    answer: then the note, of which no row ever comes, is dropped by a look at the batch.
    """
    batch = require_open(ports.batches.get(batch_id) if is_batch_id(batch_id) else None, tenant_id)
    note = Member(batch_id=batch_id, image_id=image_id, run=run, joined_at=ports.clock())
    kept = ports.batches.join(note)
    try:
        require_open(ports.batches.get(batch_id), tenant_id)  # guard: bulk-open-once-noted
    except Rejected:
        if kept == note:  # guard: bulk-leaves-own-note
            with bookkeeping("note of a batch's image not removed", image_id=image_id):
                ports.batches.leave(note)
        raise
    return batch.parallelism is not None


def has_turn(ports: JoinBatchPorts, image: Image) -> bool:
    """Whether an image, or work beside it, that awaits its turn may begin: its batch has given it one, or is not there
    to give one. Raises Retryable."""
    awaiting = next((member for member in members_of(image) if member.has_turn_ahead(image)), None)
    batch = None if awaiting is None else ports.batches.get(awaiting.batch_id)
    if awaiting is None or batch is None or batch.state.has_ended:
        return True
    member = ports.batches.members(batch.batch_id, [awaiting.name]).get(awaiting.name)
    return member is None or (isinstance(member, Member) and member.state is MemberState.WORKING)
