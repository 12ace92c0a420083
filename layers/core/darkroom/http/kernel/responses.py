"""The answers of the API's functions: JSON, and problems."""

from __future__ import annotations

import json
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from darkroom.http.kernel.problems import Problem, problem_document
from darkroom.http.kernel.router import Response

NOT_STORED = {"Cache-Control": "no-store"}


def json_response(status: HTTPStatus, document: Mapping[str, Any], headers: Mapping[str, str] = NOT_STORED) -> Response:
    """A JSON answer."""
    return Response(
        status_code=status.value, content_type="application/json", body=json.dumps(document), headers=dict(headers)
    )


def problem_response(problem: Problem, correlation_id: str) -> Response:
    """The answer for `problem`, as `application/problem+json`."""
    return Response(
        status_code=problem.status.value,
        content_type="application/problem+json",
        body=json.dumps(problem_document(problem, correlation_id)),
        headers={**NOT_STORED, **problem.headers},
    )
