"""Lists the images that are unfinished for longer than their lane's service level."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import batched

from darkroom.domain.images.image import Image, waiting_shards_of
from darkroom.domain.kernel.lanes import Lane
from darkroom.ports.images import Images
from darkroom.ports.kernel import Clock

_PAGE = 100
"""How many rows one look reads: DynamoDB's limit for a batch."""


@dataclass(frozen=True, kw_only=True)
class ListLateImagesPorts:
    """What looking for them needs, and the lanes to look in."""

    images: Images
    clock: Clock
    service: Mapping[str, Lane]


def list_late_images(ports: ListLateImagesPorts) -> Iterator[Image]:
    """Those that have waited longest first, read as the caller iterates; rows that this version cannot read are left
    out. Raises Retryable if the table cannot answer."""
    now = ports.clock()
    late_since = {name: now - lane.sla_seconds * 1000 for name, lane in ports.service.items()}
    shards = [
        ports.images.waiting(lane, shard, since=0, until=until, page_size=_PAGE)
        for lane, until in late_since.items()
        for shard in waiting_shards_of(lane)
    ]
    for entries in batched(heapq.merge(*shards), _PAGE, strict=False):
        rows = ports.images.get_all([entry.image_id for entry in entries])
        for entry in entries:
            row = rows.get(entry.image_id)
            # The index is seconds behind: it may list what has ended or waits anew since.
            # guard: ls-late-current-waits-only
            if isinstance(row, Image) and row.waiting_since == entry.since and not row.status.is_terminal:
                yield row
