"""Passes requests to the function, and its failures to the client, as an HTTP API's Lambda integration does.

Gap: MiniStack passes events of any size, leaves null path parameters and raw cookies in them, waits without limit, and
answers with 502 and the function's own error if the function failed.
AWS: an event above the 6 MB of a synchronous invocation is answered with 413, and the function is not invoked; a
function that failed is a 500 {"message":"Internal Server Error"}; one that is throttled, or takes longer than the
integration's timeout (30 s at most), is a 503 {"message":"Service Unavailable"}. About a throttled function the guides
say only that API Gateway turns a rejection by the Lambda API into a 5xx and does not invoke again; 503 is observed.
https://docs.aws.amazon.com/lambda/latest/dg/services-apigateway-errors.html
https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-develop-integrations-lambda.html
https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-troubleshooting-lambda.html
https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html
"""

import asyncio
import json
import time
from contextvars import ContextVar
from typing import Any

from local_aws import access_log
from local_aws.emulator import Emulator
from local_aws.ministack_internals import internals, replace

MAXIMUM_EVENT_BYTES = 6 * 1024 * 1024

# The timeout of the current request's integration. MiniStack invokes authorizers and WebSocket routes through the same
# function as integrations; those have no such timeout and are unchanged.
_timeout_seconds: ContextVar[float | None] = ContextVar("integration_timeout_seconds", default=None)


def apply(emulator: Emulator) -> None:
    """Replace how MiniStack's HTTP API invokes a function."""
    api_gateway = internals("services.apigateway")
    replace(api_gateway, "_invoke_lambda_proxy", _remember_timeout)
    replace(api_gateway, "run_reentrant", _invoke_as_integration)


def _remember_timeout(invoke: Any) -> Any:
    async def invoke_lambda_proxy(integration: dict[str, Any], *arguments: Any, **options: Any) -> Any:
        token = _timeout_seconds.set(int(integration["timeoutInMillis"]) / 1000)
        try:
            return await invoke(integration, *arguments, **options)
        finally:
            _timeout_seconds.reset(token)

    return invoke_lambda_proxy


def _invoke_as_integration(run: Any) -> Any:
    async def invoke(function: Any, record: Any, event: Any, **options: Any) -> Any:
        timeout_seconds = _timeout_seconds.get()
        if timeout_seconds is None:
            return await run(function, record, event, **options)
        event = _as_on_aws(event)
        if _size_of(event) > MAXIMUM_EVENT_BYTES:
            return _gateway_answer(413, "Request Entity Too Large")
        began = time.monotonic()
        invocation = asyncio.ensure_future(run(function, record, event, **options))
        await asyncio.wait({invocation}, timeout=timeout_seconds)  # The function runs on, as it does on AWS.
        milliseconds = round((time.monotonic() - began) * 1000)
        access_log.note(integrationLatency=milliseconds, integration_latency=milliseconds)
        if not invocation.done():
            return _failed(503, "Service Unavailable", "Endpoint request timed out")
        result = invocation.result()
        if result.get("throttle"):
            return _failed(503, "Service Unavailable", "Rate Exceeded", lambdas_status=429)
        if result.get("error"):
            return _failed(500, "Internal Server Error", "The function failed", lambdas_status=200)
        access_log.note(integrationStatus=200, integration_integrationStatus=200)
        return result

    return invoke


def _size_of(event: dict[str, Any]) -> int:
    """The bytes of the event as JSON. A photo in base64 is counted as it is: writing it out takes milliseconds."""
    body = event.get("body") if event.get("isBase64Encoded") else None
    rest = event if body is None else {**event, "body": ""}
    return len(json.dumps(rest, ensure_ascii=False, separators=(",", ":")).encode()) + len(body or "")


def _as_on_aws(event: dict[str, Any]) -> dict[str, Any]:
    headers, context = dict(event["headers"]), dict(event["requestContext"])
    request = access_log.current.get() or {}
    known = {"domainPrefix": context["apiId"], "requestId": request.get("requestId", context["requestId"])}
    event = {**event, "headers": headers, "requestContext": {**context, **known}}
    if cookies := headers.pop("cookie", None):
        event["cookies"] = [cookie.strip() for cookie in cookies.split(";")]
    if not event.get("pathParameters"):
        event.pop("pathParameters", None)
    return event


def _failed(status: int, message: str, reason: str, lambdas_status: int | None = None) -> dict[str, Any]:
    """The gateway's answer for a function that has none; AWS's words for the reason differ."""
    access_log.note(integrationStatus=lambdas_status, integration_integrationStatus=lambdas_status)
    access_log.note(integrationErrorMessage=reason, integration_error=reason)
    return _gateway_answer(status, message)


def _gateway_answer(status: int, message: str) -> dict[str, Any]:
    access_log.note(error_message=message)
    body = json.dumps({"message": message}, separators=(",", ":"))
    return {"body": {"statusCode": status, "headers": {"content-type": "application/json"}, "body": body}}
