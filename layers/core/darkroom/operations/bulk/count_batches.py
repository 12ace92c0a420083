"""Counts how far the images of batches are, from the writes of their rows: each image once, however often a write
comes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import batched

from darkroom.domain.bulk.batches import Batch, BatchState, Stop, is_batch_id, stop, stops_by
from darkroom.domain.bulk.members import MOST_CHANGES, Change, Member, after_write
from darkroom.domain.images.image import Image
from darkroom.domain.kernel.errors import Retryable
from darkroom.operations.bulk.give_turns import give_turns
from darkroom.operations.bulk.settle_batch import SettleBatchPorts, change_batch, settle_batch
from darkroom.ports.kernel import UnreadableRow

_TRIES = 5
"""Others may count the same images between reading and writing them; not five times in a row."""


@dataclass(frozen=True, kw_only=True)
class Counting:
    """How many images of batches became something else, how many batches have ended, and which writes were not counted,
    by index: each with what went wrong."""

    counted: int = 0
    ended: int = 0
    failures: Mapping[int, Exception] = field(default_factory=dict)


def count_batches(ports: SettleBatchPorts, rows: Sequence[Image | Batch]) -> Counting:
    """Counts the images among these rows, each as a write has left it, and does what follows, also for the batches
    among them: turns for images that wait, a stop, an end. If the table cannot answer, or a row of it is unreadable,
    the writes of that batch fail; if they come again, what was counted is not counted again, and what follows is done
    then."""
    failures: dict[int, Exception] = {}
    written: defaultdict[str, dict[int, Image | Batch]] = defaultdict(dict)
    for place, row in enumerate(rows):
        batch_id = row.batch if isinstance(row, Image) else row.batch_id
        if batch_id is not None and is_batch_id(batch_id):
            written[batch_id][place] = row
    counted = ended = 0
    for batch_id, writes in written.items():
        try:
            batch = ports.batches.get(batch_id)
            if batch is None or batch.state.has_ended:
                continue
            own = {
                place: row
                for place, row in writes.items()
                if isinstance(row, Image) and row.tenant_id == batch.tenant_id
            }
            for some in batched(own.items(), MOST_CHANGES, strict=False):
                counted += _count(ports, batch, dict(some), failures)
            has_changed = any(isinstance(row, Batch) for row in writes.values())
            ended += _follow_up(ports, batch, is_stopped=has_changed and batch.stops is not None)
        except Exception as error:  # guard: bulk-batch-counted-alone
            failures |= dict.fromkeys(writes, error)
    return Counting(counted=counted, ended=ended, failures=failures)


def _count(ports: SettleBatchPorts, batch: Batch, writes: Mapping[int, Image], failures: dict[int, Exception]) -> int:
    """Counts what is new of at most MOST_CHANGES writes; returns how many images became something else."""
    for _ in range(_TRIES):
        known = ports.batches.members(batch.batch_id, list({image.image_id for image in writes.values()}))
        changes: dict[str, Change] = {}
        for place, image in sorted(writes.items(), key=lambda item: item[1].version):
            was = known.get(image.image_id)
            if isinstance(was, UnreadableRow):
                failures[place] = was
                continue
            new = Member(batch_id=batch.batch_id, image_id=image.image_id, joined_at=image.created_at)
            latest = changes[image.image_id].after if image.image_id in changes else was or new
            assert latest is not None  # noqa: S101 -- no write takes an image out of its batch
            after = after_write(latest, image)
            if after is not None:
                changes[image.image_id] = Change(was, after)
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
