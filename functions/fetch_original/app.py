"""The fetch queue's worker: fetches each image from the URL that its client gave, and starts its processing."""

from __future__ import annotations

import hashlib
from typing import Any

from aws_lambda_powertools.metrics import MetricUnit
from aws_lambda_powertools.utilities.typing import LambdaContext

from darkroom.domain.kernel.errors import Retryable
from darkroom.domain.kernel.lanes import FETCH
from darkroom.domain.kernel.message import Message, read_message
from darkroom.event_source import Record, read_records, settle_each
from darkroom.operations.imports.fetch_original import Fetching, fetch_original
from darkroom.operations.kernel.check_message import check_message
from darkroom.telemetry import entry_point, follow, lines_about, logger, metrics, report_rejected
from darkroom.wiring.imports.fetch_original import wire
from darkroom.wiring.kernel.runtime import within

ports, checking = wire()

LAST_WORDS_SECONDS = 1.0
"""The part of the function's time that the last AWS call leaves for the answer and the logs."""

_METRICS = {
    "accepted": "ImagesFetched",
    "put_back": "FetchesPutBack",
    "failed": "ImagesFailed",
    "expired": "ImagesExpired",
}


def settle(record: Record, context: LambdaContext) -> None:
    with within(context.get_remaining_time_in_millis() / 1000 - LAST_WORDS_SECONDS):
        mistrust = check_message(checking, FETCH, record)
        if mistrust is not None:
            report_rejected(mistrust)
            return
        message = read_message(record.body)
        with lines_about(image_id=message.image_id, tenant_id=message.tenant_id):
            fetch(message, record, context)


def fetch(message: Message, record: Record, context: LambdaContext) -> None:
    # The receipt is another each time that the message comes; a row holds it, so it is kept short.
    receipt = hashlib.sha256(record.receipt_handle.encode()).hexdigest()[:32]
    try:
        fetching = fetch_original(ports, message, claimed_by=receipt, request_id=context.aws_request_id, on_row=follow)
    except Retryable as outage:
        # Its row is due, and the sweeper sends another message: this one would only come back later than that.
        logger.warning("fetch postponed", extra={"cause": str(outage)})
        metrics.add_metric("FetchesPostponed", MetricUnit.Count, 1)
        return
    log_fetch(fetching)


def log_fetch(fetching: Fetching) -> None:
    """Logs what became of it, without the URL: its query may be a secret of its owner."""
    image, why = fetching.image, fetching.unfetched
    details = {} if why is None else {"cause": why.code, "detail": why.message}
    attempt = None if image is None else image.attempt
    logger.info("fetch settled", extra={"outcome": fetching.outcome, "attempt": attempt, **details})
    metrics.add_metric(_METRICS.get(fetching.outcome, "FetchesWithoutWork"), MetricUnit.Count, 1)


@entry_point()
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    def settle_one(record: Record) -> None:
        with lines_about(message_id=record.message_id, receive_count=record.receive_count):
            try:
                settle(record, context)
            except Exception as bug:
                # Its row is due, if it was read. Otherwise the message comes back after its visibility timeout, and if
                # it does so each time, it is a dead letter. The alarm of functions' errors counts by `errorType`.
                logger.exception("fetch failed", extra={"errorType": type(bug).__name__})
                metrics.add_metric("MessagesFailed", MetricUnit.Count, 1)
                raise

    return settle_each(read_records(event), settle_one)
