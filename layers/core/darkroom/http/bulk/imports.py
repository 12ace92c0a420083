"""The requests for imports, with every problem reported by field, and the documents that answer them."""

from collections.abc import Sequence
from typing import Annotated, Any, NotRequired, TypedDict

from pydantic import Field

from darkroom.domain.bulk.batches import Batch
from darkroom.domain.bulk.imports import Import, ImportState, WaitsFor
from darkroom.domain.bulk.manifests import MAX_BYTES, ManifestFormat
from darkroom.domain.kernel.field_problems import FieldProblem
from darkroom.domain.kernel.instants import rfc3339
from darkroom.domain.kernel.paths import batch_path, import_path
from darkroom.domain.kernel.sizes import limit_in_words
from darkroom.domain.recipes.presets import DEFAULT_PRESET
from darkroom.domain.recipes.recipes import WHOLE
from darkroom.http.bulk.batches import BatchId, NewBatch, wanted_batch
from darkroom.http.images.documents import Count, FormDocument, Instant, Path, form_document
from darkroom.http.images.order_fields import PresetName
from darkroom.http.images.request_models import STRICT, RequestReader
from darkroom.http.kernel.route import one_of
from darkroom.operations.bulk.manage_imports import WantedImport
from darkroom.ports.uploads import UploadForm

_FormatName: Any = one_of(ManifestFormat)


class _ManifestFields(TypedDict):
    __pydantic_config__ = STRICT  # type: ignore[misc]
    format: Annotated[_FormatName, Field(description="CSV with a header, or JSON Lines.")]
    bytes: Annotated[
        int, Field(ge=1, le=10**15, description=f"The manifest's size, at most {limit_in_words(MAX_BYTES)}."), WHOLE
    ]
    preset: NotRequired[Annotated[PresetName, Field(description="Of rows that name none.")] | None]


class NewImport(_ManifestFields, NewBatch):
    """An import that is to be made: its manifest, and its batch."""


_READER = RequestReader(NewImport, code="invalid_import", sentence="The import is invalid.")


def read_new_import(body: bytes) -> WantedImport:
    """The import that a request asks for. Raises InvalidFields (`invalid_import`)."""
    asked = _READER.read(body)
    if asked["format"] not in tuple(ManifestFormat):
        raise _READER.refusal(FieldProblem(field="format", message=f"is {' or '.join(ManifestFormat)}"))
    return WantedImport(
        format=ManifestFormat(asked["format"]),
        size_bytes=asked["bytes"],
        preset=asked.get("preset") or DEFAULT_PRESET,
        batch=wanted_batch(asked, _READER),
    )


class ImportErrorDocument(TypedDict):
    """Why an import failed."""

    code: Annotated[
        str,
        Field(
            json_schema_extra={
                "enum": ["manifest_missing", "invalid_manifest", "image_failed", "batch_closed", "batch_gone"]
            }
        ),
    ]
    message: Annotated[str, Field(description="For people: what to do.")]


class ImportLinksDocument(TypedDict):
    """Where else to ask."""

    self: Path
    batch: Path


class ImportDocument(TypedDict):
    """An import: how far its manifest is read, and what became of its rows."""

    id: Annotated[BatchId, Field(description="The id of the import, and of the batch of its images.")]
    name: str | None
    format: _FormatName
    state: Annotated[str, Field(json_schema_extra={"enum": list(ImportState)})]
    waits_for: Annotated[
        str | None,
        Field(json_schema_extra={"enum": [*WaitsFor, None]}, description="Why no more images are asked for just now."),
    ]
    created_at: Instant
    ended_at: Instant | None
    rows: Annotated[Count, Field(description="Those that were read so far, then all.")]
    valid: Annotated[Count, Field(description="Those of them that say what an image needs.")]
    rejected: Annotated[Count, Field(description="Those that became no image: the report says why.")]
    created: Annotated[Count, Field(description="Those that became an image of the batch.")]
    already_there: Annotated[Count, Field(description="Those whose key had made the same image before.")]
    progress: Annotated[float, Field(ge=0, le=1, description="The share of the manifest whose images were asked for.")]
    report: Annotated[
        list[Annotated[str, Field(json_schema_extra={"format": "uri"})]],
        Field(
            description="Where anyone can fetch, for up to an hour, the rejected rows as JSON Lines with `row`, `key`, "
            "`field` and `message`: usually one file, and none 15 days after the import was made."
        ),
    ]
    error: ImportErrorDocument | None
    links: ImportLinksDocument


class NewImportDocument(ImportDocument):
    """An import, and how to send its manifest."""

    upload: Annotated[FormDocument | None, Field(description="null if the manifest is no longer awaited.")]


def import_document(row: Import, batch: Batch, report: Sequence[str]) -> ImportDocument:
    """Returns the document of an import, whose report is at these URLs."""
    is_read = row.state is not ImportState.VALIDATING
    error: ImportErrorDocument | None = None
    if row.state is ImportState.FAILED:
        error = {"code": row.error_code or "", "message": row.error_message or ""}
    return {
        "id": row.batch_id,
        "name": batch.name,
        "format": row.format.value,
        "state": row.state.value,
        "waits_for": None if row.waits_for is None else row.waits_for.value,
        "created_at": rfc3339(row.created_at),
        "ended_at": rfc3339(row.ended_at),
        "rows": row.rows if is_read and row.rows else row.row,
        "valid": row.valid,
        "rejected": row.rejected,
        "created": row.created,
        "already_there": row.existing,
        "progress": round(row.progress, 4),
        "report": list(report),
        "error": error,
        "links": {"self": import_path(row.batch_id), "batch": batch_path(row.batch_id)},
    }


def new_import_document(row: Import, batch: Batch, report: Sequence[str], form: UploadForm | None) -> NewImportDocument:
    """Returns the same with the form for sending its manifest, while that is awaited."""
    return {**import_document(row, batch, report), "upload": None if form is None else form_document(form)}
