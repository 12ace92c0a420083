"""The worker of the edge's queue: has the edge forget images whose objects were removed."""

from __future__ import annotations

from typing import Any

from aws_lambda_powertools.metrics import MetricUnit
from aws_lambda_powertools.utilities.typing import LambdaContext

from darkroom.domain.edge.forgetting import image_id_in
from darkroom.event_source import Record, come_back, read_records
from darkroom.operations.edge.invalidate_edge import invalidate_edge
from darkroom.telemetry import emit_unless_zero, entry_point, logger
from darkroom.wiring.edge.invalidate_edge import wire
from darkroom.wiring.kernel.runtime import within

ports = wire()

LAST_WORDS_SECONDS = 1.0
"""The part of the function's time that the last AWS call leaves for the answer and the logs."""


@entry_point(has_metrics=False)
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    failed: list[Record] = []
    owed: dict[str, str] = {}
    for record in read_records(event):
        try:
            owed[record.message_id] = image_id_in(record.body)
        except ValueError as error:  # guard: isolated-edge-message
            logger.error("a message was not understood", extra={"message_id": record.message_id, "cause": str(error)})
            failed.append(record)
    # What this raises is an error of the function: all messages come back, and an alarm counts it.
    with within(context.get_remaining_time_in_millis() / 1000 - LAST_WORDS_SECONDS):
        forgetting = invalidate_edge(ports, owed)
    logger.info("the edge was told", extra=vars(forgetting))
    emit_unless_zero("InvalidationsPaid", MetricUnit.Count, forgetting.invalidated)
    emit_unless_zero("InvalidationsSkipped", MetricUnit.Count, forgetting.skipped)
    return come_back(failed)
