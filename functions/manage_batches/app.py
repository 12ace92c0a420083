"""/batches…: a tenant's batches: made, listed, read, closed and cancelled; and /imports…, which make their images."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from darkroom.domain.bulk.batches import NO_SUMS, Batch
from darkroom.domain.kernel.paths import batch_path, import_path
from darkroom.domain.tenants.rate_limits import Policy
from darkroom.http.api import create_app, handles
from darkroom.http.bulk.batches import (
    DEFAULT_PAGE_BATCHES,
    MAX_PAGE_BATCHES,
    batch_document,
    cursor_text,
    listed_batch_document,
    read_cursor,
    read_new_batch,
)
from darkroom.http.bulk.imports import import_document, new_import_document, read_new_import
from darkroom.http.bulk.routes import (
    CANCEL_BATCH,
    CLOSE_BATCH,
    GET_BATCH,
    GET_IMPORT,
    LIST_BATCHES,
    POST_BATCH,
    POST_IMPORT,
)
from darkroom.http.images.list_queries import read_limit
from darkroom.http.kernel.callers import caller_of
from darkroom.http.kernel.requests import idempotency_key_of, json_body
from darkroom.http.kernel.responses import NOT_STORED, json_response
from darkroom.http.kernel.router import Response
from darkroom.http.tenants.protection import Price, protected
from darkroom.operations.bulk.manage_batches import (
    ReadBatch,
    cancel_batch,
    close_batch,
    create_batch,
    list_batches,
    read_batch,
)
from darkroom.operations.bulk.manage_imports import create_import, read_import, report_urls
from darkroom.ports.kernel import UnreadableRow
from darkroom.telemetry import entry_point, logger, report_unreadable
from darkroom.wiring.bulk.manage_batches import wire
from darkroom.wiring.kernel.runtime import answering

ports, rate_limit = wire()
app = create_app(within=answering)
read, write = protected(rate_limit, price=Price(policy=Policy.READS)), protected(rate_limit)


def _answer(found: ReadBatch) -> Response:
    return json_response(HTTPStatus.OK, batch_document(found, now=ports.clock()))


@handles(app, POST_BATCH, protected(rate_limit))
def post_batch() -> Response:
    batch, replayed = create_batch(
        ports, caller_of(app).tenant_id, read_new_batch(json_body(app)), idempotency_key=idempotency_key_of(app)
    )
    logger.info("batch made", extra={"batch_id": batch.batch_id, "replayed": replayed})
    headers = {"Location": batch_path(batch.batch_id), **NOT_STORED}
    found = ReadBatch(batch=batch, sums=ports.batches.sums(batch.batch_id) if replayed else NO_SUMS)
    return json_response(
        HTTPStatus.CREATED,
        batch_document(found, now=ports.clock()),
        headers | ({"Idempotent-Replayed": "true"} if replayed else {}),
    )


@handles(app, LIST_BATCHES, read)
def get_batches() -> Response:
    query = app.current_event.query_string_parameters
    limit = query.get("limit")
    page = list_batches(
        ports,
        caller_of(app).tenant_id,
        after=read_cursor(query.get("cursor")),
        limit=DEFAULT_PAGE_BATCHES if limit is None else read_limit(limit, most=MAX_PAGE_BATCHES),
    )
    report_unreadable([row for row in page.batches if isinstance(row, UnreadableRow)])
    batches = [listed_batch_document(row) for row in page.batches if isinstance(row, Batch)]
    return json_response(
        HTTPStatus.OK, {"batches": batches, "next": None if page.next is None else cursor_text(page.next)}
    )


@handles(app, GET_BATCH, read)
def get_batch(batch_id: str) -> Response:
    return _answer(read_batch(ports, caller_of(app).tenant_id, batch_id))


@handles(app, CLOSE_BATCH, write)
def post_close(batch_id: str) -> Response:
    found = close_batch(ports, caller_of(app).tenant_id, batch_id)
    logger.info("batch closed", extra={"batch_id": batch_id})
    return _answer(found)


@handles(app, CANCEL_BATCH, write)
def delete_batch(batch_id: str) -> Response:
    found = cancel_batch(ports, caller_of(app).tenant_id, batch_id)
    logger.info("batch cancelled", extra={"batch_id": batch_id})
    return _answer(found)


@handles(app, POST_IMPORT, write)
def post_import() -> Response:
    begun = create_import(
        ports, caller_of(app), read_new_import(json_body(app)), idempotency_key=idempotency_key_of(app)
    )
    logger.info("import made", extra={"batch_id": begun.row.batch_id, "replayed": begun.replayed})
    return json_response(
        HTTPStatus.CREATED,
        new_import_document(begun.row, begun.batch, report_urls(ports, begun.row), begun.form),
        {"Location": import_path(begun.row.batch_id), **NOT_STORED}
        | ({"Idempotent-Replayed": "true"} if begun.replayed else {}),
    )


@handles(app, GET_IMPORT, read)
def get_import(batch_id: str) -> Response:
    row, batch = read_import(ports, caller_of(app).tenant_id, batch_id)
    return json_response(HTTPStatus.OK, import_document(row, batch, report_urls(ports, row)), NOT_STORED)


@entry_point(of_gateway=True, has_metrics=False)
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    return app.resolve(event, context)
