"""PATCH /images/{id}: moves what is still scheduled to another time, or to now."""

from __future__ import annotations

import json
from http import HTTPStatus
from typing import Any

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.logging import correlation_paths
from aws_lambda_powertools.metrics import MetricUnit
from aws_lambda_powertools.utilities.typing import LambdaContext

from darkroom import wiring
from darkroom.domain.errors import Rejected
from darkroom.domain.schedule import MAX_MOVE_BYTES, Timetable, read_timetable
from darkroom.http.documents import status_document
from darkroom.http.router import (
    announce_allowance,
    caller_of,
    create_app,
    handles,
    hold_to_allowance,
    json_body,
    json_response,
)
from darkroom.http.routes import PATCH_IMAGE
from darkroom.operations.move_image import move_image
from darkroom.telemetry import logger, metrics, tracer

ports = wiring.move_image()
app = create_app()

FIELDS = ("process_at", "delay", "expires_at")


@handles(app, PATCH_IMAGE)
def patch(image_id: str) -> Response[str]:
    caller = caller_of(app)
    announce_allowance(app, caller)
    hold_to_allowance(app, caller, buckets=ports.token_buckets, clock=wiring.clock)
    image = move_image(
        image_id,
        _timetable(json_body(app)),
        tenant_id=caller.tenant_id,
        tier=caller.tier,
        images=ports.images,
        lanes=ports.lanes,
        hold_queue=ports.hold_queue,
        admission=ports.admission,
        clock=wiring.clock,
    )
    logger.info("moved", extra={"image_id": image_id, "schedule": image.schedule})
    document = status_document(image, ports.outputs.url_of)
    return json_response(HTTPStatus.OK, document, {"Cache-Control": "no-store"})


def _timetable(body: bytes) -> Timetable:
    try:
        words = json.loads(body) if len(body) <= MAX_MOVE_BYTES else None
    except (ValueError, RecursionError):  # no JSON, or a thousand brackets
        words = None
    if (
        not isinstance(words, dict)
        or not words.keys() <= set(FIELDS)
        or not all(isinstance(word, str) for word in words.values())
    ):
        raise Rejected(
            "invalid_move",
            f"The body is a JSON object of strings, in at most {MAX_MOVE_BYTES} bytes, that says when: "
            '{"process_at": "2027-03-01T09:00:00Z"} or {"delay": "PT2H"}, and expires_at if it is to change.',
        )
    return read_timetable(**words)


@logger.inject_lambda_context(correlation_id_path=correlation_paths.API_GATEWAY_HTTP, clear_state=True)
@tracer.capture_lambda_handler(capture_response=False)
@metrics.log_metrics(capture_cold_start_metric=True)
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    answer = app.resolve(event, context)
    refused = answer["statusCode"] >= HTTPStatus.BAD_REQUEST
    metrics.add_metric("MovesRefused" if refused else "ImagesMoved", MetricUnit.Count, 1)
    return answer
