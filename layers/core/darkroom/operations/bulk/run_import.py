"""Looks at one import: waits for its manifest, finds what is wrong with its rows, and asks for the images of the
others, each as a request with its URL would."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING

from darkroom.bookkeeping import bookkeeping, report_failure
from darkroom.domain.bulk.batches import Batch, Stop, close, stop
from darkroom.domain.bulk.imports import (
    End,
    Import,
    ImportState,
    ReportPart,
    WaitsFor,
    await_manifest,
    create_images,
    end,
    end_of,
    fail,
    go_on,
    validate,
)
from darkroom.domain.bulk.manifests import (
    MAX_ROW_BYTES,
    MAX_ROWS,
    BadManifest,
    ManifestRow,
    RowProblem,
    WrittenRow,
    begin,
    read_row,
    rows_in,
)
from darkroom.domain.imports.bucket_files import check_registered, is_bucket_url
from darkroom.domain.imports.fetch import UrlOrder
from darkroom.domain.kernel.errors import Rejected, Retryable, TurnedAway
from darkroom.domain.kernel.lanes import FETCH_WORKERS, LANES
from darkroom.domain.kernel.stored import QuotaExceeded
from darkroom.domain.kernel.tenants import TenantState
from darkroom.operations.bulk.settle_batch import SHARE_SECONDS, change_batch
from darkroom.operations.imports.begin_fetch import BeginFetchPorts, Wanted, begin_fetch
from darkroom.ports.bulk import Batches, Imports, Manifests
from darkroom.ports.kernel import Fenced, UnreadableRow
from darkroom.ports.pauses import KnownPauses, nothing_paused
from darkroom.ports.tenants import Tenants

if TYPE_CHECKING:
    from darkroom.operations.bulk.settle_batch import Settled

_READ_BYTES, _CREATED_BYTES = 1 << 20, 1 << 18
"""How much of a manifest is read at once: thousands of rows take a second to validate, and a look creates hundreds."""

_ROWS_BETWEEN = 200
"""After how many validated rows a look may rest: asking for the time takes a tenth of what a row does."""

REPORT_PART_BYTES = 4 << 20
"""How large an object of the report grows."""

FETCH_BACKLOG = FETCH_WORKERS * 60
"""How many images imports leave in the fetch queue: a minute's work if each takes a second, so that it does not run
empty between two sweeps. The queue is fair: other tenants wait for none of them."""

_TRIES = 3
"""How many looks in a row may meet a failure of ours at one row before the row is rejected, so that it stops no
others."""

_FIELDS = {"invalid_url": "url", "idempotency_key_reused": "key", "image_deleted": "key"}


@dataclass(frozen=True, kw_only=True)
class RunImportPorts(BeginFetchPorts):
    """What a look at an import needs besides the ports of a request for an image."""

    batches: Batches
    imports: Imports
    manifests: Manifests
    tenants: Tenants
    pauses: KnownPauses = nothing_paused


class _Wait(Exception):
    """No more images can be asked for now; nothing of what was done is lost."""

    def __init__(self, waits_for: WaitsFor | None) -> None:
        self.waits_for = waits_for


@dataclass
class _Look:
    """A look at the import as `row` has it, until it `rests`: up to which byte and row it has read, what came of the
    rows, and the lines that it adds to the report."""

    row: Import
    rests: Callable[[], bool]
    lines: list[bytes] = field(default_factory=list)
    line_bytes: int = 0

    def __post_init__(self) -> None:
        self.offset, self.number = self.row.offset, self.row.row
        self.valid, self.rejected = self.row.valid, self.row.rejected
        self.created, self.existing = self.row.created, self.row.existing
        self.failures = self.row.failures

    def reject(self, problem: RowProblem) -> None:
        self.rejected += 1
        self.lines.append(problem.line)
        self.line_bytes += len(self.lines[-1])

    def passed(self, written: WrittenRow) -> None:
        self.offset, self.number = written.ends_at, written.number

    @property
    def is_over(self) -> bool:
        return self.line_bytes >= REPORT_PART_BYTES or self.rests()

    @property
    def so_far(self) -> Import:
        return replace(
            self.row,
            offset=self.offset,
            row=self.number,
            valid=self.valid,
            rejected=self.rejected,
            created=self.created,
            existing=self.existing,
            failures=self.failures,
        )


def run_import(ports: RunImportPorts, batch_id: str, *, out_of_time: Callable[[], bool] = lambda: False) -> Settled:
    """Looks at the import: reads on in its manifest for SHARE_SECONDS, or until it is `out_of_time` or must wait.

    What a look did is written by its end, in one fenced write, after what it adds to the report; what a crash cuts
    short is done again, and then finds the images that are there. Raises Retryable if a store cannot answer, and
    UnreadableRow.
    """
    row = ports.imports.get(batch_id)
    if row is None or row.state.has_ended:
        return "gone"
    batch = ports.batches.get(batch_id)
    if (over := end_of(row, batch)) is not None:
        return _end(ports, row, batch, over)
    rests_at = ports.clock() + SHARE_SECONDS * 1000
    look = _Look(row, rests=lambda: out_of_time() or ports.clock() >= rests_at)
    if row.state is ImportState.AWAITING_MANIFEST:
        return _write(ports, row, _find(ports, row))
    ports = _with_registered_buckets(ports, row.tenant_id)
    try:
        after = _validate(ports, look) if row.state is ImportState.VALIDATING else _create(ports, look)
    except BadManifest as error:
        after = fail(look.so_far, "invalid_manifest", str(error), now=ports.clock())
    except Retryable:
        if look.number == row.row:  # guard: bulk-import-look-fails-at-first-row
            raise
        after = go_on(look.so_far, now=ports.clock())
    return _write(ports, row, after, look.lines)


def _with_registered_buckets(ports: RunImportPorts, tenant_id: str) -> RunImportPorts:
    """The ports, with which a file in a bucket may be named, too, if its place is registered for the tenant."""

    @cache
    def places() -> tuple[str, ...]:
        tenant = ports.tenants.tenant(tenant_id)
        return () if tenant is None else tenant.import_from or ()

    def check_url(url: str) -> None:
        if is_bucket_url(url):
            check_registered(url, places())
        else:
            ports.check_url(url)

    return replace(ports, check_url=check_url)


def _end(ports: RunImportPorts, row: Import, batch: Batch | None, over: End) -> Settled:
    """Ends the import, after its batch takes no more images."""

    def closed(current: Batch) -> Batch:
        failed = over.state is ImportState.FAILED
        return stop(current, Stop.FAILURE, now=ports.clock()) if failed else close(current, now=ports.clock())

    if batch is not None:
        change_batch(ports, batch, closed)  # guard: bulk-import-closes-its-batch
    try:
        ports.imports.change(row, end(row, over, now=ports.clock()))
    except Fenced:
        return "later"
    with bookkeeping("manifest not removed", batch_id=row.batch_id):  # the bucket's lifecycle removes it then
        ports.manifests.remove(row.batch_id)
    return "ended"


def _write(ports: RunImportPorts, before: Import, after: Import, lines: Sequence[bytes] = ()) -> Settled:
    """Writes what a look did: the report first, then the row."""
    replaced = None
    if lines:
        after, replaced = _add_to_report(ports, after, b"".join(lines))
    try:
        ports.imports.change(before, after)
    except Fenced:
        return "later"  # another look has done the same
    if replaced is not None:
        with bookkeeping("part of a report not removed", batch_id=after.batch_id):
            ports.manifests.remove(after.batch_id, replaced)
    return "later" if after.due_at is not None and after.due_at > ports.clock() else "goes_on"


def _add_to_report(ports: RunImportPorts, row: Import, lines: bytes) -> tuple[Import, str | None]:
    """Stores the lines as a new object, together with the last one if that is small; returns the row that names it, and
    the name of the one that it replaces. Only what the row names counts, so that no look that is done again, or by two
    at once, leaves a line twice or loses one."""
    *parts, last = row.report or (None,)
    earlier = None
    if last is not None and last.size_bytes < REPORT_PART_BYTES:
        earlier = ports.manifests.report(row.batch_id, last.name)
    if last is not None and earlier is None:
        parts.append(last)
    body = (earlier or b"") + lines
    name = hashlib.sha256(body).hexdigest()[:32]  # guard: bulk-import-report-by-content
    ports.manifests.put_report(row.batch_id, name, body)
    named = tuple(part for part in (*parts, ReportPart(name=name, size_bytes=len(body))) if part is not None)
    return replace(row, report=named), None if last is None or earlier is None else last.name


def _find(ports: RunImportPorts, row: Import) -> Import:
    stored, now = ports.manifests.find(row.batch_id), ports.clock()
    return await_manifest(row, now=now) if stored is None else validate(row, *stored, now=now)


def _rows(ports: RunImportPorts, row: Import, offset: int, size_bytes: int) -> Iterator[WrittenRow]:
    """The rows from byte `offset` on, in portions of so many bytes."""
    number = row.row
    while offset < row.size_bytes:
        portion = _portion(ports, row, offset, size_bytes)
        is_last, last = offset + len(portion) >= row.size_bytes, None
        for last in rows_in(portion, row.format, row.columns, offset=offset, row=number, is_last=is_last):
            yield last
        if is_last:
            return
        if last is None:  # empty lines, but for what may begin a row
            offset += len(portion) - MAX_ROW_BYTES
        else:
            offset, number = last.ends_at, last.number


def _portion(ports: RunImportPorts, row: Import, offset: int, size_bytes: int) -> bytes:
    portion = ports.manifests.read(row.batch_id, row.etag or "", offset=offset, size_bytes=size_bytes)
    if not portion:
        raise BadManifest("The manifest was replaced or removed while it was read. Import it again.")
    return portion


def _validate(ports: RunImportPorts, look: _Look) -> Import:
    """Reads on in a manifest for the first time: nothing is made before all of it was read."""
    if look.number == 0:
        beginning = _portion(ports, look.row, 0, _CREATED_BYTES)
        is_all = len(beginning) >= look.row.size_bytes
        look.offset, columns = begin(beginning, look.row.format, is_last=is_all)
        look.row = replace(look.row, begins_at=look.offset, columns=columns)
    row = look.row
    for written in _rows(ports, row, look.offset, _READ_BYTES):
        if written.number > MAX_ROWS:  # guard: bulk-import-most-rows
            raise BadManifest(f"The manifest has more than {MAX_ROWS:,} rows. Import it in parts.")
        read = read_row(written, row.format, preset=row.preset, check_url=ports.check_url)
        if isinstance(read, RowProblem):
            look.reject(read)
        else:
            look.valid += 1
        look.passed(written)
        if written.number % _ROWS_BETWEEN == 0 and look.is_over:
            return go_on(look.so_far, now=ports.clock())
    if look.number == 0:
        raise BadManifest("The manifest has no rows.")
    return create_images(look.so_far, now=ports.clock())


def _create(ports: RunImportPorts, look: _Look) -> Import:
    """Reads on in a manifest for the second time, and asks for its images until something says to wait."""
    row = look.row
    try:
        begin_row = _asks_for(ports, look)
        for written in _rows(ports, row, look.offset, _CREATED_BYTES):
            read = read_row(written, row.format, preset=row.preset, check_url=ports.check_url)
            if isinstance(read, ManifestRow):  # what is none is in the report since it was validated
                begin_row(written, read)
            look.passed(written)
            look.failures = 0
            if look.is_over:
                return go_on(look.so_far, now=ports.clock())
    except _Wait as wait:
        return go_on(look.so_far, now=ports.clock(), waits_for=wait.waits_for)
    look.offset = row.size_bytes
    return go_on(look.so_far, now=ports.clock())


def _asks_for(ports: RunImportPorts, look: _Look) -> Callable[[WrittenRow, ManifestRow], None]:
    """Returns what asks for a row's image, as its tenant's request would now. Raises _Wait, as that does."""
    row = look.row
    tenant = ports.tenants.tenant(row.tenant_id)
    if tenant is not None and tenant.state is TenantState.SUSPENDED:  # guard: bulk-import-suspended-waits
        raise _Wait(WaitsFor.SUSPENSION)
    caller = row.caller if tenant is None else row.caller_as(tenant)
    lane = LANES["bulk"].name  # guard: bulk-import-leaves-live-lanes
    if ports.pauses().of(lane, row.tenant_id) is not None:  # guard: bulk-import-paused-waits
        raise _Wait(WaitsFor.PAUSE)
    depth = ports.fetch_queue.depth()
    most = look.created + FETCH_BACKLOG - depth.waiting - depth.taken

    def begin_row(written: WrittenRow, read: ManifestRow) -> None:
        if look.created >= most:  # guard: bulk-import-backlog-waits
            raise _Wait(WaitsFor.FETCHES)
        wanted = Wanted(
            fetch=UrlOrder(url=read.url, order=read.order_for(row.batch_id)),
            tenant_id=caller.tenant_id,
            tier=caller.tier,
            quota=caller.quota,
            visibility=caller.visibility,
            viewer_seconds=caller.viewer_seconds,
            # It tells whose the image is that is there: a look's that was cut short, or another's.
            correlation_id=f"{row.batch_id}-{written.number}",
            idempotency_key=read.key,
            lane=lane,
        )
        _begin(ports, look, wanted, written)

    return begin_row


def _begin(ports: RunImportPorts, look: _Look, wanted: Wanted, written: WrittenRow) -> None:
    """Asks for the image of one row. Raises _Wait, and Retryable."""

    def reject(field_name: str, message: str) -> None:
        look.reject(RowProblem(row=written.number, key=wanted.idempotency_key, field=field_name, message=message))

    try:
        image = begin_fetch(ports, wanted).image
    except TurnedAway as refusal:
        raise _Wait(WaitsFor.LANE) from refusal
    except QuotaExceeded as refusal:  # guard: bulk-import-quota-waits
        raise _Wait(WaitsFor.QUOTA) from refusal
    except Rejected as refusal:
        if refusal.code in ("batch_closed", "unknown_batch"):  # guard: bulk-import-ends-with-its-batch
            raise _Wait(None) from refusal  # the next look ends it
        reject(_FIELDS.get(refusal.code, "row"), refusal.message)
    except Retryable as failure:
        if not isinstance(failure, UnreadableRow):
            raise
        _try_again(look, written, failure)
        reject("key", "Its image is there, made by a newer version. Ask the operator.")
    except Exception as failure:
        _try_again(look, written, failure)
        reject("row", "Something is wrong with it, or with us: the operator has been told. Import the row again later.")
    else:
        if image.correlation_id == wanted.correlation_id:  # guard: bulk-import-own-image-counted
            look.created += 1
        else:
            look.existing += 1


def _try_again(look: _Look, written: WrittenRow, failure: Exception) -> None:
    """Reports a failure of ours. Raises _Wait unless it was met in several looks: the row stops no others then."""
    report_failure("row of an import failed", failure, batch_id=look.row.batch_id, row=str(written.number))
    look.failures += 1
    if look.failures < _TRIES:  # guard: bulk-import-poison-row-passed
        raise _Wait(WaitsFor.RETRY) from failure
