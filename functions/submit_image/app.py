"""POST /images: accepts a photo and answers 202 with the place to ask about it."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.logging import correlation_paths
from aws_lambda_powertools.metrics import MetricUnit
from aws_lambda_powertools.utilities.typing import LambdaContext

from darkroom import wiring
from darkroom.domain.schedule import read_timetable
from darkroom.http.documents import RETRY_AFTER_SECONDS, retry_after_seconds, status_document, status_path
from darkroom.http.forms import file_in_form, is_form
from darkroom.http.router import (
    announce_allowance,
    caller_of,
    correlation_id_of,
    create_app,
    handles,
    hold_to_allowance,
    json_response,
    raw_body,
)
from darkroom.http.routes import POST_IMAGE
from darkroom.operations.submit_image import Upload, submit_image
from darkroom.telemetry import logger, metrics, tracer

ports = wiring.submit_image()
app = create_app()


@handles(app, POST_IMAGE)
@tracer.capture_method(capture_response=False)
def post_image() -> Response[str]:
    request = app.current_event
    query = request.query_string_parameters
    content_type = request.headers.get("content-type", "")
    caller = caller_of(app)
    announce_allowance(app, caller)
    ports.admit()
    hold_to_allowance(app, caller, buckets=ports.token_buckets, clock=wiring.clock)
    body = raw_body(app)
    accepted = submit_image(
        Upload(
            body=file_in_form(body, content_type) if is_form(content_type) else body,
            tenant_id=caller.tenant_id,
            tier=caller.tier,
            correlation_id=correlation_id_of(app),
            preset=query.get("preset"),
            variants=query.get("variants"),
            recipe=query.get("recipe"),
            idempotency_key=request.headers.get("idempotency-key"),
            timetable=read_timetable(
                process_at=query.get("process_at"), delay=query.get("delay"), expires_at=query.get("expires_at")
            ),
        ),
        input_formats=ports.input_formats,
        images=ports.images,
        originals=ports.originals,
        lanes=ports.lanes,
        hold_queue=ports.hold_queue,
        admission=ports.admission,
        clock=wiring.clock,
        randomness=wiring.randomness,
    )
    image = accepted.image
    logger.info("accepted", extra={"image_id": image.image_id, "replayed": accepted.replayed})
    metrics.add_metric("ImagesReplayed" if accepted.replayed else "ImagesAccepted", MetricUnit.Count, 1)
    headers = {
        "Location": status_path(image.image_id),
        "Retry-After": str(retry_after_seconds(image, wiring.clock()) or RETRY_AFTER_SECONDS),
        "Cache-Control": "no-store",
    }
    if accepted.replayed:
        headers["Idempotent-Replayed"] = "true"
    return json_response(HTTPStatus.ACCEPTED, status_document(image, ports.outputs.url_of), headers)


@logger.inject_lambda_context(correlation_id_path=correlation_paths.API_GATEWAY_HTTP, clear_state=True)
@tracer.capture_lambda_handler(capture_response=False)
@metrics.log_metrics(capture_cold_start_metric=True)
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    answer = app.resolve(event, context)
    if answer["statusCode"] >= HTTPStatus.BAD_REQUEST:
        failed = answer["statusCode"] >= HTTPStatus.INTERNAL_SERVER_ERROR
        metrics.add_metric("UploadsFailed" if failed else "UploadsRefused", MetricUnit.Count, 1)
    return answer
