"""GET /i/{id}/{name} at the edge: leads to the present public URL of a variant."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from darkroom.domain.kernel.errors import Retryable
from darkroom.operations.edge.redirect_image import redirect_image
from darkroom.telemetry import entry_point, logger
from darkroom.wiring.edge.redirect_image import wire
from darkroom.wiring.kernel.runtime import answering

ports = wire()

LAST_WORDS_SECONDS = 1.0
"""The part of the function's time that the last AWS call leaves for the answer and the logs."""


@entry_point(has_metrics=False)
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    try:
        with answering(context.get_remaining_time_in_millis() / 1000 - LAST_WORDS_SECONDS):
            path = redirect_image(ports, event["rawPath"])
    except Retryable as outage:
        logger.warning("not redirected", extra={"cause": str(outage)})
        # guard: edge-outage-not-cached
        return answer(HTTPStatus.SERVICE_UNAVAILABLE, {"Retry-After": "5", "Cache-Control": "no-store"})
    if path is None:
        return answer(HTTPStatus.NOT_FOUND, {"Cache-Control": "public, max-age=10"})
    return answer(HTTPStatus.FOUND, {"Location": path, "Cache-Control": "public, max-age=60"})


def answer(status: HTTPStatus, headers: dict[str, str]) -> dict[str, Any]:
    """The function URL's answer, without a body."""
    return {"statusCode": status.value, "headers": headers}
