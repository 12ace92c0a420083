"""The upload queue's worker: makes an original of each upload that S3 tells of, and begins its work."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from aws_lambda_powertools.metrics import MetricUnit
from aws_lambda_powertools.utilities.batch import BatchProcessor, EventType, process_partial_response
from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord
from aws_lambda_powertools.utilities.typing import LambdaContext

from darkroom import wiring
from darkroom.domain.arrival import read_news
from darkroom.domain.errors import Retryable
from darkroom.domain.retry import MAX_RECEIVES, RetryPolicy
from darkroom.operations.admit_upload import admit_upload
from darkroom.telemetry import entry_point, logger, metrics, tracer

ports = wiring.admit_upload()
# A handler that raises because every record failed counts as a function error, and Lambda slows the whole queue down.
processor = BatchProcessor(event_type=EventType.SQS, raise_on_entire_batch_failure=False)

LAST_WORDS_SECONDS = 1.0
"""What the last call to AWS leaves of the function's time: the answer and the logs."""

_METRICS = {"admitted": "UploadsAdmitted", "failed": "ImagesFailed", "expired": "ImagesExpired"}


@tracer.capture_method(capture_response=False)
def record_handler(record: SQSRecord, lambda_context: LambdaContext) -> None:
    logger.remove_keys(["image_id"])  # of the batch's record before this one
    logger.set_correlation_id(None)
    receive_count = int(record.attributes.approximate_receive_count)
    logger.append_keys(message_id=record.message_id, receive_count=receive_count)
    is_last_receive, is_reminder = receive_count >= MAX_RECEIVES, False
    try:
        news = read_news(record.body)
        is_reminder = news.is_reminder
        metrics.add_metric("NewsOfUploads", MetricUnit.Count, len(news.image_ids))
        with wiring.within(lambda_context.get_remaining_time_in_millis() / 1000 - LAST_WORDS_SECONDS):
            _admit_all(news.image_ids)
    except Retryable as outage:
        logger.warning("news put off", extra={"cause": str(outage)})
        metrics.add_metric("NewsPutOff", MetricUnit.Count, 1)
        # After its last receive it would come back as a dead letter of an upload that has nothing wrong with it. It may
        # go: the row is due for a look, and the sweeper finds what has come.
        if not is_last_receive:
            delay_seconds = RetryPolicy().delay_seconds(receive_count, random.random())
            _come_back(record, max(delay_seconds, outage.retry_after_seconds))
            raise
    except Exception:
        # The news stays hidden for its visibility timeout, comes back by itself and ends as a dead letter: one for each
        # event of S3, and none for the sweeper's reminders, of which more come.
        logger.exception("news failed")
        metrics.add_metric("NewsFailed", MetricUnit.Count, 1)
        if not (is_reminder and is_last_receive):
            raise


def _admit_all(image_ids: Sequence[str]) -> None:
    """Admits each, whatever became of those before it; raises what went wrong with any, a bug before an outage."""
    failures: list[Exception] = []
    for image_id in image_ids:
        try:
            ports.admit()
            _admit(image_id)
        except Exception as error:
            failures.append(error)
    if failures:
        raise min(failures, key=lambda failure: isinstance(failure, Retryable))


def _admit(image_id: str) -> None:
    logger.append_keys(image_id=image_id)
    admission = admit_upload(image_id, desk=ports.desk)
    if admission.image is not None:
        logger.set_correlation_id(admission.image.correlation_id)
    logger.info("news settled", extra={"outcome": admission.outcome})
    metrics.add_metric(_METRICS.get(admission.outcome, "NewsWithoutWork"), MetricUnit.Count, 1)


def _come_back(record: SQSRecord, seconds: int) -> None:
    try:
        ports.upload_queue.put_off(record.receipt_handle, seconds)
    except Retryable as error:
        logger.warning("the news comes back after its visibility timeout", extra={"cause": str(error)})


@entry_point()
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    return dict(
        process_partial_response(event=event, record_handler=record_handler, processor=processor, context=context)
    )
