"""The hold queue's worker: writes far-off images down together, and sets one execution a batch to wake them."""

from __future__ import annotations

from typing import Any

from aws_lambda_powertools.metrics import MetricUnit
from aws_lambda_powertools.utilities.typing import LambdaContext

from darkroom import wiring
from darkroom.domain.errors import Retryable
from darkroom.domain.hold import Entry, UnreadableBatch, read_batch_letter
from darkroom.domain.message import UnreadableMessage, read_message
from darkroom.operations.hold_images import hold_images, wake_again
from darkroom.telemetry import logger, metrics, tracer

ports = wiring.hold_images()

STOP_BEFORE_DEADLINE_MILLISECONDS = 20_000
"""One batch takes at most its two calls, retries included; what is left comes again."""


@logger.inject_lambda_context(clear_state=True)
@tracer.capture_lambda_handler(capture_response=False)
@metrics.log_metrics(capture_cold_start_metric=True)
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    entries, message_ids, failed, woken = [], [], [], 0
    for record in event["Records"]:
        try:
            letter = read_batch_letter(record["body"])
            if letter is not None:  # an operator has moved it back
                woken += wake_again(letter.batch, holds=ports.holds, alarms=ports.alarms)
                continue
            message = read_message(record["body"])
        except Retryable as error:
            logger.warning("a batch could not be set to wake", extra={"cause": str(error)})
            failed.append(record["messageId"])
            continue
        except (UnreadableMessage, UnreadableBatch) as error:
            logger.error("unreadable message", exc_info=error, extra={"message_id": record["messageId"]})
            failed.append(record["messageId"])
            continue
        # One without a time was put here by hand: its lane is where it belongs, now.
        entry = Entry(message=message.model_copy(update={"process_at": None}), process_at=message.process_at or 0)
        entries.append(entry)
        message_ids.append(record["messageId"])
    holding = hold_images(
        entries,
        lanes=ports.lanes,
        holds=ports.holds,
        alarms=ports.alarms,
        clock=wiring.clock,
        out_of_time=lambda: context.get_remaining_time_in_millis() < STOP_BEFORE_DEADLINE_MILLISECONDS,
    )
    for cause in holding.causes:
        logger.warning("some could not be held", extra={"cause": str(cause)})
    failed += [message_ids[place] for place in holding.failed]
    logger.info(
        "held",
        extra={
            "images": holding.held,
            "batches": holding.batches,
            "sent": holding.sent,
            "woken_again": woken,
            "failed": len(failed),
        },
    )
    metrics.add_metric("ImagesHeld", MetricUnit.Count, holding.held)
    metrics.add_metric("BatchesHeld", MetricUnit.Count, holding.batches)
    return {"batchItemFailures": [{"itemIdentifier": message_id} for message_id in failed]}
