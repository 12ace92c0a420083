"""PATCH /images/{id}: gives an image that is still scheduled another time, or one that is done another visibility."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from darkroom.domain.kernel.tenants import Caller
from darkroom.domain.kernel.visibility import Visibility
from darkroom.http.api import create_app, handles
from darkroom.http.images.documents import status_document
from darkroom.http.images.responses import headers_of_accepted
from darkroom.http.images.works import not_done
from darkroom.http.kernel.callers import caller_of
from darkroom.http.kernel.requests import json_body
from darkroom.http.kernel.responses import json_response
from darkroom.http.kernel.router import AnswerMetrics, Response
from darkroom.http.schedules.reschedules import read_change
from darkroom.http.schedules.routes import PATCH_IMAGE
from darkroom.http.tenants.protection import protected
from darkroom.operations.images.add_variants import NotDone
from darkroom.operations.images.change_visibility import change_visibility
from darkroom.operations.schedules.reschedule_image import reschedule_image
from darkroom.telemetry import entry_point, logger
from darkroom.wiring.kernel.runtime import answering
from darkroom.wiring.schedules.reschedule_image import wire

ports, visibility_ports, edge = wire()
app = create_app(within=answering, counted=AnswerMetrics(served="ImagesRescheduled", refused="ReschedulesRefused"))


@handles(app, PATCH_IMAGE, protected(edge.rate_limit))
def patch(image_id: str) -> Response:
    caller, change = caller_of(app), read_change(json_body(app))
    if isinstance(change, Visibility):
        return _change_visibility(image_id, change, caller)
    image = reschedule_image(ports, image_id, change, tenant_id=caller.tenant_id, tier=caller.tier)
    logger.info("moved", extra={"schedule": image.schedule})
    return json_response(HTTPStatus.OK, status_document(image, edge.outputs.url_of, edge=edge.urls))


def _change_visibility(image_id: str, wanted: Visibility, caller: Caller) -> Response:
    try:
        image = change_visibility(
            visibility_ports,
            image_id,
            wanted,
            tenant_id=caller.tenant_id,
            tier=caller.tier,
            moved_to=caller.lane,
        )
    except NotDone as error:
        raise not_done(error.image, "Visibility can be changed of", now=ports.clock()) from error
    logger.info("visibility", extra={"wanted": wanted.value, "run": image.run})
    document = status_document(image, edge.outputs.url_of, edge=edge.urls)
    if image.work is None:
        return json_response(HTTPStatus.OK, document)
    return json_response(HTTPStatus.ACCEPTED, document, headers_of_accepted(image, replayed=False, now=ports.clock()))


@entry_point(of_gateway=True)
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    return app.resolve(event, context)
