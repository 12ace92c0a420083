"""POST /uploads: announces a file that is too large for a request, and answers 201 with a form to upload it by."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.logging import correlation_paths
from aws_lambda_powertools.metrics import MetricUnit
from aws_lambda_powertools.utilities.typing import LambdaContext

from darkroom import wiring
from darkroom.domain.announcement import read_announcement
from darkroom.domain.instants import rfc3339
from darkroom.http.documents import (
    RETRY_AFTER_SECONDS,
    FormDocument,
    UploadDocument,
    retry_after_seconds,
    status_document,
    status_path,
)
from darkroom.http.router import (
    announce_allowance,
    caller_of,
    correlation_id_of,
    create_app,
    handles,
    hold_to_allowance,
    json_body,
    json_response,
)
from darkroom.http.routes import POST_UPLOAD
from darkroom.operations.begin_upload import Announced, begin_upload
from darkroom.ports import UploadForm
from darkroom.telemetry import logger, metrics, tracer

ports = wiring.begin_upload()
app = create_app()


@handles(app, POST_UPLOAD)
@tracer.capture_method(capture_response=False)
def post_upload() -> Response[str]:
    caller = caller_of(app)
    announce_allowance(app, caller)
    ports.admit()
    hold_to_allowance(app, caller, buckets=ports.token_buckets, clock=wiring.clock)
    begun = begin_upload(
        Announced(
            announcement=read_announcement(json_body(app)),
            tenant_id=caller.tenant_id,
            tier=caller.tier,
            correlation_id=correlation_id_of(app),
            idempotency_key=app.current_event.headers.get("idempotency-key"),
        ),
        max_bytes=ports.max_bytes,
        images=ports.images,
        uploads=ports.uploads,
        admission=ports.admission,
        clock=wiring.clock,
        randomness=wiring.randomness,
    )
    image = begun.image
    logger.info("announced", extra={"image_id": image.image_id, "replayed": begun.replayed})
    metrics.add_metric("UploadsRenewed" if begun.replayed else "UploadsBegun", MetricUnit.Count, 1)
    headers = {
        "Location": status_path(image.image_id),
        "Retry-After": str(retry_after_seconds(image, wiring.clock()) or RETRY_AFTER_SECONDS),
        "Cache-Control": "no-store",
    }
    if begun.replayed:
        headers["Idempotent-Replayed"] = "true"
    document: UploadDocument = {**status_document(image, ports.outputs.url_of), "upload": _written(begun.form)}
    return json_response(HTTPStatus.CREATED if begun.form else HTTPStatus.ACCEPTED, document, headers)


def _written(form: UploadForm | None) -> FormDocument | None:
    if form is None:
        return None
    return {"url": form.url, "fields": dict(form.fields), "expires_at": rfc3339(form.expires_at)}


@logger.inject_lambda_context(correlation_id_path=correlation_paths.API_GATEWAY_HTTP, clear_state=True)
@tracer.capture_lambda_handler(capture_response=False)
@metrics.log_metrics(capture_cold_start_metric=True)
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    answer = app.resolve(event, context)
    if answer["statusCode"] >= HTTPStatus.BAD_REQUEST:
        failed = answer["statusCode"] >= HTTPStatus.INTERNAL_SERVER_ERROR
        metrics.add_metric("UploadsFailed" if failed else "UploadsRefused", MetricUnit.Count, 1)
    return answer
