"""What the operators' page is told when something cannot be done: problem documents (RFC 9457), as the API's."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

import typer
from botocore.exceptions import BotoCoreError, ClientError

from darkroom.domain.kernel.errors import Retryable
from darkroom_client.client import ApiError, Unreachable


@dataclass
class OperateProblem(Exception):
    """A request is not answered: `detail` says why and what to do."""

    status: HTTPStatus
    code: str
    detail: str
    more: Mapping[str, Any] = field(default_factory=dict)

    def document(self) -> bytes:
        """The problem as JSON."""
        named = {
            "type": f"urn:darkroom:problem:{self.code.replace('_', '-')}",
            "title": self.status.phrase,
            "status": self.status.value,
            "detail": self.detail,
            "code": self.code,
        }
        return json.dumps(named | dict(self.more)).encode()


def invalid(detail: str) -> OperateProblem:
    """The request is not understood."""
    return OperateProblem(HTTPStatus.BAD_REQUEST, "invalid_request", detail)


def problem_of(error: Exception, *, otherwise: HTTPStatus) -> OperateProblem | None:
    """The problem that an error of a command is; None for a bug. `otherwise` is the status of what the stack refuses,
    or does not have. What was said before the error, its notes, is said too."""
    if isinstance(error, OperateProblem):
        return error
    if isinstance(error, typer.BadParameter):
        return invalid(f"{error.param_hint}: {error.message}" if error.param_hint else error.message)
    if not isinstance(error, ApiError):
        return None
    if isinstance(error, Unreachable) or isinstance(error.__cause__, (Retryable, ClientError, BotoCoreError)):
        otherwise, code = HTTPStatus.BAD_GATEWAY, "aws_unavailable"
    else:
        code = otherwise.name.lower()
    return OperateProblem(otherwise, code, str(error), {"says": getattr(error, "__notes__", [])})
