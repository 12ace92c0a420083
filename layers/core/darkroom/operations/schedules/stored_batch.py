"""Reads a batch, and once more before it counts as unreadable."""

from __future__ import annotations

from darkroom.domain.schedules.hold import Batch, UnreadableBatch, read_stored_batch
from darkroom.ports.schedules import Holds


def stored_batch(holds: Holds, key: str) -> Batch | None:
    """The batch that is stored under `key`, or None. Raises UnreadableBatch if two reads are unreadable: a single one
    may be damaged, and the error ends the batch's execution."""

    def read() -> Batch | None:
        dumped = holds.get(key)
        return None if dumped is None else read_stored_batch(key, dumped)

    try:
        return read()
    except UnreadableBatch:
        return read()  # guard: release-batch-read-twice
