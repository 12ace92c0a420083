"""Every minute: looks at all bulk work that is due."""

from __future__ import annotations

from typing import Any

from aws_lambda_powertools.metrics import MetricUnit
from aws_lambda_powertools.utilities.typing import LambdaContext

from darkroom.operations.bulk.sweep_due_bulk import sweep_due_bulk
from darkroom.telemetry import emit_unless_zero, entry_point, logger, report_unreadable
from darkroom.wiring.bulk.sweep_due_bulk import wire
from darkroom.wiring.kernel.runtime import within

ports = wire()

STOP_BEFORE_DEADLINE_MILLISECONDS = 10_000
"""Fifty images take at most a few seconds, retries included: a sweep ends cleanly, and the next one continues."""

KEPT_FOR_THE_REPORT_SECONDS = 4.0
"""How long before its deadline a sweep makes no further call: what it did and what it did not is always told."""


@entry_point(has_metrics=False)
def handler(event: object, context: LambdaContext) -> dict[str, Any]:
    with within(context.get_remaining_time_in_millis() / 1000 - KEPT_FOR_THE_REPORT_SECONDS):
        sweep = sweep_due_bulk(
            ports, out_of_time=lambda: context.get_remaining_time_in_millis() < STOP_BEFORE_DEADLINE_MILLISECONDS
        )
    report_unreadable(sweep.unreadable)
    emit_unless_zero("ConfirmedDifferences", MetricUnit.Count, sweep.differences)
    for place, error in sweep.errors.items():
        logger.error("bulk work could not be looked at", exc_info=error, extra={"batch_id": place})
    summary = {"outcomes": dict(sweep.outcomes), "complete": sweep.complete}
    logger.info("swept", extra=summary)
    return summary
