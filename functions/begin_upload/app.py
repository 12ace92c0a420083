"""POST /uploads: announces a file that is too large for a request, and answers 201 with a form to upload it; POST
/uploads/{id}/done, which confirms that it was sent; and POST /upload-tokens, which makes a token with which a browser
uploads."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from aws_lambda_powertools.metrics import MetricUnit
from aws_lambda_powertools.utilities.typing import LambdaContext

from darkroom.domain.kernel.errors import Rejected
from darkroom.domain.tenants.rate_limits import Policy, cost_of_file
from darkroom.domain.uploads.announcement import AnnouncedFile
from darkroom.http.api import create_app, handles
from darkroom.http.images.documents import retry_after_seconds, status_document, upload_document
from darkroom.http.images.responses import headers_of_accepted
from darkroom.http.kernel.callers import caller_of
from darkroom.http.kernel.problems import Problem
from darkroom.http.kernel.requests import correlation_id_of, idempotency_key_of, json_body
from darkroom.http.kernel.responses import NOT_STORED, json_response
from darkroom.http.kernel.router import AnswerMetrics, Response, Router
from darkroom.http.tenants.protection import Price, protected
from darkroom.http.tenants.upload_tokens import upload_token_of
from darkroom.http.uploads.announcements import read_announcement
from darkroom.http.uploads.routes import POST_UPLOAD, POST_UPLOAD_DONE, POST_UPLOAD_TOKEN
from darkroom.http.uploads.upload_tokens import read_token_request, upload_token_document
from darkroom.operations.uploads.begin_upload import Announced, begin_upload
from darkroom.operations.uploads.confirm_upload import NotUploaded, confirm_upload
from darkroom.operations.uploads.create_upload_token import create_upload_token
from darkroom.telemetry import entry_point, logger, metrics
from darkroom.wiring.kernel.runtime import answering
from darkroom.wiring.uploads.begin_upload import wire, wire_confirmation

ports, tokens_ports, edge = wire()
confirmation_ports = wire_confirmation()
app = create_app(within=answering, counted=AnswerMetrics(refused="UploadsRefused", failed="UploadsFailed"))


def announcement_of(app: Router) -> AnnouncedFile:
    """What the request announces. Raises Rejected or Problem."""
    return read_announcement(json_body(app), app.read_once(upload_token_of))


def cost_of_upload(app: Router) -> int:
    """What the announced file costs; an announcement that is refused costs what every request does."""
    try:
        size_bytes = app.read_once(announcement_of).size_bytes
    except (Rejected, Problem):
        return 1
    return cost_of_file(size_bytes) if size_bytes <= ports.max_bytes else 1


price = Price(policy=Policy.TENANT, cost=cost_of_upload)


@handles(app, POST_UPLOAD, protected(edge.rate_limit, price=price, require_healthy=edge.require_healthy))
def post_upload() -> Response:
    caller = caller_of(app)
    begun = begin_upload(
        ports,
        Announced(
            announcement=app.read_once(announcement_of),
            tenant_id=caller.tenant_id,  # guard: tenants-upload-owner
            tier=caller.tier,
            lane=caller.lane,
            quota=caller.quota,
            visibility=caller.visibility,
            viewer_seconds=caller.viewer_seconds,
            correlation_id=correlation_id_of(app),
            idempotency_key=idempotency_key_of(app),
            upload_token=app.read_once(upload_token_of),
        ),
    )
    image = begun.image
    logger.append_keys(image_id=image.image_id)
    logger.info("announced", extra={"replayed": begun.replayed})
    metrics.add_metric("UploadsRenewed" if begun.replayed else "UploadsBegun", MetricUnit.Count, 1)
    headers = headers_of_accepted(image, replayed=begun.replayed, now=ports.clock())
    document = upload_document(image, begun.form, edge.outputs.url_of, edge=edge.urls)
    return json_response(HTTPStatus.CREATED if begun.form else HTTPStatus.ACCEPTED, document, headers)


@handles(app, POST_UPLOAD_DONE, protected(edge.rate_limit, require_healthy=edge.require_healthy))
def post_upload_done(image_id: str) -> Response:
    token = app.read_once(upload_token_of)
    try:
        image = confirm_upload(
            confirmation_ports,
            image_id,
            tenant_id=caller_of(app).tenant_id,
            upload_token=None if token is None else token.token_id,
        )
    except NotUploaded as error:
        raise Problem(
            "not_uploaded",
            "The announced file is not there. Send it with the form that POST /uploads returned, or announce it again "
            "for another form; then confirm it.",
        ) from error
    metrics.add_metric("UploadsConfirmed", MetricUnit.Count, 1)
    again = retry_after_seconds(image, ports.clock())
    headers = NOT_STORED if again is None else NOT_STORED | {"Retry-After": str(again)}
    return json_response(HTTPStatus.OK, status_document(image, edge.outputs.url_of, edge=edge.urls), headers)


@handles(app, POST_UPLOAD_TOKEN, protected(edge.rate_limit, require_healthy=edge.require_healthy))
def post_upload_token() -> Response:
    token, text = create_upload_token(tokens_ports, caller_of(app), read_token_request(json_body(app)))
    logger.info("upload token made", extra={"upload_token": token.token_id, "count": token.count})
    metrics.add_metric("UploadTokensMade", MetricUnit.Count, 1)
    return json_response(HTTPStatus.CREATED, upload_token_document(token, text))


@entry_point(of_gateway=True)
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    return app.resolve(event, context)
