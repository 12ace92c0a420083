"""The gate of each port: who may call the deployed API here, and who the embedded AWS."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from local_aws import signatures
from local_aws.asgi import Application, Receive, Scope, Send, respond
from local_aws.ministack_internals import internals
from local_aws.stacks.record import write_private
from local_aws.stacks.websites import Headers, hosts_of, origins_of, refusal

_EMULATORS_OWN = "/_ministack"
"""The paths with which MiniStack is controlled: its reset empties the stack."""

_UNSIGNED = "This request is not signed with the credentials of the local stack. They are made anew at each start."


def api_gate(api: Application, *, port: int, how_to_allow: str = "", may_be_shown: bool = False) -> Application:
    """A port of the API or the edge, for this machine's tools, for its own pages, and for those that the API allows.
    Where it `may_be_shown`, a page of another site may show what it can name, as it may show what a signed link leads
    to."""
    hosts, own = hosts_of(port), origins_of(port)

    async def gated(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "lifespan":
            headers = Headers(scope["headers"])
            origins = own | allowed_origins()
            reason = refusal(
                scope.get("method", ""),
                headers,
                hosts=hosts,
                origins=origins,
                is_signed=may_be_shown,
                remedy=how_to_allow,
            )
            if reason is not None:
                await _refuse(scope, receive, send, reason)
                return
        await api(scope, receive, send)

    return gated


def aws_gate(
    aws: Application, *, port: int, api_port: int, relay_file: Path, how_to_sign: str = "", how_to_allow: str = ""
) -> Application:
    """AWS's port, for those who sign with a secret of this run.

    Two kinds of requests need no signature of their own: a browser asks whether a page may send one (a preflight), and
    a form has its signature among its fields. `relay_file` has the host by which containers reach the port, if any do.
    `how_to_sign` and `how_to_allow` say to who is refused what to do.
    """
    hosts, pages = hosts_of(port), origins_of(api_port)

    async def gated(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await aws(scope, receive, send)
            return
        origins = pages | allowed_origins()
        known = Headers(scope["headers"])
        reason = refusal(
            scope.get("method", ""),
            known,
            hosts=hosts | _relayed(relay_file),
            origins=origins,
            is_signed=True,
            remedy=how_to_allow,
        )
        # guard: gate-emulator-paths-closed
        if reason is None and (scope["type"] == "websocket" or scope["path"].startswith(_EMULATORS_OWN)):
            reason = "The emulator's own controls are closed."
        if reason is not None:
            await _refuse(scope, receive, send, reason)
            return
        headers, query = signatures.headers_of(scope), signatures.query_of(scope)
        if not _is_preflight(scope, headers) and not _is_form(scope, headers, query):
            receive, body = await _read(receive) if signatures.needs_body(headers, query) else (receive, b"")
            if not signatures.is_signed(scope, headers, query, body):  # guard: gate-request-signature
                await _refuse_unsigned(send, headers, f"{_UNSIGNED} {how_to_sign}".strip())
                return
        await aws(scope, receive, send)

    return gated


def allowed_origins() -> frozenset[str]:
    """The websites that the deployed API names for CORS."""
    api_gateway = internals("services.apigateway")
    apis = [api for _, api in api_gateway._apis.all_items() if api["protocolType"] == "HTTP"]
    return frozenset(
        origin for api in apis for origin in (api.get("corsConfiguration") or {}).get("allowOrigins") or ()
    )


@contextmanager
def relayed(relay_file: Path, host: str) -> Iterator[None]:
    """Have AWS's gate serve this further host for the length of the block."""
    write_private(relay_file, host)
    try:
        yield
    finally:
        relay_file.unlink(missing_ok=True)


def _relayed(file: Path) -> frozenset[str]:
    try:
        return frozenset(file.read_text().split())
    except FileNotFoundError:
        return frozenset()


def _is_preflight(scope: Scope, headers: dict[str, str]) -> bool:
    # guard: gate-preflight-names-page
    return scope["method"] == "OPTIONS" and {"origin", "access-control-request-method"} <= headers.keys()


def _is_form(scope: Scope, headers: dict[str, str], query: dict[str, Any]) -> bool:
    """Whether it is an upload by a form to a bucket that exists, which S3 checks, and nothing else that any service
    could take it for."""
    bucket = scope["path"].removeprefix("/")
    return (
        scope["method"] == "POST"
        and not query
        and headers.get("content-type", "").startswith("multipart/form-data")
        and internals("services.s3")._buckets.get(bucket) is not None
        # guard: gate-form-upload-only
        and internals("core.router").detect_service("POST", scope["path"], headers, query) == "s3"
    )


async def _read(receive: Receive) -> tuple[Receive, bytes]:
    """The whole body, and what gives it out once more."""
    events = [await receive()]
    while events[-1].get("more_body", False):
        events.append(await receive())
    remaining = iter(events)

    async def again() -> Any:
        event = next(remaining, None)
        return await receive() if event is None else event

    return again, b"".join(event.get("body", b"") for event in events)


async def _refuse(scope: Scope, receive: Receive, send: Send, reason: str) -> None:
    """Answers a request with 403 and why, and closes a WebSocket."""
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.close"})
        return
    await respond(send, 403, [(b"content-type", b"application/json")], json.dumps({"message": reason}).encode())


async def _refuse_unsigned(send: Send, headers: dict[str, str], reason: str) -> None:
    """403 in the form that the SDK of that service reads."""
    code = "SignatureDoesNotMatch" if "authorization" in headers else "MissingAuthenticationToken"
    content_type = b"text/xml"
    if headers.get("content-type", "").startswith("application/x-www-form-urlencoded"):
        body = f"<ErrorResponse><Error><Code>{code}</Code><Message>{escape(reason)}</Message></Error></ErrorResponse>"
    elif "/s3/aws4_request" in headers.get("authorization", "/s3/aws4_request"):
        body = f"<Error><Code>{code}</Code><Message>{escape(reason)}</Message></Error>"
    else:
        content_type, body = b"application/json", json.dumps({"__type": code, "message": reason})
    headers_of_error = [(b"content-type", content_type), (b"x-amzn-errortype", code.encode())]
    await respond(send, 403, headers_of_error, body.encode())
