"""DELETE /images/{id}: withdraws an image; what lies in the stores is removed within minutes."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.logging import correlation_paths
from aws_lambda_powertools.metrics import MetricUnit
from aws_lambda_powertools.utilities.typing import LambdaContext

from darkroom import wiring
from darkroom.http.router import caller_of, create_app, handles
from darkroom.http.routes import DELETE_IMAGE
from darkroom.operations.delete_image import delete_image
from darkroom.telemetry import logger, metrics, tracer

images = wiring.delete_image()
app = create_app()


@handles(app, DELETE_IMAGE)
def delete(image_id: str) -> Response[str]:
    delete_image(image_id, tenant_id=caller_of(app).tenant_id, images=images, clock=wiring.clock)
    logger.info("deleted", extra={"image_id": image_id})
    return Response(status_code=HTTPStatus.NO_CONTENT.value, headers={"Cache-Control": "no-store"})


@logger.inject_lambda_context(correlation_id_path=correlation_paths.API_GATEWAY_HTTP, clear_state=True)
@tracer.capture_lambda_handler(capture_response=False)
@metrics.log_metrics(capture_cold_start_metric=True)
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    answer = app.resolve(event, context)
    refused = answer["statusCode"] >= HTTPStatus.BAD_REQUEST
    metrics.add_metric("DeletionsRefused" if refused else "ImagesDeleted", MetricUnit.Count, 1)
    return answer
