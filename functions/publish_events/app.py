"""The worker of the tables' streams: publishes what each write has to tell."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from aws_lambda_powertools.metrics import MetricUnit
from aws_lambda_powertools.utilities.typing import LambdaContext

from darkroom.domain.bulk.batches import is_batch_id
from darkroom.domain.bulk.schedules import is_schedule_id
from darkroom.domain.images.image import Image
from darkroom.domain.kernel.ids import is_image_id
from darkroom.event_source import begin_again_at
from darkroom.operations.events.publish_events import publish_events
from darkroom.ports.events import RowChange
from darkroom.telemetry import entry_point, follow, lines_about, logger, metrics
from darkroom.wiring.events.publish_events import wire
from darkroom.wiring.kernel.runtime import within

ports, read_changes = wire()

LAST_WORDS_SECONDS = 1.0
"""The part of the function's time that the last AWS call leaves for the answer and the logs."""


def log_change(log: Callable[..., None], change: RowChange, message: str, **details: str) -> None:
    """Logs a line about one write."""
    kinds = {"image_id": is_image_id, "batch_id": is_batch_id, "schedule_id": is_schedule_id}
    name = next((name for name, is_one in kinds.items() if is_one(change.subject)), "webhook_id")
    with lines_about(**{name: change.subject}):
        for row in (change.before, change.after):  # a tombstone has forgotten the request, the row before it has not
            if isinstance(row, Image):
                follow(row)
        log(message, extra=details)


@entry_point()
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    changes = read_changes(event)
    with within(context.get_remaining_time_in_millis() / 1000 - LAST_WORDS_SECONDS):
        publishing = publish_events(ports, changes)
    for place, published_event in publishing.events.items():
        log_change(
            logger.info,
            changes[place],
            "event published",
            event_id=published_event.event_id,
            type=published_event.type.value,
        )
    for place, reason in publishing.set_aside.items():
        log_change(logger.error, changes[place], "an event cannot be published", reason=reason)
    metrics.add_metric("EventsPublished", MetricUnit.Count, publishing.published.total())
    if publishing.begin_again_at is not None:
        logger.warning("the stream begins again", extra={"cause": str(publishing.problem)})
        metrics.add_metric("EventsPostponed", MetricUnit.Count, 1)
    return begin_again_at(publishing.begin_again_at)
