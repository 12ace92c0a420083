"""What usage adds to `read_image`, which loads it by its name: the route of what a tenant stores and used."""

from __future__ import annotations

from http import HTTPStatus

from darkroom.http.api import handles
from darkroom.http.kernel.callers import caller_of
from darkroom.http.kernel.responses import json_response
from darkroom.http.kernel.router import Middleware, Response, Router
from darkroom.http.usage.routes import GET_USAGE
from darkroom.http.usage.usage import usage_document
from darkroom.operations.usage.read_usage import ReadUsagePorts, read_usage
from darkroom.telemetry import report_unreadable


def add_route(app: Router, protection: Middleware, ports: ReadUsagePorts) -> None:
    """Has the app answer `GET /usage`."""

    @handles(app, GET_USAGE, protection)
    def get_usage() -> Response:
        caller, query = caller_of(app), app.current_event.query_string_parameters
        used = read_usage(ports, tenant_id=caller.tenant_id, since=query.get("since"), until=query.get("until"))
        report_unreadable(used.unreadable)
        return json_response(HTTPStatus.OK, usage_document(used, caller.quota))
