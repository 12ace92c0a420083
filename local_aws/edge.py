"""Serves a distribution at the root of its own port, as CloudFront does at the distribution's domain."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs

from local_aws.asgi import Receive, Scope, Send, live, respond
from local_aws.ministack_internals import internals

_ESCAPED = re.compile(r"%[0-9A-Fa-f]{2}")
_UNRESERVED = re.compile(r"[A-Za-z0-9._~-]")


async def edge(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer one viewer's request (an ASGI application)."""
    if scope["type"] == "lifespan":
        await live(receive, send)
    elif scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.close"})
    elif (found := served()) is None:
        words = b"No distribution is deployed to the embedded AWS.\n"
        await respond(send, 503, [(b"content-type", b"text/plain")], words)
    else:
        status, headers, body = await _answer(scope, await _read_body(receive), *found)
        await respond(send, status, _pairs(headers), body)


def served() -> tuple[str, dict[str, Any]] | None:
    """The account and the distribution that this port serves: of several, the most recently created."""
    distributions = internals("services.cloudfront")._distributions.to_dict()
    return next(
        ((account_id, found) for (account_id, _), found in reversed(distributions.items()) if found["enabled"]), None
    )


def normalised(path: str) -> str:
    """The path by which a behaviour is chosen; the origin is asked for the path as it came.

    "CloudFront normalizes URI paths consistent with RFC 3986 and then matches the path with the correct cache
    behavior." So what need not be escaped is not, and dots are resolved, but `%2F` stays as it is.
    https://docs.aws.amazon.com/AmazonCloudFront/latest/DeveloperGuide/DownloadDistValuesCacheBehavior.html
    """
    segments: list[str] = []
    *parents, last = _ESCAPED.sub(_unescaped, path).split("/")[1:]
    for segment in (*parents, last):
        if segment == "..":
            segments = segments[:-1]
        elif segment != ".":
            segments.append(segment)
    return "/" + "/".join(segments) + ("/" if last in (".", "..") and segments else "")


def _unescaped(match: re.Match[str]) -> str:
    character = chr(int(match[0][1:], 16))
    return character if _UNRESERVED.fullmatch(character) else match[0].upper()


async def _answer(
    scope: Scope, body: bytes, account_id: str, distribution: dict[str, Any]
) -> tuple[int, dict[str, Any], bytes]:
    responses, cloudfront = internals("core.responses"), internals("services.cloudfront")
    raw_path = (scope.get("raw_path") or scope["path"].encode()).decode("latin-1")
    query = scope["query_string"].decode("latin-1")
    headers: dict[str, str] = {}
    for raw_name, raw_value in scope["headers"]:
        name, value = raw_name.decode("latin-1").lower(), raw_value.decode("latin-1")
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    client_address = (scope.get("client") or ("127.0.0.1",))[0]
    # Plain http on the loopback stands for TLS, which S3's policies may require.
    internals("core.iam_evaluator").pin_request_origin(client_address, headers.get("x-forwarded-proto") != "http")
    with responses.request_scope(account_id, responses.get_region()):
        answer: tuple[int, dict[str, Any], bytes] = await cloudfront.handle_viewer_request(
            distribution,
            scope["method"],
            normalised(raw_path),
            raw_path,
            query,
            headers,
            body,
            parse_qs(query, keep_blank_values=True),
            client_address,
        )
    return answer


async def _read_body(receive: Receive) -> bytes:
    chunks = []
    more = True
    while more:
        event = await receive()
        chunks.append(event.get("body", b""))
        more = event.get("more_body", False)
    return b"".join(chunks)


def _pairs(headers: dict[str, Any]) -> Iterator[tuple[bytes, bytes]]:
    for name, value in headers.items():
        if name.lower() not in ("content-length", "connection", "transfer-encoding"):
            for item in value if isinstance(value, list) else (value,):
                yield name.lower().encode("latin-1"), str(item).encode()
