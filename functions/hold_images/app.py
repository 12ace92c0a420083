"""The hold queue's worker: stores far-off images in batches, and starts one execution per batch to wake it."""

from __future__ import annotations

from itertools import groupby
from typing import Any

from aws_lambda_powertools.metrics import MetricUnit
from aws_lambda_powertools.utilities.typing import LambdaContext

from darkroom.domain.kernel.errors import Retryable, Unplaceable
from darkroom.domain.kernel.message import UnreadableMessage, read_message
from darkroom.domain.schedules.hold import UnreadableBatch
from darkroom.event_source import come_back, read_records
from darkroom.operations.schedules.hold_images import hold_images
from darkroom.telemetry import entry_point, logger, metrics, report_rejected
from darkroom.wiring.schedules.hold_images import wire

ports = wire()

STOP_BEFORE_DEADLINE_MILLISECONDS = 20_000
"""One batch takes at most its two calls, retries included; what is left comes again."""


def _image_id_in(body: str) -> str | None:
    try:
        return read_message(body).image_id
    except UnreadableMessage:
        return None


@entry_point()
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    records = read_records(event)
    holding = hold_images(
        ports,
        records,
        out_of_time=lambda: context.get_remaining_time_in_millis() < STOP_BEFORE_DEADLINE_MILLISECONDS,
    )
    for place, mistrust in holding.rejected.items():
        report_rejected(mistrust, message_id=records[place].message_id)
    bad = 0
    # An error of a whole batch concerns thousands of messages, and is logged once.
    for error, group in groupby(holding.failed.items(), key=lambda item: item[1]):
        places = [place for place, _ in group]
        fields = {"message_id": records[places[0]].message_id, "messages": len(places), "reason": str(error)}
        if len(places) == 1 and (image_id := _image_id_in(records[places[0]].body)) is not None:
            fields["image_id"] = image_id
        match error:
            case Retryable():
                logger.warning("some could not be held", extra=fields)
            case UnreadableMessage() | Unplaceable() | UnreadableBatch():
                logger.error("a message that can never be held", extra=fields)
                bad += len(places)
            case _:
                logger.error("some could not be held", exc_info=error, extra=fields)
                bad += len(places)
    logger.info(
        "held",
        extra={
            "images": holding.held,
            "batches": holding.batches,
            "sent": holding.sent,
            "woken_again": holding.woken,
            "failed": len(holding.failed),
        },
    )
    metrics.add_metric("ImagesHeld", MetricUnit.Count, holding.held)
    metrics.add_metric("BatchesHeld", MetricUnit.Count, holding.batches)
    metrics.add_metric("HoldMessagesBad", MetricUnit.Count, bad)
    return come_back(records[place] for place in holding.failed)
