"""One window of an execution of hold_batch: releases the images of its batch, as far as their lane can hold them."""

from __future__ import annotations

from collections import Counter
from typing import Any

from aws_lambda_powertools.metrics import MetricUnit
from aws_lambda_powertools.utilities.typing import LambdaContext

from darkroom.domain.kernel.instants import timestamp
from darkroom.domain.schedules.release_event import ReleaseEvent
from darkroom.operations.schedules.release_images import release_images
from darkroom.telemetry import entry_point, logger, metrics, report_unreadable
from darkroom.wiring.schedules.release_images import wire

ports = wire()

STOP_BEFORE_DEADLINE_MILLISECONDS = 60_000
"""A hundred images take at most their dozen calls, retries included; the next window continues after them."""

IDS_LOGGED = 20
"""How many of the images that were left out for the same reason are logged by id."""


@entry_point()
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    window = ReleaseEvent.model_validate(event)
    logger.append_keys(key=window.key, position=window.position)
    released = release_images(
        ports,
        window.key,
        position=window.position,
        begins_at=window.begins_at,
        out_of_time=lambda: context.get_remaining_time_in_millis() < STOP_BEFORE_DEADLINE_MILLISECONDS,
    )
    for reason, count in Counter(released.skipped.values()).items():
        some = [image_id for image_id, why in released.skipped.items() if why == reason][:IDS_LOGGED]
        logger.error(
            "images that can be brought to no lane are left to the sweeper",
            extra={"reason": reason, "images": count, "image_ids": some},
        )
    if released.unreadable:
        report_unreadable(released.unreadable)
    logger.info(
        "released",
        extra={
            "sent": released.sent,
            "held_again": released.held,
            "stale": released.stale,
            "skipped": len(released.skipped),
            "done": released.done,
            "lateness_seconds": released.latest_seconds,
        },
    )
    metrics.add_metric("ImagesReleased", MetricUnit.Count, released.sent)
    metrics.add_metric("ImagesSkipped", MetricUnit.Count, len(released.skipped))
    if released.sent:
        metrics.add_metric("ReleaseLatenessSeconds", MetricUnit.Seconds, released.latest_seconds)
    return {
        "key": window.key,
        "position": released.position,
        "begins_at": released.begins_at,
        "wake_at": timestamp(released.wake_at),
        "done": released.done,
    }
