"""Counts how far the images of batches are, from the writes of their rows: each image once, however often a write
comes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import batched
from typing import NamedTuple

from darkroom.domain.bulk.batches import Batch, BatchState, Stop, is_batch_id, stop, stops_by
from darkroom.domain.bulk.members import MOST_CHANGES, Change, Member, after_write, members_of
from darkroom.domain.images.image import Image
from darkroom.domain.kernel.errors import Retryable
from darkroom.operations.bulk.give_turns import give_turns
from darkroom.operations.bulk.settle_batch import SettleBatchPorts, change_batch, settle_batch
from darkroom.ports.kernel import UnreadableRow

_TRIES = 5
"""Others may count the same images between reading and writing them; not five times in a row."""


@dataclass(frozen=True, kw_only=True)
class Counting:
    """How many members of batches became something else, how many batches have ended, and which writes were not
    counted, by index: each with what went wrong."""

    counted: int = 0
    ended: int = 0
    failures: Mapping[int, Exception] = field(default_factory=dict)


def count_batches(ports: SettleBatchPorts, rows: Sequence[Image | Batch]) -> Counting:
    """Counts the images among these rows, each as a write has left it, and does what follows, also for the batches
    among them: turns for images that wait, a stop, an end. If the table cannot answer, or a row of it is unreadable,
    the writes of that batch fail; if they come again, what was counted is not counted again, and what follows is done
    then."""
    failures: dict[int, Exception] = {}
    written: defaultdict[str, list[_Write]] = defaultdict(list)
    for place, row in enumerate(rows):
        if isinstance(row, Batch):
            written[row.batch_id].append(_Write(place, row.tenant_id))
            continue
        for member in members_of(row):
            if is_batch_id(member.batch_id):
                written[member.batch_id].append(_Write(place, row.tenant_id, member, row))
    counted = ended = 0
    for batch_id, writes in written.items():
        try:
            batch = ports.batches.get(batch_id)
            if batch is None or batch.state.has_ended:
                continue
            own = [write for write in writes if write.image is not None and write.tenant_id == batch.tenant_id]
            for some in batched(own, MOST_CHANGES, strict=False):
                counted += _count(ports, batch, some, failures)
            has_changed = any(write.image is None for write in writes)
            ended += _follow_up(ports, batch, is_stopped=has_changed and batch.stops is not None)
        except Exception as error:  # guard: bulk-batch-counted-alone
            failures |= dict.fromkeys((write.place for write in writes), error)
    return Counting(counted=counted, ended=ended, failures=failures)


class _Write(NamedTuple):
    """A write of a batch's own row, or of an image, which is that member of it if nothing is known yet."""

    place: int
    tenant_id: str
    member: Member | None = None
    image: Image | None = None


def _count(ports: SettleBatchPorts, batch: Batch, writes: Sequence[_Write], failures: dict[int, Exception]) -> int:
    """Counts what is new of at most MOST_CHANGES writes; returns how many members became something else."""
    told = [(write.place, write.member, write.image) for write in writes if write.member and write.image]
    told.sort(key=lambda write: write[2].version)
    for _ in range(_TRIES):
        known = ports.batches.members(batch.batch_id, list({member.name for _, member, _ in told}))
        changes: dict[str, Change] = {}
        for place, new, image in told:
            was = known.get(new.name)
            if isinstance(was, UnreadableRow):
                failures[place] = was
                continue
            latest = changes[new.name].after if new.name in changes else was or new
            assert latest is not None  # noqa: S101 -- no write takes an image out of its batch
            after = after_write(latest, image)
            if after is not None:
                changes[new.name] = Change(was, after)
        if not changes:
            return 0
        if ports.batches.count(batch, list(changes.values()), now=ports.clock()):
            return len(changes)
    raise Retryable("the images of a batch changed under every attempt to count them")


def _follow_up(ports: SettleBatchPorts, batch: Batch, *, is_stopped: bool) -> int:
    """Does what the counts ask for now, however they came about; returns how many batches have ended."""
    counts = ports.batches.sums(batch.batch_id).counts
    if stops_by(batch, counts):
        batch = change_batch(ports, batch, lambda row: stop(row, Stop.FAILURE, now=ports.clock()))
    give_turns(ports, batch)
    is_over = counts.ended == counts.images
    if batch.state is not BatchState.CLOSED or not (is_over or is_stopped):
        return 0
    return int(settle_batch(ports, batch.batch_id) == "ended")  # a large one is left to the sweep
