"""What a tenant may do with its imports: begin and read them. An import is a batch, which lists and cancels it."""

from __future__ import annotations

from dataclasses import dataclass

from darkroom.domain.bulk.batches import Batch, is_batch_id
from darkroom.domain.bulk.imports import Import, ImportState, new_import
from darkroom.domain.bulk.manifests import MAX_BYTES, ManifestFormat
from darkroom.domain.images.order import no_imports
from darkroom.domain.kernel.errors import Rejected
from darkroom.domain.kernel.sizes import excess_in_words
from darkroom.domain.kernel.tenants import Caller
from darkroom.domain.recipes.presets import DEFAULT_PRESET, preset_named
from darkroom.operations.bulk.manage_batches import ManageBatchesPorts, WantedBatch, create_batch
from darkroom.ports.bulk import Imports, Manifests
from darkroom.ports.uploads import UploadForm


@dataclass(frozen=True, kw_only=True)
class ManageImportsPorts(ManageBatchesPorts):
    """What managing imports needs besides, and whether the stack fetches images."""

    imports: Imports
    manifests: Manifests
    fetches: bool


@dataclass(frozen=True, kw_only=True)
class WantedImport:
    """An import that a client asks for: its manifest, the preset of rows without one, and its batch."""

    format: ManifestFormat
    size_bytes: int
    preset: str = DEFAULT_PRESET
    batch: WantedBatch


@dataclass(frozen=True, kw_only=True)
class BegunImport:
    """An import, its batch, and the form to send its manifest with, None if that is no longer awaited. `replayed` if an
    earlier request with the same key has made it."""

    row: Import
    batch: Batch
    form: UploadForm | None
    replayed: bool


def create_import(
    ports: ManageImportsPorts, caller: Caller, wanted: WantedImport, *, idempotency_key: str | None
) -> BegunImport:
    """Makes a batch and the import that will make its images.

    The batch comes first: what a crash leaves of it closes by itself, or is found by the same request with its key.
    Raises Rejected (`part_not_deployed`, `upload_too_large`, `unknown_preset`, and what `create_batch` raises), and
    Retryable.
    """
    if not ports.fetches:  # guard: bulk-import-needs-fetches
        raise no_imports()
    if wanted.size_bytes > MAX_BYTES:
        raise Rejected(
            "upload_too_large",
            f"The manifest has {excess_in_words(wanted.size_bytes, MAX_BYTES)} are allowed. Import it in parts.",
        )
    preset_named(wanted.preset)
    asked_for = f"{wanted.format}\0{wanted.size_bytes}\0{wanted.preset}"
    batch, replayed = create_batch(
        ports, caller.tenant_id, wanted.batch, idempotency_key=idempotency_key, of_import=asked_for
    )
    row = ports.imports.create(
        new_import(
            batch, caller, kind=wanted.format, size_bytes=wanted.size_bytes, preset=wanted.preset, now=ports.clock()
        )
    )
    return BegunImport(row=row, batch=batch, form=_form(ports, row), replayed=replayed)


def _form(ports: ManageImportsPorts, row: Import) -> UploadForm | None:
    now = ports.clock()
    seconds = (row.awaited_until - now) // 1000
    if row.state is not ImportState.AWAITING_MANIFEST or seconds < 1:
        return None
    return ports.manifests.form_for(
        row.batch_id, size_bytes=row.size_bytes, media_type=row.format.media_type, seconds=seconds, now=now
    )


def read_import(ports: ManageImportsPorts, tenant_id: str, batch_id: str) -> tuple[Import, Batch]:
    """The import, and its batch. Raises Rejected (`unknown_batch`) if this tenant has none with that id, and
    Retryable."""
    row = ports.imports.get(batch_id) if is_batch_id(batch_id) else None
    batch = None if row is None else ports.batches.get(batch_id)
    if row is None or batch is None or row.tenant_id != tenant_id:  # guard: bulk-import-read-own-only
        raise Rejected("unknown_batch", "There is no import with this id.")
    return row, batch


def report_urls(ports: ManageImportsPorts, row: Import) -> list[str]:
    """Where the parts of the import's report are, none once they may be gone."""
    if ports.clock() >= row.files_until:
        return []
    return [ports.manifests.report_url(row.batch_id, part.name) for part in row.report]
