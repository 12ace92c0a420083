"""Every minute: looks at each unfinished image whose time has come, and sends again what was lost on the way."""

from __future__ import annotations

from typing import Any

from aws_lambda_powertools.metrics import MetricUnit
from aws_lambda_powertools.utilities.typing import LambdaContext

from darkroom import wiring
from darkroom.operations.sweep_due_images import sweep_due_images
from darkroom.telemetry import logger, metrics, tracer

ports = wiring.sweep_due_images()

STOP_BEFORE_DEADLINE_MILLISECONDS = 10_000
"""One image takes at most a few seconds, retries included: a sweep ends in order, and the next one goes on."""


@logger.inject_lambda_context(clear_state=True)
@tracer.capture_lambda_handler(capture_response=False)
@metrics.log_metrics(capture_cold_start_metric=True)
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    sweep = sweep_due_images(
        images=ports.images,
        lanes=ports.lanes,
        clock=wiring.clock,
        out_of_time=lambda: context.get_remaining_time_in_millis() < STOP_BEFORE_DEADLINE_MILLISECONDS,
    )
    for image_id, error in sweep.errors.items():
        logger.error("an image could not be looked at", exc_info=error, extra={"image_id": image_id})
    summary = {"outcomes": dict(sweep.outcomes), "complete": sweep.complete}
    logger.info("swept", extra=summary)
    # Zero is emitted too: a metric that stops is how a sweeper that stopped is noticed.
    metrics.add_metric("ImagesRescued", MetricUnit.Count, sweep.outcomes["rescued"])
    return summary
