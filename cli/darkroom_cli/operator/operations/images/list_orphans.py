"""Finds originals without a row: a request stored them before it died, and was not repeated.

Only originals can become orphans. `submit_image` stores one and then writes the row; everything else is stored for an
existing row: `accept_upload` and workers read theirs first, and a row is only removed as a tombstone, 60 days after all
objects under it were removed. An original belongs to one image, whose id is its key, so no other row can mean it; and
whatever the row of that id says (deleted, expired, another version of the object), the original is no orphan.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import batched, groupby

from darkroom.domain.images.stored_by import StoredVersion, is_orphan
from darkroom.domain.kernel.instants import Milliseconds
from darkroom.ports.kernel import Clock
from darkroom_cli.operator.operations.kernel.retry_transient import TransientRetry
from darkroom_cli.operator.ports import ImageRegistry, OriginalVersions

LEAST_AGE_SECONDS = 3600
"""The age from which the row of an original is no longer to be expected. The request that stored it writes the row
within its function's timeout, half a minute; and S3's clock and the operator's differ by at most 15 minutes, or S3
would refuse the operator's requests (RequestTimeTooSkewed)."""

HELD = 100_000
"""How many orphans one look keeps in memory, about 100 MB; all of them are counted."""

TOLD_KEYS = 20

ROWS_AT_ONCE = 100
"""Rows that are requested at once: as many as BatchGetItem takes."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Orphan:
    """An original without a row, with all its versions and delete markers."""

    image_id: str
    versions: tuple[StoredVersion, ...]
    markers: tuple[StoredVersion, ...]

    @property
    def size_bytes(self) -> int:
        """The size of all versions together."""
        return sum(version.size_bytes for version in self.versions)

    @property
    def stored_at(self) -> Milliseconds:
        """When the first version was stored."""
        return min(version.stored_at for version in self.versions)

    @property
    def is_hidden(self) -> bool:
        """Whether it has a delete marker: a removal was begun, or somebody deleted it by hand."""
        return any(marker.is_latest for marker in self.markers)


@dataclass(frozen=True, kw_only=True)
class Look:
    """What the originals' bucket holds.

    `originals` counts those that were looked at, and `young` those without a row that are too young to be orphans.
    `orphans` and `size_bytes` cover all orphans, `held` the first of them by id. `foreign` counts objects whose keys
    are not an original's; `foreign_keys` are the first of these.
    """

    originals: int
    orphans: int
    size_bytes: int
    oldest_at: Milliseconds | None
    young: int
    held: tuple[Orphan, ...]
    foreign: int
    foreign_keys: tuple[str, ...]

    @property
    def without_row(self) -> int:
        """How many originals have no row, of any age."""
        return self.orphans + self.young


@dataclass(frozen=True, kw_only=True)
class ListOrphansPorts:
    """What looking for orphans needs."""

    images: ImageRegistry
    originals: OriginalVersions
    clock: Clock
    patience: TransientRetry


def list_orphans(
    ports: ListOrphansPorts,
    *,
    older_than_seconds: float,
    on_look: Callable[[int, int], None] = lambda looked_at, without_row: None,
) -> Look:
    """Reads the whole originals' bucket, and checks for each image's original whether it has a row.

    An orphan is older than `older_than_seconds` in every version. `on_look` is called with how many originals were
    looked at, and how many of them have no row. Raises ValueError for an age under `LEAST_AGE_SECONDS`, and Retryable
    if a store cannot answer for minutes.
    """
    if older_than_seconds < LEAST_AGE_SECONDS:  # guard: orphans-minimum-age
        raise ValueError(f"an original's row may be on its way for {LEAST_AGE_SECONDS} seconds")
    stored_before = ports.clock() - int(older_than_seconds * 1000)
    looked_at = orphans = size_bytes = young = 0
    oldest_at: Milliseconds | None = None
    held: list[Orphan] = []
    foreign = _Foreign()
    for chunk in batched(_of_images(ports, foreign), ROWS_AT_ONCE, strict=False):
        known = ports.patience(ports.images.known, [original.image_id for original in chunk])
        for original in chunk:
            if original.image_id in known:
                continue
            if not is_orphan(original.versions, stored_before):
                young += 1
                continue
            orphans += 1
            size_bytes += original.size_bytes
            oldest_at = min(original.stored_at, oldest_at or original.stored_at)
            if len(held) < HELD:
                held.append(original)
        looked_at += len(chunk)
        on_look(looked_at, orphans + young)
    return Look(
        originals=looked_at,
        orphans=orphans,
        size_bytes=size_bytes,
        oldest_at=oldest_at,
        young=young,
        held=tuple(held),
        foreign=foreign.number,
        foreign_keys=tuple(foreign.keys),
    )


@dataclass(kw_only=True)
class _Foreign:
    """How many objects have keys that are not an original's, and the first of these keys."""

    number: int = 0
    keys: list[str] = field(default_factory=list)

    def count(self, key: str) -> None:
        """Counts an object."""
        self.number += 1
        if len(self.keys) < TOLD_KEYS:
            self.keys.append(key)


def _of_images(ports: ListOrphansPorts, foreign: _Foreign) -> Iterator[Orphan]:
    """Each original as the orphan that it would be; what is none is counted in `foreign`."""
    for versions_of_key in _objects(ports):
        versions = tuple(version for version in versions_of_key if not version.is_marker)
        if not versions:
            continue  # a delete marker on nothing takes no space, and a lifecycle rule removes it
        image_id = versions[0].image_id
        if image_id is None:
            foreign.count(versions[0].key)
            continue
        yield Orphan(
            image_id=image_id,
            versions=versions,
            markers=tuple(version for version in versions_of_key if version.is_marker),
        )


def _objects(ports: ListOrphansPorts) -> Iterator[list[StoredVersion]]:
    """Each object with all its versions, which may span several pages."""
    after: tuple[str, str] | None = None
    begun: list[StoredVersion] = []
    while True:
        page = ports.patience(ports.originals.page, after)
        for key, versions in groupby(page.versions, key=lambda version: version.key):
            if begun and begun[0].key != key:
                yield begun
                begun = []
            begun += versions
        after = page.next
        if after is None:
            break
    if begun:
        yield begun
