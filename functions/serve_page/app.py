"""GET /app/…: serves the page, to everybody; it reveals nothing about any tenant."""

from __future__ import annotations

from typing import Any, TypedDict

from aws_lambda_powertools.utilities.typing import LambdaContext

from darkroom.http.page.page import (
    content_security_policy,
    file_answer,
    finished,
    page_settings,
    redirect_to_page,
    unknown_file_answer,
)
from darkroom.operations.page.serve_page import Elsewhere, UnknownFile, serve_page
from darkroom.telemetry import entry_point
from darkroom.wiring.page.serve_page import wire

served = wire()
policy = content_security_policy(uploads=served.uploads, outputs=served.outputs, sign_in=served.sign_in)
settings = page_settings(
    access=served.access,
    issuer=served.settings.jwt_issuer,
    client_id=served.settings.jwt_client_id,
    audience=served.settings.jwt_audience,
    sign_in_origin=served.settings.jwt_sign_in_origin,
    max_upload_bytes=served.settings.max_file_bytes,
    parts=served.settings.parts,
)
page = finished(served.page, settings, policy)


class PageRequest(TypedDict):
    """The fields of API Gateway's event that are read here. Powertools' router would be half of a cold start."""

    rawPath: str
    headers: dict[str, str]
    requestContext: dict[str, Any]


@entry_point(of_gateway=True, has_metrics=False)
def handler(event: PageRequest, context: LambdaContext) -> dict[str, Any]:
    try:
        found_file = serve_page(page, event["rawPath"])
    except Elsewhere:
        return redirect_to_page()
    except UnknownFile:
        return unknown_file_answer(event["requestContext"]["requestId"])
    headers = event["headers"]
    return file_answer(
        found_file,
        policy=policy,
        accept_encoding=headers.get("accept-encoding"),
        if_none_match=headers.get("if-none-match"),
    )
