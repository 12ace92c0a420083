"""Lists what waits for its time, counted from the waiting index alone: only scheduled images have entries in its
future.

An image that is not scheduled has been waiting since a past moment; a scheduled one counts from its `process_at`. So a
key in the future is all that a count needs, and no row is read for it.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import batched, islice

from darkroom.domain.images.image import DUE_SHARD_NAMES, Image, Status, waiting_shards_of
from darkroom.domain.kernel.instants import Milliseconds
from darkroom.ports.images import Images, Waiting
from darkroom.ports.kernel import Clock, UnreadableRow
from darkroom_cli.operator.domain.periods import Period

CHUNK = 100
"""Rows that are read at once: as many as BatchGetItem takes."""

PAGE_LIMIT = 5000
"""The most keys that one request reads, of 75 bytes each: about 46 read units, and a tenth of a second."""


@dataclass(frozen=True, kw_only=True)
class ScheduledSelection:
    """Which scheduled images are selected: those in these lanes with a time in `period`; of one tenant, if one is
    named; only those of `image_ids`, if there are any."""

    period: Period
    lanes: tuple[str, ...]
    tenant_id: str | None = None
    image_ids: frozenset[str] | None = None

    def names(self, image_id: str) -> bool:
        """Whether the image may be a selected one, as far as its id says."""
        return self.image_ids is None or image_id in self.image_ids  # guard: day-named-images-only

    def covers(self, image: Image | UnreadableRow | None) -> bool:
        """Whether the row, if it exists and is readable, is a selected image that no worker has begun."""
        return (
            isinstance(image, Image)
            and self.names(image.image_id)
            and image.status is Status.SCHEDULED
            and image.process_at is not None
            and image.process_at in self.period
            and image.lane in self.lanes
            and self.tenant_id in (None, image.tenant_id)
        )


@dataclass(kw_only=True)
class Stretch:
    """What waits in one period: how many images of which lane, and the times of the first and the last of them."""

    period: Period
    first_at: Milliseconds
    last_at: Milliseconds
    images_by_lane: Counter[str] = field(default_factory=Counter)

    @property
    def images(self) -> int:
        """The number of images in all lanes."""
        return self.images_by_lane.total()

    def add(self, lane: str, at: Milliseconds) -> None:
        """Counts one more image, no earlier than those before."""
        self.images_by_lane[lane] += 1
        self.last_at = at


@dataclass(frozen=True, kw_only=True)
class ScheduledListing:
    """What waits: the stretches with images, in order of time, and the first of the rows.

    `due` counts unfinished images of the selection whose time has come: they are in no stretch, and unless rows were
    read, most may have been begun. `read_until` is how far the listing is complete, if the limit came before the end;
    None if it is all. `unreadable` counts rows that were read but are unreadable; they are not included in the counts.
    """

    stretches: tuple[Stretch, ...]
    due: int
    rows: tuple[Image, ...]
    read_until: Milliseconds | None
    unreadable: int = 0

    @property
    def images(self) -> int:
        """The number of waiting images in all stretches."""
        return sum(stretch.images for stretch in self.stretches)


@dataclass(frozen=True, kw_only=True)
class ListScheduledPorts:
    """What listing scheduled images needs."""

    images: Images
    clock: Clock


def list_scheduled(
    ports: ListScheduledPorts,
    selection: ScheduledSelection,
    *,
    cut: Callable[[Milliseconds], Period],
    limit: int,
    rows: int = 0,
    on_read: Callable[[int], None] = lambda read: None,
) -> ScheduledListing:
    """Counts the selection by the periods that `cut` returns for their instants, reading its first `limit` keys.

    The index is seconds behind its table. Rows are read (consistently) only for the first `rows` images, and for all if
    the selection names a tenant, whom no key reveals: then only images that are still scheduled count. `on_read` is
    called with how many keys have been read. Raises Retryable if the table cannot answer.
    """
    now = ports.clock()
    keys = keys_in_order(ports, selection, page_size=limit // len(DUE_SHARD_NAMES))
    stretches: list[Stretch] = []
    images: list[Image] = []
    read = due = unreadable = 0
    for chunk in batched(islice(keys, limit), CHUNK, strict=False):
        reads_rows = selection.tenant_id is not None or len(images) < rows
        known = ports.images.get_all([key.image_id for key, _ in chunk]) if reads_rows else {}
        for (at, image_id), lane in chunk:
            if reads_rows:
                row = known.get(image_id)
                # A rescheduled image is listed at both of its times until the index has caught up.
                if isinstance(row, UnreadableRow):
                    unreadable += 1
                    continue
                if row is None or not selection.covers(row) or row.process_at != at:  # guard: day-row-over-index
                    continue
                images.append(row)
            if at <= now:
                due += 1
                continue
            if not stretches or at not in stretches[-1].period:
                stretches.append(Stretch(period=cut(at), first_at=at, last_at=at))
            stretches[-1].add(lane, at)
        read += len(chunk)
        on_read(read)
    following = next(keys, None)
    return ScheduledListing(
        stretches=tuple(stretches),
        due=due,
        unreadable=unreadable,
        rows=tuple(images[:rows]),
        read_until=None if following is None else following[0].since,
    )


def keys_in_order(
    ports: ListScheduledPorts, selection: ScheduledSelection, *, page_size: int
) -> Iterator[tuple[Waiting, str]]:
    """The keys of the waiting index in the selection's period, each with its lane, in order of time; up to `page_size`
    of each partition at a time, and at least a hundred."""

    def of_partition(lane: str, shard: str) -> Iterator[tuple[Waiting, str]]:
        keys = ports.images.waiting(
            lane,
            shard,
            since=selection.period.starts_at,
            until=selection.period.ends_at,
            page_size=min(max(page_size, CHUNK), PAGE_LIMIT),
        )
        return ((key, lane) for key in keys if selection.names(key.image_id))

    return heapq.merge(*(of_partition(lane, shard) for lane in selection.lanes for shard in waiting_shards_of(lane)))


def ids_in_order(ports: ListScheduledPorts, selection: ScheduledSelection) -> Iterator[str]:
    """The selection's ids in order of time, as the index has them, read as the caller iterates. A caller that acts on
    one must read its row first: its time may have come, or have changed."""
    keys = keys_in_order(ports, selection, page_size=PAGE_LIMIT)
    for chunk in batched(keys, CHUNK, strict=False):
        ids = [key.image_id for key, _ in chunk]
        if selection.tenant_id is not None:
            rows = ports.images.get_all(ids)
            ids = [image_id for image_id in ids if selection.covers(rows.get(image_id))]
        yield from ids
