"""The routes of batches and imports, in the one table of the API's routes."""

from __future__ import annotations

from dataclasses import replace
from http import HTTPStatus
from typing import Annotated

from pydantic import Field

from darkroom.domain.recipes.presets import DEFAULT_PRESET
from darkroom.http.bulk.batches import (
    CURSOR_PATTERN,
    DEFAULT_PAGE_BATCHES,
    MAX_PAGE_BATCHES,
    BatchDocument,
    BatchesDocument,
    BatchId,
    NewBatch,
)
from darkroom.http.bulk.imports import ImportDocument, NewImport, NewImportDocument
from darkroom.http.images.order_fields import IDEMPOTENCY_KEY
from darkroom.http.kernel.headers import EXAMPLE_BATCH_ID, REPLAYED, Header
from darkroom.http.kernel.route import Body, Parameter, Route, RouteAnswer

LOCATION_OF_BATCH = Header("Location", str, "The batch, relative to the API's root.", f"/batches/{EXAMPLE_BATCH_ID}")

_BATCH_ID = Parameter(name="id", place="path", kind=BatchId, description="The batch's id.", example=EXAMPLE_BATCH_ID)

_OF_A_BATCH = ("unknown_batch", "unknown_path", "too_many_requests", "unavailable")
"""The problems of every request about one batch."""

POST_BATCH = Route(
    method="POST",
    path="/batches",
    name="postBatch",
    summary="Make a batch",
    description=(
        "Images join it with `batch`, until it is closed; seven days later it closes by itself. It ends when it is "
        "closed and all of its images have ended."
    ),
    parameters=(
        replace(IDEMPOTENCY_KEY, description="The same key and request always mean the same batch.", example="night-1"),
    ),
    body=Body(
        description="The batch.",
        media_types=("application/json",),
        kind=NewBatch,
        examples={"catalogue": {"name": "catalogue", "parallelism": 20, "on_failure": "stop"}, "plain": {}},
    ),
    answers=(
        RouteAnswer(
            status=HTTPStatus.CREATED,
            description="The batch, or the one that an earlier request with this key has made.",
            kind=BatchDocument,
            headers=(LOCATION_OF_BATCH, REPLAYED),
        ),
    ),
    problems=(
        "unreadable_body",
        "unsupported_media_type",
        "invalid_batch",
        "unknown_notify",
        "part_not_deployed",
        "invalid_idempotency_key",
        "idempotency_key_reused",
        "too_many_requests",
        "unavailable",
    ),
    is_rate_limited=True,
)

LIST_BATCHES = Route(
    method="GET",
    path="/batches",
    name="listBatches",
    summary="List batches",
    description="The batches, the newest first, for 400 days after their ends.",
    parameters=(
        Parameter(
            name="limit",
            place="query",
            kind=Annotated[int, Field(ge=1, le=MAX_PAGE_BATCHES)],
            description=f"The most batches of a page; {DEFAULT_PAGE_BATCHES} by default.",
            example=50,
        ),
        Parameter(
            name="cursor",
            place="query",
            kind=Annotated[str, Field(pattern=f"^{CURSOR_PATTERN}$")],
            description="The `next` of the previous page.",
            example=f"01a1fd557a80{EXAMPLE_BATCH_ID}",
        ),
    ),
    answers=(RouteAnswer(status=HTTPStatus.OK, description="A page of the list.", kind=BatchesDocument),),
    problems=("invalid_limit", "invalid_cursor", "too_many_requests", "unavailable"),
    is_rate_limited=True,
)

GET_BATCH = Route(
    method="GET",
    path="/batches/{id}",
    name="getBatch",
    summary="Read a batch",
    description="How many of its images are in each state, and how long the rest takes.",
    parameters=(_BATCH_ID,),
    answers=(RouteAnswer(status=HTTPStatus.OK, description="The batch as it is now.", kind=BatchDocument),),
    problems=_OF_A_BATCH,
    is_rate_limited=True,
)

CLOSE_BATCH = Route(
    method="POST",
    path="/batches/{id}/close",
    name="closeBatch",
    summary="Close a batch",
    description="No more images may join it; it ends when all of its images have. A repetition changes nothing.",
    parameters=(_BATCH_ID,),
    answers=(RouteAnswer(status=HTTPStatus.OK, description="The batch.", kind=BatchDocument),),
    problems=_OF_A_BATCH,
    is_rate_limited=True,
)

CANCEL_BATCH = Route(
    method="DELETE",
    path="/batches/{id}",
    name="cancelBatch",
    summary="Cancel a batch",
    description=(
        "No more images may join it. Those of which nothing was begun are deleted within minutes, the others end as "
        "usual, and then the batch is `cancelled`. One that has ended stays as it is."
    ),
    parameters=(_BATCH_ID,),
    answers=(RouteAnswer(status=HTTPStatus.OK, description="The batch.", kind=BatchDocument),),
    problems=_OF_A_BATCH,
    is_rate_limited=True,
)

POST_IMPORT = Route(
    method="POST",
    path="/imports",
    name="postImport",
    summary="Import images from a manifest",
    description=(
        "A manifest has a row for each image that is to be fetched from a URL. It is read once it was sent to S3 with "
        "the form in the answer, within an hour; the images are those of a batch with the same id."
    ),
    parameters=(
        replace(IDEMPOTENCY_KEY, description="The same key and request always mean the same import.", example="spring"),
    ),
    body=Body(
        description="The import.",
        media_types=("application/json",),
        kind=NewImport,
        examples={
            "catalogue": {"format": "csv", "bytes": 48_211_907, "name": "catalogue", "preset": DEFAULT_PRESET},
            "plain": {"format": "jsonl", "bytes": 1204},
        },
    ),
    answers=(
        RouteAnswer(
            status=HTTPStatus.CREATED,
            description="The import, or the one that an earlier request with this key has made, and the form.",
            kind=NewImportDocument,
            headers=(
                replace(
                    LOCATION_OF_BATCH,
                    description="The import, relative to the API's root.",
                    example=f"/imports/{EXAMPLE_BATCH_ID}",
                ),
                REPLAYED,
            ),
        ),
    ),
    problems=(
        "unreadable_body",
        "unsupported_media_type",
        "invalid_import",
        "upload_too_large",
        "unknown_preset",
        *POST_BATCH.problems[POST_BATCH.problems.index("invalid_batch") + 1 :],
    ),
    is_rate_limited=True,
)

GET_IMPORT = Route(
    method="GET",
    path="/imports/{id}",
    name="getImport",
    summary="Read an import",
    description="How far its manifest is read, what became of its rows, and which were rejected.",
    parameters=(replace(_BATCH_ID, description="The import's id."),),
    answers=(RouteAnswer(status=HTTPStatus.OK, description="The import as it is now.", kind=ImportDocument),),
    problems=_OF_A_BATCH,
    is_rate_limited=True,
)

BATCH_ROUTES = (POST_BATCH, LIST_BATCHES, GET_BATCH, CLOSE_BATCH, CANCEL_BATCH, POST_IMPORT, GET_IMPORT)
