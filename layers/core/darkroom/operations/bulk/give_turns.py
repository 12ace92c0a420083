"""Begins as many waiting images of a batch as its parallelism leaves room for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from darkroom.domain.bulk.batches import Batch
from darkroom.domain.bulk.members import MOST_CHANGES, Change, Member, MemberState
from darkroom.domain.images.image import Image, Status
from darkroom.domain.images.transitions import begin_turn
from darkroom.operations.images.enqueue import EnqueuePorts, enqueue
from darkroom.ports.bulk import Batches
from darkroom.ports.kernel import Fenced

_TRIES = 5
"""Others may count, or give the same turns, between reading and writing; not five in a row."""


@dataclass(frozen=True, kw_only=True)
class GiveTurnsPorts(EnqueuePorts):
    """What giving turns needs besides the ports of sending messages."""

    batches: Batches


def give_turns(ports: GiveTurnsPorts, batch: Batch) -> int:
    """Gives turns until there is no more room, or nothing waits; returns how many. The batch's items come first, so
    that no more images are begun than it allows; then each row, and its message. What a crash leaves between them is
    found by a look at the batch, or by the sweeper. Raises Retryable."""
    if batch.parallelism is None or batch.stops is not None or batch.state.has_ended:
        return 0
    given = tries = 0
    while tries < _TRIES:
        room = batch.parallelism - ports.batches.sums(batch.batch_id).counts.working
        waiting = ports.batches.waiting(batch.batch_id, min(room, MOST_CHANGES)) if room > 0 else ()
        if not waiting:
            break
        turns = [Change(member, replace(member, state=MemberState.WORKING)) for member in waiting]
        is_counted = ports.batches.count(
            batch,
            turns,
            now=ports.clock(),
            most_working=batch.parallelism,  # guard: bulk-turns-within-parallelism
        )
        if not is_counted:
            tries += 1
            continue
        begin_all(ports, waiting)
        given += len(turns)
    return given


def begin_all(ports: GiveTurnsPorts, members: Sequence[Member]) -> None:
    """Begins those of the images, at most 100, that still await their turn."""
    rows = ports.images.get_all([member.image_id for member in members])
    for member in members:
        row = rows.get(member.image_id)
        if isinstance(row, Image):
            begin(ports, member, row)


def begin(ports: GiveTurnsPorts, member: Member, image: Image) -> None:
    """Begins the image, or the work beside it, if that awaits its turn: its row, then its message."""
    current: Image | None = image
    for _ in range(_TRIES):
        if current is None or not member.has_turn_ahead(current) or current.status is not Status.PENDING:
            return
        try:
            written = ports.images.change(
                current,
                begin_turn(current, now=ports.clock()),
                fence=("version",),  # guard: bulk-turn-begun-once
            )
        except Fenced as lost:
            current = lost.current
            continue
        enqueue(ports, written)
        return
