"""The lanes' worker: develops each delivered image; a failed record comes back later without the rest of its batch."""

from __future__ import annotations

from typing import Any, NoReturn

from aws_lambda_powertools.metrics import MetricUnit, single_metric
from aws_lambda_powertools.utilities.typing import LambdaContext

from darkroom.domain.errors import Retryable
from darkroom.domain.message import read_message
from darkroom.event_source import Record, read_records, settle_each
from darkroom.operations.check_message import check_message
from darkroom.operations.report_throughput import ThroughputCounter, report_throughput
from darkroom.operations.transcode_image import (
    Delivery,
    Early,
    Finished,
    Outcome,
    Postponed,
    TryAgain,
    postponed_by,
    transcode_image,
)
from darkroom.telemetry import entry_point, logger, metrics, report_rejected
from darkroom.wiring.runtime import within
from darkroom.wiring.transcode_image import wire

ports, worker = wire()
counter = ThroughputCounter()

LAST_WORDS_SECONDS = 1.0
"""The part of the function's time that the last AWS call leaves for the answer and the logs."""


def settle(record: Record, lambda_context: LambdaContext) -> None:
    began, is_settled = ports.clock(), False
    try:
        develop(record, lambda_context)
        is_settled = True
    finally:
        if (lane := _lane_of(record)) is not None:
            counter.count(lane, is_settled=is_settled, busy_milliseconds=ports.clock() - began)


def develop(record: Record, lambda_context: LambdaContext) -> None:
    logger.remove_keys(["image_id", "lane", "run"])  # of the batch's previous record
    logger.set_correlation_id(None)
    logger.append_keys(message_id=record.message_id, receive_count=record.receive_count)
    try:
        remaining_milliseconds = lambda_context.get_remaining_time_in_millis()
        with within(remaining_milliseconds / 1000 - LAST_WORDS_SECONDS):
            mistrust = check_message(worker.checking, _lane_of(record) or record.queue, record)
            if mistrust is not None:
                report_rejected(mistrust)
                return
            message = read_message(record.body)
            logger.append_keys(image_id=message.image_id, lane=message.lane, run=message.run)
            outcome: Outcome = transcode_image(
                ports,
                Delivery(
                    message=message,
                    receipt=f"{lambda_context.aws_request_id}/{record.message_id}",
                    request_id=lambda_context.aws_request_id,
                    receive_count=record.receive_count,
                    deadline=ports.clock() + remaining_milliseconds,
                ),
            )
    except Retryable as outage:  # no key can be read, or a dead letter cannot be placed
        outcome = postponed_by(outage, receive_count=record.receive_count, jitter=ports.jitter)
    except Exception:
        # The message stays hidden for its visibility timeout, comes back by itself and ends as a dead letter.
        logger.exception("delivery failed")
        metrics.add_metric("DeliveriesFailed", MetricUnit.Count, 1)
        raise
    _report(outcome)
    if outcome.returns_in_seconds is not None:
        _come_back(record, outcome.returns_in_seconds, outcome.cause)


def _report(outcome: Outcome) -> None:
    match outcome:
        case Finished(image=image, reason=reason, cause=cause):
            if image is not None:
                logger.set_correlation_id(image.correlation_id)
            if cause is not None:
                logger.error("image given up", exc_info=cause)
            logger.info("delivery settled", extra={"outcome": reason})
            metrics.add_metric(_METRICS.get(reason, "DeliveriesWithoutWork"), MetricUnit.Count, 1)
        case TryAgain(delay_seconds=delay_seconds, cause=cause, image=image):
            logger.set_correlation_id(image.correlation_id)
            logger.error(
                "attempt failed",
                exc_info=cause,
                extra={"attempt": image.attempt, "status": image.status, "delay_seconds": delay_seconds},
            )
            metrics.add_metric("AttemptsFailed", MetricUnit.Count, 1)
        case Early(image=image, delay_seconds=delay_seconds):
            logger.set_correlation_id(image.correlation_id)
            logger.info("delivery before its time", extra={"delay_seconds": delay_seconds})
            metrics.add_metric("DeliveriesEarly", MetricUnit.Count, 1)
        case Postponed(delay_seconds=delay_seconds, cause=cause):
            logger.warning("delivery postponed", extra={"cause": str(cause), "delay_seconds": delay_seconds})
            metrics.add_metric("DeliveriesPostponed", MetricUnit.Count, 1)


def _lane_of(record: Record) -> str | None:
    """The lane whose queue the record came from, whatever its body says."""
    return next((lane for lane, url in worker.queue_urls.items() if url.rpartition("/")[2] == record.queue), None)


def _report_throughput(lambda_context: LambdaContext) -> None:
    """Reports how fast the lanes drain to load shedding, when there is enough to report."""
    try:
        with within(lambda_context.get_remaining_time_in_millis() / 1000 - LAST_WORDS_SECONDS):
            reported = report_throughput(worker.throughput, counter)
    except Exception:  # the deliveries are settled: raising would bring all of them back
        logger.exception("the throughput could not be reported")
        return
    for lane, work in reported.items():
        drain = ports.service[lane].concurrency * work.settled * 1000 / work.busy_milliseconds
        dimensions = {"service": logger.service, "lane": lane}
        with single_metric("DrainPerSecond", MetricUnit.CountPerSecond, drain, default_dimensions=dimensions):
            pass


def _come_back(record: Record, delay_seconds: int, cause: Exception) -> NoReturn:
    """Reports the record as failed, so that its message comes back after `delay_seconds` to the queue it came from."""
    try:
        worker.change_visibility(_lane_of(record) or record.queue, record.receipt_handle, delay_seconds)
    except Retryable as error:
        logger.warning("the message comes back after its visibility timeout", extra={"cause": str(error)})
    raise cause


_METRICS = {
    "done": "ImagesDone",
    "failed": "ImagesFailed",
    "gave_up": "ImagesFailed",
    "expired": "ImagesExpired",
}


@entry_point()
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    worker.register(context)
    answer = settle_each(read_records(event), lambda record: settle(record, context))
    _report_throughput(context)
    return answer
