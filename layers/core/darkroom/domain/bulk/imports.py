"""An import's row: how far the manifest is read, what became of its rows, and the one state in which the import ends.

An import is a batch whose images are made by us: both have the same id, and the batch is open until all rows were
read twice, first to find what is wrong with them, and then to ask for their images.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NamedTuple

from darkroom.domain.bulk.batches import KEPT_DAYS, Batch, BatchState, Stop
from darkroom.domain.bulk.manifests import ManifestFormat
from darkroom.domain.kernel.instants import Milliseconds
from darkroom.domain.kernel.tenants import Caller, Quota, Tenant, Tier
from darkroom.domain.kernel.visibility import Visibility

UPLOAD_SECONDS = 3600
"""How long a manifest may be uploaded."""

LATE_SECONDS = 180
"""How much later we still look for it: an upload may begin in its form's last second."""

LOOK_SECONDS = 30
"""The pause between two looks for a manifest: every sweep looks."""

WAIT_SECONDS = 60
"""The pause before what an import waits for is looked at again."""

KEPT_FILES_DAYS = 15
"""How long S3 keeps an import's files at most: the bucket's lifecycle rule says the same."""


class ImportState(StrEnum):
    """An import's state."""

    AWAITING_MANIFEST = "awaiting_manifest"
    VALIDATING = "validating"
    CREATING = "creating"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def has_ended(self) -> bool:
        """Whether nothing of it changes any more."""
        return self in (ImportState.COMPLETED, ImportState.FAILED, ImportState.CANCELLED)


class WaitsFor(StrEnum):
    """Why an import asks for no images now: enough are to be fetched, their lane has too much work, their tenant's
    quota is full, their work is paused, their tenant is suspended, or a failure of ours is tried again."""

    FETCHES = "fetches"
    LANE = "lane"
    QUOTA = "quota"
    PAUSE = "pause"
    SUSPENSION = "suspension"
    RETRY = "retry"


@dataclass(frozen=True, kw_only=True)
class ReportPart:
    """An object with lines of the report on rejected rows; its name follows from its content."""

    name: str
    size_bytes: int


@dataclass(frozen=True, kw_only=True)
class Import:
    """One row: the truth about an import.

    `tier` to `viewer_seconds` are those of the caller that asked for it, for a tenant that has no row. `etag` pins the
    manifest's bytes; its rows begin at `begins_at`, with these `columns`. Of the present reading, `offset` is the byte
    where it goes on, after `row` rows. `rows` is how many there are; `valid`, `rejected`, `created` and `existing` say
    what became of them. `failures` is how many looks in a row have met a bug at this row. With an `error_code` it ends
    as soon as its batch stops. The table deletes the row by itself at `forget_at`, in seconds.
    """

    batch_id: str
    tenant_id: str
    state: ImportState = ImportState.AWAITING_MANIFEST
    version: int = 1
    created_at: Milliseconds
    format: ManifestFormat
    size_bytes: int
    preset: str
    tier: Tier
    max_stored_bytes: int
    max_images: int
    visibility: Visibility
    viewer_seconds: int | None = None
    etag: str | None = None
    columns: tuple[str, ...] = ()
    begins_at: int = 0
    offset: int = 0
    row: int = 0
    rows: int = 0
    valid: int = 0
    rejected: int = 0
    created: int = 0
    existing: int = 0
    report: tuple[ReportPart, ...] = ()
    failures: int = 0
    waits_for: WaitsFor | None = None
    error_code: str | None = None
    error_message: str | None = None
    due_at: Milliseconds | None = None
    ended_at: Milliseconds | None = None
    forget_at: int | None = None

    @property
    def awaited_until(self) -> Milliseconds:
        """When the manifest's form expires."""
        return self.created_at + UPLOAD_SECONDS * 1000

    @property
    def files_until(self) -> Milliseconds:
        """Until when its report is there for certain."""
        return self.created_at + KEPT_FILES_DAYS * 24 * 3600 * 1000

    @property
    def progress(self) -> float:
        """The share of the manifest whose images were asked for."""
        if self.state is ImportState.COMPLETED:
            return 1.0
        return self.offset / self.size_bytes if self.rows else 0.0  # rows are counted before the first is made

    @property
    def caller(self) -> Caller:
        """Who asked for it."""
        return Caller(
            tenant_id=self.tenant_id,
            tier=self.tier,
            allowance=None,
            quota=Quota(stored_bytes=self.max_stored_bytes, images=self.max_images),
            visibility=self.visibility,
            viewer_seconds=self.viewer_seconds,
        )

    def caller_as(self, tenant: Tenant) -> Caller:
        """Who asked for it, as its tenant is now."""
        return replace(
            self.caller,
            tier=tenant.tier,
            quota=tenant.quota,
            visibility=tenant.visibility or Visibility.PRIVATE,
            viewer_seconds=tenant.viewer_seconds,
        )


class End(NamedTuple):
    """How an import ends, and with which error."""

    state: ImportState
    code: str | None = None
    message: str | None = None


def new_import(
    batch: Batch, caller: Caller, *, kind: ManifestFormat, size_bytes: int, preset: str, now: Milliseconds
) -> Import:
    """The row of a new import, whose images will belong to the batch."""
    return Import(
        batch_id=batch.batch_id,
        tenant_id=batch.tenant_id,
        created_at=now,
        format=kind,
        size_bytes=size_bytes,
        preset=preset,
        tier=caller.tier,
        max_stored_bytes=caller.quota.stored_bytes,
        max_images=caller.quota.images,
        visibility=caller.visibility,
        viewer_seconds=caller.viewer_seconds,
        due_at=now + LOOK_SECONDS * 1000,
    )


def await_manifest(row: Import, *, now: Milliseconds) -> Import:
    """The import whose manifest is not there: looked for again, or given up."""
    if now >= row.awaited_until + LATE_SECONDS * 1000:
        return fail(
            row,
            "manifest_missing",
            "No manifest was uploaded within an hour. Make another import, and upload it with its form.",
            now=now,
        )
    return replace(row, due_at=now + LOOK_SECONDS * 1000)


def validate(row: Import, etag: str, size_bytes: int, *, now: Milliseconds) -> Import:
    """The import whose manifest is there: these bytes and no others."""
    return replace(row, state=ImportState.VALIDATING, etag=etag, size_bytes=size_bytes, due_at=now)


def create_images(row: Import, *, now: Milliseconds) -> Import:
    """The import all of whose rows were looked at: it begins anew, and asks for their images."""
    state = ImportState.CREATING
    return replace(row, state=state, rows=row.row, offset=row.begins_at, row=0, failures=0, due_at=now)


def go_on(row: Import, *, now: Milliseconds, waits_for: WaitsFor | None = None) -> Import:
    """The import that goes on after all others that are due, or when what it waits for is looked at again."""
    return replace(row, waits_for=waits_for, due_at=now if waits_for is None else now + WAIT_SECONDS * 1000)


def fail(row: Import, code: str, message: str, *, now: Milliseconds) -> Import:
    """The import that is to end with this error, once its batch takes no more images."""
    return replace(row, error_code=code, error_message=message, due_at=now)


def end_of(row: Import, batch: Batch | None) -> End | None:
    """How it ends now; None if it goes on."""
    if row.error_code is not None:
        return End(ImportState.FAILED, row.error_code, row.error_message)
    # The batch may have ended since: it was closed by the look that was cut short.
    if row.state is ImportState.CREATING and row.offset >= row.size_bytes:  # guard: bulk-import-complete-before-closed
        return End(ImportState.COMPLETED)
    left = f"The rows after row {row.row:,} were not imported."
    if batch is None:
        return End(ImportState.FAILED, "batch_gone", f"Its batch is gone. {left}")
    if batch.stops is Stop.CLIENT:
        return End(ImportState.CANCELLED)
    if batch.stops is Stop.FAILURE:
        return End(ImportState.FAILED, "image_failed", f"One of its images has failed, and on_failure is stop. {left}")
    if batch.state is not BatchState.OPEN:
        return End(ImportState.FAILED, "batch_closed", f"Its batch was closed. {left} Import the manifest again.")
    return None


def end(row: Import, over: End, *, now: Milliseconds) -> Import:
    """The import that has ended so."""
    return replace(
        row,
        state=over.state,
        waits_for=None,
        error_code=over.code,
        error_message=over.message,
        due_at=None,
        ended_at=now,
        forget_at=now // 1000 + KEPT_DAYS * 24 * 3600,
    )
