"""GET /t/…, behind the edge: makes a variant that somebody asks for and that the store does not have."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from aws_lambda_powertools.metrics import MetricUnit
from aws_lambda_powertools.utilities.typing import LambdaContext

from darkroom.domain.kernel.errors import Rejected, Retryable, TurnedAway
from darkroom.http.edge.variants import not_served, postponed, refused, variant_answer
from darkroom.operations.edge.make_variant import NotServed, make_variant
from darkroom.telemetry import entry_point, logger, metrics
from darkroom.wiring.edge.make_variant import wire
from darkroom.wiring.kernel.runtime import answering

ports = wire()

LAST_WORDS_SECONDS = 1.0
"""The part of the function's time that the last AWS call leaves for the answer and the logs."""

OUTAGE_SECONDS = 5
"""When to ask again after an outage that says nothing of its end."""


@entry_point()
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    remaining_milliseconds = context.get_remaining_time_in_millis()
    try:
        with answering(remaining_milliseconds / 1000 - LAST_WORDS_SECONDS):
            variant = make_variant(
                ports, event["rawPath"], owner=context.aws_request_id, deadline=ports.clock() + remaining_milliseconds
            )
    except NotServed:
        metrics.add_metric("VariantsNotServed", MetricUnit.Count, 1)
        return not_served()
    except Rejected as refusal:
        metrics.add_metric("VariantsNotServed", MetricUnit.Count, 1)
        return refused(HTTPStatus.BAD_REQUEST, refusal.code, refusal.message)
    except TurnedAway as turned:
        metrics.add_metric("VariantsPostponed", MetricUnit.Count, 1)
        return postponed(
            HTTPStatus.TOO_MANY_REQUESTS, turned.code, turned.message, retry_after_seconds=turned.retry_after_seconds
        )
    except Retryable as outage:
        metrics.add_metric("VariantsPostponed", MetricUnit.Count, 1)
        logger.warning("variant not made", extra={"cause": str(outage)})
        seconds = outage.retry_after_seconds or OUTAGE_SECONDS
        return postponed(HTTPStatus.SERVICE_UNAVAILABLE, "unavailable", "Ask again later.", retry_after_seconds=seconds)
    metrics.add_metric("VariantsServed", MetricUnit.Count, 1)
    return variant_answer(variant, for_head=event["requestContext"]["http"]["method"] == "HEAD")
