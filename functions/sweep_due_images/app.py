"""Every minute: looks at each image whose time has come and mends what was lost on the way; measures what waits."""

from __future__ import annotations

from typing import Any

from aws_lambda_powertools.metrics import MetricUnit, single_metric
from aws_lambda_powertools.utilities.typing import LambdaContext

from darkroom import wiring
from darkroom.domain.errors import Retryable
from darkroom.operations.sweep_due_images import oldest_unfinished_seconds, sweep_due_images
from darkroom.telemetry import logger, metrics, tracer

ports = wiring.sweep_due_images()

STOP_BEFORE_DEADLINE_MILLISECONDS = 10_000
"""One image takes at most a few seconds, retries included: a sweep ends in order, and the next one goes on."""


def measure() -> None:
    """Emits what the alarms watch, zero included: a metric that stops is how a sweeper that stopped is noticed."""
    try:
        for lane, seconds in oldest_unfinished_seconds(ports.images, ports.clock).items():
            _emit("OldestUnfinishedSeconds", MetricUnit.Seconds, seconds, lane=lane)
    except Retryable as error:  # its alarm takes silence for trouble
        logger.warning("the table does not tell the oldest image", extra={"cause": str(error)})
    for queue in ports.dead_letters.queues:
        try:
            _emit("DeadLetters", MetricUnit.Count, ports.dead_letters.depth(queue), queue=queue)
        except Retryable as error:
            logger.warning("a queue of dead letters does not answer", extra={"queue": queue, "cause": str(error)})


def _emit(name: str, unit: MetricUnit, value: float, **dimension: str) -> None:
    with single_metric(name, unit, value, default_dimensions={"service": logger.service, **dimension}):
        pass


@logger.inject_lambda_context(clear_state=True)
@tracer.capture_lambda_handler(capture_response=False)
@metrics.log_metrics(capture_cold_start_metric=True)
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    measure()  # first: a sweep that has much to do must not keep the alarms waiting
    sweep = sweep_due_images(
        ports,
        out_of_time=lambda: context.get_remaining_time_in_millis() < STOP_BEFORE_DEADLINE_MILLISECONDS,
    )
    for image_id, error in sweep.errors.items():
        logger.error("an image could not be looked at", exc_info=error, extra={"image_id": image_id})
    summary = {"outcomes": dict(sweep.outcomes), "complete": sweep.complete}
    logger.info("swept", extra=summary)
    metrics.add_metric("ImagesRescued", MetricUnit.Count, sweep.outcomes["rescued"])
    return summary
