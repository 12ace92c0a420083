"""What the gateway knows of a request, and the line about it in the access log of the API's stage.

AWS: a stage with access logging writes one line for each request that it answers, whoever made the answer: the format,
with a value in the place of each variable. It has "-" where there is none, as for the route of a request that no route
matches or for what an authorizer returned that was not asked.
https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-logging.html
https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-logging-variables.html
https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-troubleshooting-lambda.html (an example's lines)

What still differs from AWS: the lines are there at once; `error.responseType`, `identity.cognito…`,
`identity.clientCert…` and `customDomain…` are always "-". AWS does not document whether a request is logged that is
refused for its size before its route is known; here it is.
"""

from __future__ import annotations

import json
import logging
import re
import time
from collections.abc import Mapping
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any

from local_aws.ministack_internals import internals

_VARIABLE = re.compile(r"\$context((?:\.[\w:/-]+)+)")
_NONE = "-"

is_on = False
"""Whether the shim `http_api_access_log` is applied."""

_logger = logging.getLogger(__name__)

current: ContextVar[dict[str, Any] | None] = ContextVar("request to the gateway", default=None)
"""The variables of the request that is answered in this context, without `$context.`; who learns one notes it."""


def note(**variables: Any) -> None:
    """Notes variables of the current request, with `_` for each `.`."""
    if (request := current.get()) is not None:
        request.update({name.replace("_", "."): value for name, value in variables.items()})


def note_all(prefix: str, values: Mapping[str, Any] | None) -> None:
    """Notes a variable for each of these."""
    if (request := current.get()) is not None:
        request.update({f"{prefix}.{name}": value for name, value in (values or {}).items()})


def line(form: str, request: Mapping[str, Any]) -> str:
    """The format with the request's values."""
    return _VARIABLE.sub(lambda variable: _text(request.get(variable[1][1:])), form)


def _text(value: Any) -> str:
    match value:
        case None | "":
            return _NONE
        case bool() | dict() | list():
            return json.dumps(value, separators=(",", ":"))
        case _:
            return str(value)


def write(stage: Mapping[str, Any], request: Mapping[str, Any]) -> None:
    """Writes the line about an answered request, if the stage has an access log."""
    settings = (stage.get("accessLogSettings") or {}) if is_on else {}
    group = str(settings.get("destinationArn", "")).partition(":log-group:")[2].removesuffix(":*")
    if not group or not settings.get("format"):
        return
    try:
        _store(group, line(settings["format"], request))
    except Exception:  # a log that cannot be written is no reason to fail the request
        _logger.exception("The access log %s was not written", group)


def _store(group: str, message: str) -> None:
    logs = internals("services.cloudwatch_logs")
    if group not in logs._log_groups:
        return
    stream = f"{datetime.now(UTC):%Y/%m/%d}/api"
    if stream not in logs._log_groups[group]["streams"]:
        logs._create_log_stream({"logGroupName": group, "logStreamName": stream})
    now_ms = int(time.time() * 1000)
    events = [{"timestamp": now_ms, "message": message, "ingestionTime": now_ms}]
    logs._append_log_events(logs._log_groups[group]["streams"][stream], events)
    logs._fanout_to_subscription_filters(group, stream, events)
