"""POST /images: accepts a photo, or the URL of one, and answers 202 with the address of its status; POST
/images/{id}/variants, which accepts more variants of one that is done; and POST /images/{id}/edits."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from aws_lambda_powertools.metrics import MetricUnit
from aws_lambda_powertools.utilities.typing import LambdaContext

from darkroom.domain.images.image import Image
from darkroom.domain.images.order import no_imports
from darkroom.domain.tenants.rate_limits import Policy, cost_of_file
from darkroom.http.api import create_app, handles
from darkroom.http.images.additions import POST_VARIANTS, read_addition
from darkroom.http.images.documents import status_document
from darkroom.http.images.edits import POST_EDIT, read_edits
from darkroom.http.images.request_models import order_in
from darkroom.http.images.responses import headers_of_accepted
from darkroom.http.images.routes import POST_IMAGE
from darkroom.http.images.works import not_done
from darkroom.http.kernel.callers import caller_of
from darkroom.http.kernel.forms import file_in_form, is_form
from darkroom.http.kernel.parts import PhotosByUrl
from darkroom.http.kernel.requests import (
    body_bytes,
    correlation_id_of,
    idempotency_key_of,
    is_json,
    json_body,
    raw_body,
    refuse_damaged_file,
)
from darkroom.http.kernel.responses import json_response
from darkroom.http.kernel.router import AnswerMetrics, Response, Router
from darkroom.http.tenants.protection import Price, protected
from darkroom.http.tenants.upload_tokens import refusal, refuse_order_beside_token, upload_token_of
from darkroom.operations.images.add_variants import NotDone, VariantsRequest, add_variants
from darkroom.operations.images.check_order import Accepted
from darkroom.operations.images.edit_image import EditRequest, edit_image
from darkroom.operations.images.submit_image import PhotoUpload, submit_image
from darkroom.telemetry import entry_point, logger, metrics
from darkroom.wiring.images.submit_image import wire
from darkroom.wiring.kernel.parts import load_part
from darkroom.wiring.kernel.runtime import answering

ports, change_ports, fetch_ports, edge = wire()
by_url: PhotosByUrl | None = fetch_ports and load_part("http.imports.for_core").PhotosByUrl(fetch_ports)
app = create_app(within=answering, counted=AnswerMetrics(refused="UploadsRefused", failed="UploadsFailed"))


def cost_of_upload(app: Router) -> int:
    """What the file costs; a URL in a stack that fetches none, what every request does."""
    if not is_of_url(app):
        return cost_of_file(body_bytes(app))
    return 1 if by_url is None else by_url.cost_of(app)


def is_of_url(app: Router) -> bool:
    """Whether the request has a URL in its body, and not the photo."""
    return is_json(app.current_event.headers.get("content-type", ""))


price = Price(policy=Policy.TENANT, cost=cost_of_upload)


@handles(
    app,
    POST_IMAGE if by_url is None else by_url.route,
    protected(edge.rate_limit, price=price, require_healthy=edge.require_healthy),
)
def post_image() -> Response:
    refuse_damaged_file(app)  # guard: bodies-text-file-refused
    accepted = accepted_by_url() if is_of_url(app) else sent()
    image = accepted.image
    logger.append_keys(image_id=image.image_id)
    logger.info("accepted", extra={"replayed": accepted.replayed, "is_of_url": is_of_url(app)})
    new = "FetchesBegun" if is_of_url(app) else "ImagesAccepted"
    metrics.add_metric("ImagesReplayed" if accepted.replayed else new, MetricUnit.Count, 1)
    return answer_of(image, replayed=accepted.replayed)


def sent() -> Accepted:
    """The image of a request that has the photo in its body, and says how to develop it in its query."""
    request = app.current_event
    query = request.query_string_parameters
    content_type = request.headers.get("content-type", "")
    caller, token = caller_of(app), app.read_once(upload_token_of)
    if token is not None:
        refuse_order_beside_token(query)
    body = raw_body(app)
    return submit_image(
        ports,
        PhotoUpload(
            body=file_in_form(body, content_type) if is_form(content_type) else body,
            tenant_id=caller.tenant_id,
            tier=caller.tier,
            lane=caller.lane,
            quota=caller.quota,
            visibility=caller.visibility,
            viewer_seconds=caller.viewer_seconds,
            correlation_id=correlation_id_of(app),
            order=order_in(query if token is None else token.order),
            idempotency_key=idempotency_key_of(app),
            upload_token=token,
        ),
    )


def accepted_by_url() -> Accepted:
    """The image of a request that has a URL in its body. Raises Rejected (`part_not_deployed`) in a stack without
    imports, whatever the body says, and Problem (`upload_token_refused`) by an upload token."""
    if app.read_once(upload_token_of) is not None:  # guard: upload-token-no-url
        raise refusal("An upload token is for photos that a browser has, and not for URLs. Send the photo itself.")
    if by_url is None:  # guard: imports-off-url-refused
        raise no_imports()
    return by_url.accept(app)


@handles(app, POST_VARIANTS, protected(edge.rate_limit, require_healthy=edge.require_healthy))
def post_variants(image_id: str) -> Response:
    request = VariantsRequest(order=read_addition(json_body(app)), **asked_of(image_id))
    try:
        added = add_variants(change_ports, request)
    except NotDone as error:
        raise not_done(error.image, "Variants can be added to", now=ports.clock()) from error
    logger.info("variants accepted", extra={"run": added.image.run, "replayed": added.replayed})
    metrics.add_metric("VariantsReplayed" if added.replayed else "VariantsAccepted", MetricUnit.Count, 1)
    return answer_of(added.image, replayed=added.replayed)


@handles(app, POST_EDIT, protected(edge.rate_limit, require_healthy=edge.require_healthy))
def post_edit(image_id: str) -> Response:
    request = EditRequest(edits=read_edits(json_body(app)), **asked_of(image_id))
    try:
        edited = edit_image(change_ports, request)
    except NotDone as error:
        raise not_done(error.image, "Edits can be made of", now=ports.clock()) from error
    logger.info("edit accepted", extra={"number": edited.image.edit_number, "replayed": edited.replayed})
    metrics.add_metric("EditsReplayed" if edited.replayed else "EditsAccepted", MetricUnit.Count, 1)
    return answer_of(edited.image, replayed=edited.replayed)


def asked_of(image_id: str) -> dict[str, Any]:
    """What every request for a change of an image has: the image, who asks for it, and under which key."""
    caller = caller_of(app)
    return {
        "image_id": image_id,
        "tenant_id": caller.tenant_id,
        "tier": caller.tier,
        "lane": caller.lane,
        "quota": caller.quota,
        "correlation_id": correlation_id_of(app),
        "idempotency_key": idempotency_key_of(app),
    }


def answer_of(image: Image, *, replayed: bool) -> Response:
    """The answer that accepts what was asked of an image."""
    headers = headers_of_accepted(image, replayed=replayed, now=ports.clock())
    return json_response(HTTPStatus.ACCEPTED, status_document(image, edge.outputs.url_of, edge=edge.urls), headers)


@entry_point(of_gateway=True)
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    return app.resolve(event, context)
