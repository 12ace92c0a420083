"""The lanes' worker: develops each delivered image; a failed record comes back later without its neighbours."""

from __future__ import annotations

import random
from typing import Any

from aws_lambda_powertools.metrics import MetricUnit
from aws_lambda_powertools.utilities.batch import BatchProcessor, EventType, process_partial_response
from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord
from aws_lambda_powertools.utilities.typing import LambdaContext

from darkroom import wiring
from darkroom.domain.errors import Retryable
from darkroom.domain.message import read_message
from darkroom.operations.transcode_image import Delivery, Finished, TryAgain, transcode_image
from darkroom.telemetry import logger, metrics, tracer

ports = wiring.transcode_image()
# A handler that raises because every record failed counts as a function error, and Lambda slows the whole lane down.
processor = BatchProcessor(event_type=EventType.SQS, raise_on_entire_batch_failure=False)


@tracer.capture_method(capture_response=False)
def record_handler(record: SQSRecord, lambda_context: LambdaContext) -> None:
    logger.remove_keys(["image_id", "lane", "run"])  # of the batch's record before this one
    logger.set_correlation_id(None)
    logger.append_keys(message_id=record.message_id, receive_count=record.attributes.approximate_receive_count)
    try:
        message = read_message(record.body)
        logger.append_keys(image_id=message.image_id, lane=message.lane, run=message.run)
        outcome = transcode_image(
            Delivery(
                message=message,
                receipt=f"{lambda_context.aws_request_id}/{record.message_id}",
                deadline=wiring.clock() + lambda_context.get_remaining_time_in_millis(),
                visibility_seconds=ports.visibility_seconds,
            ),
            images=ports.images,
            originals=ports.originals,
            outputs=ports.outputs,
            once=ports.once(lambda_context),
            clock=wiring.clock,
            unit_random=random.random(),
            limits=ports.limits,
        )
    except Exception:
        # The message stays hidden for its visibility timeout, comes back by itself and ends as a dead letter.
        logger.exception("delivery failed")
        metrics.add_metric("DeliveriesFailed", MetricUnit.Count, 1)
        raise
    match outcome:
        case Finished(image=image, reason=reason):
            if image is not None:
                logger.set_correlation_id(image.correlation_id)
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
            try:
                ports.hide_for(image.lane, record.receipt_handle, delay_seconds)
            except Retryable as error:
                logger.warning("the message comes back after its visibility timeout", extra={"cause": str(error)})
            raise cause


_METRICS = {"done": "ImagesDone", "failed": "ImagesFailed", "gave_up": "ImagesFailed"}


@logger.inject_lambda_context(clear_state=True)
@tracer.capture_lambda_handler(capture_response=False)
@metrics.log_metrics(capture_cold_start_metric=True)
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    return dict(
        process_partial_response(event=event, record_handler=record_handler, processor=processor, context=context)
    )
