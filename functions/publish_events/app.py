"""The worker of the Images table's stream: publishes what each write has to tell."""

from __future__ import annotations

from typing import Any

from aws_lambda_powertools.metrics import MetricUnit
from aws_lambda_powertools.utilities.typing import LambdaContext

from darkroom.event_source import begin_again_at
from darkroom.operations.publish_events import publish_events
from darkroom.telemetry import entry_point, logger, metrics
from darkroom.wiring.publish_events import wire
from darkroom.wiring.runtime import within

ports, read_changes = wire()

LAST_WORDS_SECONDS = 1.0
"""The part of the function's time that the last AWS call leaves for the answer and the logs."""


@entry_point()
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    with within(context.get_remaining_time_in_millis() / 1000 - LAST_WORDS_SECONDS):
        publishing = publish_events(ports, read_changes(event))
    logger.info("published", extra={"events": dict(publishing.published), "set_aside": publishing.set_aside})
    metrics.add_metric("EventsPublished", MetricUnit.Count, publishing.published.total())
    if publishing.set_aside:
        logger.error("some events cannot be published", extra={"count": publishing.set_aside})
    if publishing.begin_again_at is not None:
        logger.warning("the stream begins again", extra={"cause": str(publishing.problem)})
        metrics.add_metric("EventsPostponed", MetricUnit.Count, 1)
    return begin_again_at(publishing.begin_again_at)
