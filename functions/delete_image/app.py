"""DELETE /images/{id}: deletes an image; its objects are removed within minutes."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from darkroom.domain.kernel.instants import rfc3339
from darkroom.http.api import create_app, handles
from darkroom.http.images.routes import DELETE_IMAGE
from darkroom.http.kernel.callers import caller_of
from darkroom.http.kernel.headers import EDGE_UNTIL
from darkroom.http.kernel.responses import NOT_STORED
from darkroom.http.kernel.router import AnswerMetrics, Response
from darkroom.http.tenants.protection import protected
from darkroom.operations.images.delete_image import delete_image, edge_keeps_until
from darkroom.telemetry import entry_point, logger
from darkroom.wiring.images.delete_image import wire
from darkroom.wiring.kernel.runtime import answering

ports, edge, rate_limit = wire()
app = create_app(within=answering, counted=AnswerMetrics(served="ImagesDeleted", refused="DeletionsRefused"))


@handles(app, DELETE_IMAGE, protected(rate_limit))
def delete(image_id: str) -> Response:
    tombstone = delete_image(ports, image_id, tenant_id=caller_of(app).tenant_id)
    logger.info("deleted")
    headers, until = dict(NOT_STORED), edge_keeps_until(edge, tombstone)
    if until is not None:
        headers[EDGE_UNTIL.name] = rfc3339(until)
    return Response(status_code=HTTPStatus.NO_CONTENT.value, headers=headers)


@entry_point(of_gateway=True)
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    return app.resolve(event, context)
