"""The requests about batches, with every problem reported by field, and the documents that answer them."""

import re
from typing import Annotated, Any, NotRequired, TypedDict

from pydantic import Field

from darkroom.domain.bulk.batches import (
    BATCH_ID_PATTERN,
    MAX_NAME_CHARACTERS,
    MAX_PARALLELISM,
    Batch,
    BatchState,
    OnFailure,
    Stop,
)
from darkroom.domain.kernel.field_problems import FieldProblem
from darkroom.domain.kernel.instants import Milliseconds, rfc3339
from darkroom.domain.kernel.paths import batch_path, import_path
from darkroom.http.images.documents import Count, Instant, Path, WebhookId
from darkroom.http.images.list_queries import invalid_cursor
from darkroom.http.images.request_models import NOTIFY, STRICT, RequestReader
from darkroom.http.kernel.route import one_of
from darkroom.operations.bulk.manage_batches import ReadBatch, WantedBatch
from darkroom.ports.bulk import BatchCursor

DEFAULT_PAGE_BATCHES, MAX_PAGE_BATCHES = 20, 100
"""The size of a page unless the client asks for another, and the largest."""

CURSOR_PATTERN = f"([0-9a-f]{{12}})({BATCH_ID_PATTERN})"
"""A place in the list: 48 bits of `created_at` in hexadecimal, and the batch's id."""

_CURSOR = re.compile(CURSOR_PATTERN)

BatchId = Annotated[str, Field(pattern=f"^{BATCH_ID_PATTERN}$", description="A batch's id.")]


OnFailureName: Any = one_of(OnFailure)


class NewBatch(TypedDict):
    """A batch that is to be made."""

    __pydantic_config__ = STRICT  # type: ignore[misc]
    name: NotRequired[
        Annotated[str, Field(max_length=MAX_NAME_CHARACTERS, description="The client's own name for it.")] | None
    ]
    parallelism: NotRequired[
        Annotated[
            int,
            Field(
                ge=1,
                le=MAX_PARALLELISM,
                description="How many of its images may be begun and not ended; any number by default.",
            ),
        ]
        | None
    ]
    on_failure: NotRequired[
        Annotated[
            OnFailureName,
            Field(description="`stop` takes back what was not begun as soon as one of its images has failed."),
        ]
        | None
    ]
    notify: NotRequired[NOTIFY | None]


_READER = RequestReader(NewBatch, code="invalid_batch", sentence="The batch is invalid.")


def read_new_batch(body: bytes) -> WantedBatch:
    """The batch that a request asks for. Raises InvalidFields (`invalid_batch`)."""
    return wanted_batch(_READER.read(body), _READER)


def wanted_batch(asked: NewBatch, reader: RequestReader[Any]) -> WantedBatch:
    """The batch that a request asks for, which `reader` has read. Raises InvalidFields."""
    on_failure = asked.get("on_failure") or OnFailure.CONTINUE
    if on_failure not in tuple(OnFailure):
        raise reader.refusal(_unknown_on_failure())
    return WantedBatch(
        name=asked.get("name") or None,
        parallelism=asked.get("parallelism"),
        on_failure=OnFailure(on_failure),
        notify=asked.get("notify"),
    )


def _unknown_on_failure() -> FieldProblem:
    return FieldProblem(field="on_failure", message=f"is {' or '.join(OnFailure)}")


def read_cursor(text: str | None) -> BatchCursor | None:
    """The place in the list that a request continues after. Raises Rejected (`invalid_cursor`)."""
    match = None if text is None else _CURSOR.fullmatch(text)
    if text is not None and match is None:
        raise invalid_cursor()
    return None if match is None else BatchCursor(created_at=int(match[1], 16), batch_id=match[2])


_Links = TypedDict(
    "_Links", {"import": NotRequired[Annotated[Path, Field(description="Of the import that makes its images.")]]}
)


class BatchLinksDocument(_Links):
    """Where else to ask."""

    self: Path


class BatchImagesDocument(TypedDict):
    """How many of its images are in each state."""

    waiting: Annotated[Count, Field(description="Until it is their turn.")]
    working: Annotated[Count, Field(description="In their lane, or with a worker.")]
    done: Count
    failed: Count
    cancelled: Count
    expired: Count


class ListedBatchDocument(TypedDict):
    """A batch in a list."""

    id: BatchId
    name: str | None
    state: Annotated[
        str,
        Field(
            json_schema_extra={"enum": list(BatchState)},
            description="Images may join an `open` one; a `closed` one ends when all of its images have.",
        ),
    ]
    created_at: Instant
    closed_at: Instant | None
    ended_at: Instant | None
    links: BatchLinksDocument


class BatchDocument(ListedBatchDocument):
    """A batch: what it is, and how far."""

    parallelism: Annotated[int | None, Field(ge=1, le=MAX_PARALLELISM)]
    on_failure: Annotated[str, Field(json_schema_extra={"enum": list(OnFailure)})]
    notify: WebhookId | None
    stopped_by: Annotated[
        str | None,
        Field(
            json_schema_extra={"enum": [*Stop, None]},
            description="Why it begins nothing more: its client cancelled it, or an image or the import failed.",
        ),
    ]
    images: Annotated[
        BatchImagesDocument,
        Field(description="As they were at its end; before, some seconds behind, and without announced uploads."),
    ]
    progress: Annotated[float, Field(ge=0, le=1, description="The share of these that has ended.")]
    remaining_seconds: Annotated[
        Count | None,
        Field(description="How long the rest takes at the rate at which its images have ended; null if unknown."),
    ]


class BatchesDocument(TypedDict):
    """A page of the list of batches, the newest first."""

    batches: list[ListedBatchDocument]
    next: Annotated[str | None, Field(description="The `cursor` of the next page; null at the end of the list.")]


def listed_batch_document(batch: Batch) -> ListedBatchDocument:
    """Returns what a list says of a batch."""
    return {
        "id": batch.batch_id,
        "name": batch.name,
        "state": batch.state.value,
        "created_at": rfc3339(batch.created_at),
        "closed_at": rfc3339(batch.closed_at),
        "ended_at": rfc3339(batch.ended_at),
        "links": _links(batch),
    }


def _links(batch: Batch) -> BatchLinksDocument:
    links: BatchLinksDocument = {"self": batch_path(batch.batch_id)}
    return {**links, "import": import_path(batch.batch_id)} if batch.is_import else links


def batch_document(read: ReadBatch, *, now: Milliseconds) -> BatchDocument:
    """Returns the document of a batch: its counts are those of its end, if it has ended."""
    batch, counted = read.batch, read.sums
    counts = counted.counts if batch.counts is None else batch.counts
    remaining = None if batch.state.has_ended else counted.remaining_seconds(now)
    states: Any = {name: max(0, getattr(counts, name)) for name in BatchImagesDocument.__annotations__}
    return {
        **listed_batch_document(batch),
        "parallelism": batch.parallelism,
        "on_failure": batch.on_failure.value,
        "notify": batch.notify,
        "stopped_by": None if batch.stops is None else batch.stops.value,
        "images": states,
        "progress": round(counts.progress, 4) if batch.state.has_ended or counts.images else 0.0,
        "remaining_seconds": None if remaining is None else round(remaining),
    }


def cursor_text(place: BatchCursor) -> str:
    """The cursor that continues the list after `place`."""
    return f"{place.created_at:012x}{place.batch_id}"
