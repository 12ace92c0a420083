"""Removes originals without a row, but never one that a row refers to, whenever that row is written.

Age alone is not enough. A request with an Idempotency-Key may be repeated days later: it finds the original that the
first one stored, adopts it, and writes the row that pins its version. Therefore:

1. A delete marker is put on each orphan. From then on a repetition does not find it: its own bytes become a new version
   (`If-None-Match` holds if "the current object version is a delete marker",
   https://docs.aws.amazon.com/AmazonS3/latest/userguide/conditional-writes.html). Nothing is lost by that: rows pin
   versions, and a version can be read whether or not it is under a marker.
2. Two minutes pass. A request that found the orphan before the marker has written the row by then or never will.
3. The rows are read again, consistently. If there is still no row, the listed versions are removed, and no others: a
   version that has come since belongs to a request. If there is a row now, the marker is removed instead.

So a row pins either a version that came after the first look, which is never touched, or one that was found before the
marker, and then step 3 sees the row. Versions are removed before markers: otherwise they could be found in between. A
crash anywhere leaves hidden orphans; a repetition finds them and continues.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import batched

from darkroom.domain.kernel.errors import demand_none
from darkroom_cli.operator.operations.images.list_orphans import ROWS_AT_ONCE, Look, Orphan
from darkroom_cli.operator.operations.kernel.audit_trail import AuditedAction, Trail
from darkroom_cli.operator.operations.kernel.retry_transient import TransientRetry
from darkroom_cli.operator.ports import ImageRegistry, OriginalVersions

HIDDEN_SECONDS = 120
"""How long orphans are hidden before they are checked again: twice the timeout of any function that stores originals,
and four times the gateway's 30 seconds."""

MOST_WITHOUT_ROW, MOST_SHARE_WITHOUT_ROW = 100, 0.05
"""If both limits are exceeded, the originals without a row do not come from dying requests: the table has lost rows."""


class TableSeemsLost(Exception):
    """So many originals have no row that it is the rows that are missing. Nothing was changed."""


@dataclass(frozen=True, kw_only=True)
class Removal:
    """What became of the orphans: how many are gone with how many bytes, and how many have a row now and stay. Not
    `complete` if the operator stopped it early; then the rest is at most hidden."""

    removed: int
    size_bytes: int
    vouched_for: int
    complete: bool


def table_seems_lost(look: Look) -> bool:
    """Whether more originals have no row than dying requests leave: over a hundred and over a twentieth, or all."""
    if look.without_row == look.originals:
        return look.originals > 0
    return look.without_row > max(MOST_WITHOUT_ROW, MOST_SHARE_WITHOUT_ROW * look.originals)


@dataclass(frozen=True, kw_only=True)
class RemoveOrphansPorts:
    """What removing orphans needs."""

    images: ImageRegistry
    originals: OriginalVersions
    patience: TransientRetry
    audit: Trail


def remove_orphans(
    ports: RemoveOrphansPorts,
    look: Look,
    *,
    table_is_whole: bool,
    on_progress: Callable[[str, int, int], None] = lambda doing, done, total: None,
) -> Removal:
    """Removes the orphans that `look` holds, with all their versions, except those that have got a row.

    `on_progress` is called with the step, how much of it is done, and of how much. Raises TableSeemsLost, unless the
    operator says that `table_is_whole`, and Retryable if a store cannot answer for minutes: what was removed stays
    removed, and a repetition continues from there.
    """
    if table_seems_lost(look) and not table_is_whole:  # guard: orphans-lost-rows-share
        raise TableSeemsLost
    with ports.audit.action("remove_orphans", table_is_whole=table_is_whole, orphans=len(look.held)) as audited:
        removal = _remove(ports, look, audited, on_progress=on_progress)
        if not removal.complete:
            audited.interrupt()
    return removal


def _remove(
    ports: RemoveOrphansPorts, look: Look, audited: AuditedAction, *, on_progress: Callable[[str, int, int], None]
) -> Removal:
    removed = size_bytes = vouched_for = 0

    def removal(*, complete: bool) -> Removal:
        return Removal(removed=removed, size_bytes=size_bytes, vouched_for=vouched_for, complete=complete)

    markers: dict[str, str] = {}
    for number, chunk in enumerate(batched(look.held, ROWS_AT_ONCE, strict=False), start=1):
        if ports.patience.stop():
            return removal(complete=False)
        visible = [orphan.image_id for orphan in chunk if not orphan.is_hidden]
        markers |= ports.patience(ports.originals.hide, visible)  # guard: orphans-hidden-first
        on_progress("hiding", min(number * ROWS_AT_ONCE, len(look.held)), len(look.held))

    for waited_seconds in range(HIDDEN_SECONDS if look.held else 0):  # guard: orphans-wait-while-hidden
        if ports.patience.stop():
            return removal(complete=False)
        on_progress("waiting", waited_seconds, HIDDEN_SECONDS)
        ports.patience.pause(1)

    for chunk in batched(look.held, ROWS_AT_ONCE, strict=False):
        if ports.patience.stop():
            return removal(complete=False)
        known = ports.patience(ports.images.known, [orphan.image_id for orphan in chunk])
        gone = [orphan for orphan in chunk if orphan.image_id not in known]  # guard: orphans-second-look
        doomed = [(orphan.image_id, version.version_id) for orphan in gone for version in orphan.versions]
        for group in (doomed, _markers_on(chunk, markers)):  # guard: orphans-versions-before-markers
            for some in batched(group, 1000, strict=False):
                ports.patience(_remove_versions, ports, some)
        for orphan in gone:
            audited.add(orphan.image_id, "removed")
        removed += len(gone)
        size_bytes += sum(orphan.size_bytes for orphan in gone)
        vouched_for += len(chunk) - len(gone)
        on_progress("removing", removed + vouched_for, len(look.held))
    return removal(complete=True)


def _remove_versions(ports: RemoveOrphansPorts, versions: Sequence[tuple[str, str]]) -> None:
    demand_none(ports.originals.remove(versions))


def _markers_on(orphans: tuple[Orphan, ...], put: dict[str, str]) -> list[tuple[str, str]]:
    versions = [(orphan.image_id, marker.version_id) for orphan in orphans for marker in orphan.markers]
    return versions + [(orphan.image_id, put[orphan.image_id]) for orphan in orphans if orphan.image_id in put]
