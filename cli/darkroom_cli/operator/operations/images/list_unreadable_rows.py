"""Finds the rows that this version cannot read: of all webhooks, and of all unfinished images by the due index or of
the whole table."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import batched, chain

from darkroom.domain.images.image import DUE_PARTITIONS, Image
from darkroom.ports.kernel import UnreadableRow
from darkroom.ports.webhooks import Endpoints
from darkroom_cli.operator.ports import ImageRegistry

ROWS_AT_ONCE = 100
"""Rows that are read at once: as many as BatchGetItem takes."""

_EVER, _ALL = 10**15, 10**9
"""An instant after all others, and more entries than an index has."""


@dataclass(frozen=True, kw_only=True)
class Survey:
    """How many rows were read, and the unreadable ones, ordered by their next look."""

    rows: int
    unreadable: tuple[UnreadableRow, ...]


@dataclass(frozen=True, kw_only=True)
class ListUnreadableRowsPorts:
    """What the survey needs."""

    images: ImageRegistry
    endpoints: Endpoints


def list_unreadable_rows(
    ports: ListUnreadableRowsPorts,
    *,
    whole_table: bool,
    on_read: Callable[[int, int], None] = lambda rows, unreadable: None,
) -> Survey:
    """Reads the rows of all webhooks, and of all images that are unfinished or owe something, each of which is in the
    due index; or, with `whole_table`, every image's row.

    `on_read` is called with how many were read and how many of them are unreadable. Raises Retryable if the table
    cannot answer.
    """
    rows, unreadable = 0, list[UnreadableRow]()
    images = ports.images.everything() if whole_table else _unfinished(ports)
    for chunk in batched(chain(ports.endpoints.everything(), images), ROWS_AT_ONCE, strict=False):
        rows += len(chunk)
        unreadable += [row for row in chunk if isinstance(row, UnreadableRow)]
        on_read(rows, len(unreadable))
    unreadable.sort(key=lambda row: (_EVER if row.due_at is None else row.due_at, row.row_id))
    return Survey(rows=rows, unreadable=tuple(unreadable))


def _unfinished(ports: ListUnreadableRowsPorts) -> Iterator[Image | UnreadableRow]:
    due = chain.from_iterable(ports.images.due(shard, _EVER, _ALL) for shard in chain(*DUE_PARTITIONS.values()))
    for chunk in batched(due, ROWS_AT_ONCE, strict=False):
        yield from ports.images.get_all([entry.image_id for entry in chunk]).values()
