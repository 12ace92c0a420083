"""PATCH /images/{id}: reschedules an image that is still scheduled to another time, or to now."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from darkroom.http.api import create_app, handles
from darkroom.http.images.documents import status_document
from darkroom.http.kernel.callers import caller_of
from darkroom.http.kernel.requests import json_body
from darkroom.http.kernel.responses import json_response
from darkroom.http.kernel.router import AnswerMetrics, Response
from darkroom.http.schedules.reschedules import read_reschedule
from darkroom.http.schedules.routes import PATCH_IMAGE
from darkroom.http.tenants.protection import protected
from darkroom.operations.schedules.reschedule_image import reschedule_image
from darkroom.telemetry import entry_point, logger
from darkroom.wiring.kernel.runtime import answering
from darkroom.wiring.schedules.reschedule_image import wire

ports, edge = wire()
app = create_app(within=answering, counted=AnswerMetrics(served="ImagesRescheduled", refused="ReschedulesRefused"))


@handles(app, PATCH_IMAGE, protected(edge.rate_limit))
def patch(image_id: str) -> Response:
    caller = caller_of(app)
    image = reschedule_image(
        ports, image_id, read_reschedule(json_body(app)), tenant_id=caller.tenant_id, tier=caller.tier
    )
    logger.info("moved", extra={"schedule": image.schedule})
    return json_response(HTTPStatus.OK, status_document(image, edge.outputs.url_of))


@entry_point(of_gateway=True)
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    return app.resolve(event, context)
