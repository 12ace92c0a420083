"""The upload queue's worker: makes an original of each upload that S3 reports, and starts its processing."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from aws_lambda_powertools.metrics import MetricUnit
from aws_lambda_powertools.utilities.typing import LambdaContext

from darkroom.domain.kernel.errors import Retryable
from darkroom.domain.kernel.lanes import UPLOAD
from darkroom.domain.uploads.upload_notification import is_of_s3, read_notification, when_notification_returns
from darkroom.event_source import Record, read_records, settle_each
from darkroom.operations.kernel.check_message import check_message
from darkroom.operations.uploads.accept_upload import accept_upload
from darkroom.telemetry import entry_point, follow, lines_about, logger, metrics, report_rejected
from darkroom.wiring.kernel.runtime import within
from darkroom.wiring.uploads.accept_upload import wire

ports, checking, upload_queue = wire()

LAST_WORDS_SECONDS = 1.0
"""The part of the function's time that the last AWS call leaves for the answer and the logs."""

_METRICS = {"accepted": "UploadsAccepted", "failed": "ImagesFailed", "expired": "ImagesExpired"}


def settle(record: Record, lambda_context: LambdaContext) -> None:
    is_reminder, failure = False, None
    try:
        with within(lambda_context.get_remaining_time_in_millis() / 1000 - LAST_WORDS_SECONDS):
            mistrust = check_message(checking, UPLOAD, record, may_be_unsigned=is_of_s3)
            if mistrust is not None:  # guard: signatures-upload-queue
                report_rejected(mistrust)
                return
            notification = read_notification(record.body)
            is_reminder = notification.is_reminder
            metrics.add_metric("UploadsNotified", MetricUnit.Count, len(notification.image_ids))
            failure = _accept_all(notification.image_ids)
    except Exception as error:
        _report(error)
        failure = error
    if failure is None:
        return
    returns = when_notification_returns(
        failure, receive_count=record.receive_count, is_reminder=is_reminder, unit_random=random.random()
    )
    if returns is None:
        return
    if returns.in_seconds is not None:
        _come_back(record, returns.in_seconds)
    raise failure


def _report(failure: Exception) -> None:
    if isinstance(failure, Retryable):
        logger.warning("notification postponed", extra={"cause": str(failure)})
        metrics.add_metric("NotificationsPostponed", MetricUnit.Count, 1)
    else:
        logger.error("notification failed", exc_info=failure)
        metrics.add_metric("NotificationsFailed", MetricUnit.Count, 1)


def _accept_all(image_ids: Sequence[str]) -> Exception | None:
    """Accepts each upload, even if earlier ones failed, and returns what went wrong with any, a bug before an
    outage."""
    failures: list[Exception] = []
    for image_id in image_ids:
        with lines_about(image_id=image_id):
            try:
                _accept(image_id)
            except Exception as error:  # guard: isolated-upload-of-several
                _report(error)
                failures.append(error)
    return min(failures, key=lambda failure: isinstance(failure, Retryable), default=None)


def _accept(image_id: str) -> None:
    acceptance = accept_upload(ports, image_id, on_row=follow)
    logger.info("notification settled", extra={"outcome": acceptance.outcome})
    metrics.add_metric(_METRICS.get(acceptance.outcome, "NotificationsWithoutWork"), MetricUnit.Count, 1)


def _come_back(record: Record, seconds: int) -> None:
    try:
        upload_queue.postpone(record.receipt_handle, seconds)
    except Retryable as error:
        logger.warning("the notification comes back after its visibility timeout", extra={"cause": str(error)})


@entry_point()
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    def settle_one(record: Record) -> None:
        with lines_about(message_id=record.message_id, receive_count=record.receive_count):
            settle(record, context)

    return settle_each(read_records(event), settle_one)
