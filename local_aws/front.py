"""Serves the deployed HTTP API at the root of its own port, exactly as its `$default` stage does on AWS."""

import base64
import json
import logging
import os
import secrets
import time
from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import formatdate
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qs

from local_aws import access_log
from local_aws.asgi import Receive, Scope, Send, live, respond
from local_aws.ministack_internals import internals

Answer = tuple[int, dict[str, Any], bytes]

_logger = logging.getLogger(__name__)

# https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-quotas.html (payload size, not adjustable)
MAXIMUM_PAYLOAD_BYTES = 10 * 1024 * 1024

# "Total combined size of request line and header values" (the same page). AWS does not document the answer; it is 431
# (RFC 6585, section 5) in the gateway's own form.
MAXIMUM_HEAD_BYTES = 10_240

# RFC 9110, section 7.6.1: these describe one connection and are never forwarded.
_HOP_BY_HOP = frozenset(
    [
        "connection",
        "keep-alive",
        "proxy-authenticate",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    ]
)


async def front(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer one request to the API (an ASGI application)."""
    if scope["type"] == "lifespan":
        await live(receive, send)
    elif scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.close"})
    else:
        with suppress(ClientGone):
            await _serve(scope, receive, send)


async def _serve(scope: Scope, receive: Receive, send: Send) -> None:
    request_id = base64.b64encode(os.urandom(11)).decode()
    api_gateway, responses = internals("services.apigateway"), internals("core.responses")
    body, deployed = await _read_body(receive), _deployed_api(api_gateway)
    if deployed is None:
        words = "No HTTP API is deployed to the embedded AWS yet: wait for the deployment or read its log."
        await _send(send, _message(503, words), request_id)
        return
    account_id, region, api_id = deployed
    began = time.monotonic()
    with responses.request_scope(account_id, region):
        access_log.current.set(request := _variables(scope, request_id, account_id, api_id))
        answer = await _answer(scope, body, api_id)
        if request.get("integrationStatus") != HTTPStatus.OK:
            request.setdefault("error.message", _own_words(answer[2]))
        request |= {
            "status": answer[0],
            "responseLength": len(answer[2]),
            "responseLatency": round((time.monotonic() - began) * 1000),
            "dataProcessed": len(body or b"") + len(answer[2]),
        }
        access_log.write(api_gateway._stages.get(api_id, {}).get("$default", {}), request)
    await _send(send, answer, request_id)


def _own_words(body: bytes) -> str | None:
    """What an answer says that no function has given."""
    try:
        return str(json.loads(body)["message"])
    except (LookupError, TypeError, ValueError):
        return None


def _variables(scope: Scope, request_id: str, account_id: str, api_id: str) -> dict[str, Any]:
    """What the access log may say of the request before it is answered."""
    now, headers = time.time(), dict(scope["headers"])
    domain_name = headers.get(b"host", b"").decode("latin-1").rpartition(":")[0]
    return {
        "accountId": account_id,
        "apiId": api_id,
        "domainName": domain_name,
        "domainPrefix": domain_name.partition(".")[0],
        "extendedRequestId": request_id,
        "httpMethod": scope["method"],
        "identity.sourceIp": (scope.get("client") or ("127.0.0.1",))[0],
        "identity.userAgent": headers.get(b"user-agent", b"").decode("latin-1"),
        "path": scope["path"],
        "protocol": f"HTTP/{scope.get('http_version', '1.1')}",
        "requestId": request_id,
        "requestTime": f"{datetime.fromtimestamp(now, UTC):%d/%b/%Y:%H:%M:%S +0000}",
        "requestTimeEpoch": int(now * 1000),
        "stage": "$default",
    }


class ClientGone(Exception):
    """The client closed the connection before its request was complete."""


def _head_bytes(scope: Scope) -> int:
    """The size of the request line and of all headers' values."""
    path, query = scope.get("raw_path") or scope["path"].encode(), scope["query_string"]
    line = f"{scope['method']}  HTTP/1.1\r\n".encode() + path + (b"?" + query if query else b"")
    return len(line) + sum(len(value) for _, value in scope["headers"])


async def _read_body(receive: Receive) -> bytes | None:
    """Read the whole body; None if it is more than API Gateway accepts.

    The excess is read too, since a client that is still sending would see a reset instead of the answer.
    """
    chunks, size, more = [], 0, True
    while more:
        event = await receive()
        if event["type"] == "http.disconnect":
            raise ClientGone
        chunk = event.get("body", b"")
        size += len(chunk)
        if size <= MAXIMUM_PAYLOAD_BYTES:
            chunks.append(chunk)
        more = event.get("more_body", False)
    return b"".join(chunks) if size <= MAXIMUM_PAYLOAD_BYTES else None


async def _answer(scope: Scope, body: bytes | None, api_id: str) -> Answer:
    if _head_bytes(scope) > MAXIMUM_HEAD_BYTES:
        return _message(431, "Request Header Fields Too Large")
    if body is None:
        return _message(413, "Request Entity Too Large")
    api_gateway = internals("services.apigateway")
    query_string = scope["query_string"].decode("latin-1")
    raw_path = scope.get("raw_path") or scope["path"].encode()
    try:
        status, headers, content = await api_gateway.handle_execute(
            api_id,
            "$default",
            api_gateway.decode_http_api_path(raw_path.decode("latin-1")),
            scope["method"],
            _event_headers(scope),
            body,
            parse_qs(query_string, keep_blank_values=True),
            raw_query_string=query_string,
        )
        status = int(status)
    except Exception:
        # API Gateway says no more than this about a function's response that it cannot use.
        _logger.exception("The function's response to %s %s cannot be used", scope["method"], scope["path"])
        return _message(500, "Internal Server Error")
    return status, headers, content or b""


def _deployed_api(api_gateway: Any) -> tuple[str, str, str] | None:
    """The account, region and id of the HTTP API with a `$default` stage; of several, the most recently created."""
    return next(
        (
            key
            for key, api in reversed(list(api_gateway._apis.all_items()))
            if api["protocolType"] == "HTTP" and "$default" in api_gateway._stages.get_scoped(*key, {})
        ),
        None,
    )


def _event_headers(scope: Scope) -> dict[str, str]:
    """The headers that the function sees: the client's end-to-end headers and those that API Gateway adds.

    https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-develop-integrations-lambda.html
    """
    headers: dict[str, str] = {}
    for raw_name, raw_value in scope["headers"]:
        name, value = raw_name.decode("latin-1").lower(), raw_value.decode("latin-1")
        if name not in _HOP_BY_HOP:
            separator = "; " if name == "cookie" else ","
            headers[name] = f"{headers[name]}{separator}{value}" if name in headers else value
    client_address = (scope.get("client") or ("127.0.0.1",))[0]
    forwarded = headers.get("x-forwarded-for")
    headers["x-forwarded-for"] = f"{forwarded}, {client_address}" if forwarded else client_address
    headers["x-forwarded-port"] = str((scope.get("server") or ("", 80))[1])
    headers["x-forwarded-proto"] = str(scope.get("scheme", "http"))
    headers.setdefault("x-amzn-trace-id", f"Root=1-{int(time.time()):08x}-{secrets.token_hex(12)}")
    return headers


def _message(status: int, message: str) -> Answer:
    access_log.note(error_message=message)
    body = json.dumps({"message": message}, separators=(",", ":"))
    return status, {"Content-Type": "application/json"}, body.encode()


async def _send(send: Send, answer: Answer, request_id: str) -> None:
    status, headers, body = answer
    await respond(send, status, _response_headers(headers, request_id), body)


def _response_headers(headers: dict[str, Any], request_id: str) -> Iterable[tuple[bytes, bytes]]:
    for name, value in headers.items():
        if name.lower() not in _HOP_BY_HOP and name.lower() not in ("content-length", "date", "server"):
            for item in value if isinstance(value, list | tuple) else (value,):
                yield name.lower().encode("latin-1"), str(item).encode("utf-8")
    yield b"date", formatdate(usegmt=True).encode()
    yield b"apigw-requestid", request_id.encode()
