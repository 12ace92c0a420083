"""The batches of all tenants that have not ended, for the operators' page."""

from __future__ import annotations

from itertools import islice
from typing import Any

from darkroom.domain.kernel.instants import Milliseconds
from darkroom.http.bulk.batches import batch_document
from darkroom.operations.bulk.manage_batches import ReadBatch
from darkroom.ports.kernel import UnreadableRow
from darkroom_cli.stack.operators import Stack

MOST_BATCHES = 100
"""The most batches of a look, each of which costs two reads."""

_WHENEVER: Milliseconds = 1 << 48
"""A time after every other: each batch that has not ended is due for a look at some time."""


def in_work(stack: Stack) -> dict[str, Any]:
    """The batches that have not ended, first those that are looked at next; the ids of those that a newer version
    wrote; and whether these are all."""
    documents: list[Any] = []
    unreadable: list[str] = []
    with stack.explained():
        rows = stack.batch_rows.due(_WHENEVER, 2 * MOST_BATCHES + 1)
        due = list(islice((row for row in rows if row.part == "batch"), MOST_BATCHES + 1))
        for entry in due[:MOST_BATCHES]:
            try:
                batch = stack.batch_rows.get(entry.place)
            except UnreadableRow:
                unreadable.append(entry.place)
                continue
            if batch is not None and not batch.state.has_ended:
                read = ReadBatch(batch=batch, sums=stack.batch_rows.sums(batch.batch_id))
                documents.append({"tenant": batch.tenant_id, **batch_document(read, now=stack.clock())})
    return {"batches": documents, "unreadable": unreadable, "is_all": len(due) <= MOST_BATCHES}
