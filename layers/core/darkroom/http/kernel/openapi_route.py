"""The route of openapi.json itself: a module of its own, because its handler must not load all routes."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated, Any

from pydantic import Field

from darkroom.http.kernel.route import Route, RouteAnswer

GET_OPENAPI = Route(
    method="GET",
    path="/openapi.json",
    name="getOpenapi",
    summary="Read this description of the API",
    description="OpenAPI 3.1, made from the table that the handlers use.",
    answers=(
        RouteAnswer(
            status=HTTPStatus.OK,
            description="This document.",
            kind=Annotated[dict[str, Any], Field(json_schema_extra={"required": ["openapi", "info", "paths"]})],
        ),
    ),
    problems=(),
    is_open=True,
)
