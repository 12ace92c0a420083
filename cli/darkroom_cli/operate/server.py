"""The HTTP server of `darkroom operate`: for the page of this run in this machine's browser, and for nobody else.

Every request names this port as its host (a name that leads to 127.0.0.1 is refused) and comes from no website, and
every request for data carries the token of this run, reads included: other users and programs of this machine do not
know it, and no website can send it (https://fetch.spec.whatwg.org/#authorization-header). It is never read from a URL,
which histories and logs keep. The entrance alone may be led to, by the file that the browser's opener is given.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Callable, Mapping, MutableMapping
from http import HTTPStatus
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from darkroom.domain.kernel.sizes import limit_in_words
from darkroom.http.page.page import content_security_policy
from darkroom_cli.operate import entrance as entrances
from darkroom_cli.operate.actions import Actions
from darkroom_cli.operate.entrance import Entrance
from darkroom_cli.operate.parts import Parts
from darkroom_cli.operate.problems import OperateProblem, invalid, problem_of
from darkroom_cli.operate.shell import Shell
from local_aws.stacks.websites import Headers, hosts_of, origins_of, refusal

API = "/operate/api/"
MAX_BODY_BYTES = 64 * 1024
"""The largest body of an action: a thousand ids and some words."""

HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": content_security_policy(),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
"""Of every answer."""


def application(
    *,
    about: Mapping[str, Any],
    parts: Parts,
    actions: Actions,
    shell: Shell,
    token: str,
    entrance: Entrance,
    port: int,
    is_writable: bool,
) -> ASGIApp:
    """What the port serves; `about` says which stack it is."""
    settings = {**about, "write": is_writable}
    routes = [
        *_page_routes(settings, shell, entrance, token=token),
        *_data_routes(parts, actions, is_writable=is_writable),
    ]
    return _Gate(
        Starlette(routes=routes, exception_handlers={HTTPException: _refused, OperateProblem: _problem}),
        token=token,
        port=port,
    )


def _page_routes(settings: Mapping[str, Any], shell: Shell, entrance: Entrance, *, token: str) -> list[Route]:
    """The ways to the page, and its files."""

    def index(_: Request) -> Response:
        return Response(shell.index(settings), media_type="text/html")

    async def enter(request: Request) -> Response:  # not in a thread: of two that come at once, one is let in
        if not entrance.lets_in(request.query_params.get("code", "")):
            raise OperateProblem(
                HTTPStatus.FORBIDDEN,
                "not_let_in",
                "This way to the page can be used once: open the address that `darkroom operate` has printed.",
            )
        return Response(entrances.leading_to(f"/app/#token={token}"), media_type="text/html")

    def file(request: Request) -> Response:
        file = shell.file(request.path_params["path"])
        if file is None:
            raise HTTPException(404)
        content, media_type = file
        return Response(content, media_type=media_type)

    return [
        Route("/", lambda _: RedirectResponse("/app/")),
        # Where a document names no icon, as the entrance does not (https://html.spec.whatwg.org/#rel-icon).
        Route("/favicon.ico", lambda _: RedirectResponse(f"/app/{shell.tree}/icon.svg")),
        Route("/app", lambda _: RedirectResponse("/app/", 301)),
        Route(entrances.PATH, enter, methods=["GET"]),
        Route("/app/", index),
        Route("/app/{tree}/{path:path}", file),
    ]


def _data_routes(parts: Parts, actions: Actions, *, is_writable: bool) -> list[Route]:
    """What the page reads and does."""

    def read(request: Request) -> Response:
        query = {name: request.query_params.getlist(name) for name in request.query_params}
        return _answered(lambda: parts.read(request.path_params["path"], query), otherwise=HTTPStatus.NOT_FOUND)

    async def act(request: Request) -> Response:
        body = await _body(request)
        name = request.path_params["name"]
        return await run_in_threadpool(
            lambda: _answered(lambda: actions.act(name, body, is_writable=is_writable), otherwise=HTTPStatus.CONFLICT)
        )

    def under_way(_: Request) -> Response:
        return _answered(lambda: {"runs": actions.running.documents()}, otherwise=HTTPStatus.NOT_FOUND)

    def look(request: Request) -> Response:
        return _answered(lambda: actions.running.look(request.path_params["run"]), otherwise=HTTPStatus.CONFLICT)

    def stop(request: Request) -> Response:
        return _answered(lambda: actions.running.stop(request.path_params["run"]), otherwise=HTTPStatus.CONFLICT)

    return [
        Route(f"{API}runs", under_way, methods=["GET"]),
        Route(f"{API}runs/{{run}}", look, methods=["GET"]),
        Route(f"{API}runs/{{run}}", stop, methods=["DELETE"]),
        Route(f"{API}{{path:path}}", read, methods=["GET"]),
        Route(f"{API}{{name}}", act, methods=["POST"]),
    ]


def _answered(work: Callable[[], Any], *, otherwise: HTTPStatus) -> Response:
    try:
        return Response(json.dumps(work()), media_type="application/json")
    except Exception as error:
        problem = problem_of(error, otherwise=otherwise)
        if problem is None:
            raise
        return _response(problem)


async def _body(request: Request) -> bytes:
    """The body of an action; it is read no further than it may be long."""
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        raise OperateProblem(
            HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type", "An action is sent as application/json."
        )
    body = b""
    async for some in request.stream():
        body += some
        if len(body) > MAX_BODY_BYTES:  # guard: operate-body-size-bound
            raise OperateProblem(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
                "too_large",
                f"An action has at most {limit_in_words(MAX_BODY_BYTES)}. Name fewer ids, or choose by other words.",
            )
    if not body:
        raise invalid("An action needs a body.")
    return body


def _response(problem: OperateProblem) -> Response:
    return Response(problem.document(), problem.status.value, media_type="application/problem+json")


def _problem(_: Request, error: Exception) -> Response:
    assert isinstance(error, OperateProblem)  # noqa: S101 - registered for it alone
    return _response(error)


def _refused(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101 - registered for it alone
    status = HTTPStatus(error.status_code)
    response = _response(
        OperateProblem(status, status.name.lower(), f"{status.phrase}: there is nothing like that here.")
    )
    response.headers.update(error.headers or {})
    return response


class _Gate:
    """Refuses whoever is not the page of this run, before anything else is looked at, and adds HEADERS."""

    def __init__(self, served: ASGIApp, *, token: str, port: int) -> None:
        self._served, self._token = served, token.encode()
        self._hosts, self._origins = hosts_of(port), origins_of(port)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                _add_headers(message)
            await send(message)

        problem = self._problem_with(scope)
        served: ASGIApp = self._served if problem is None else _response(problem)
        await served(scope, receive, send_with_headers)

    def _problem_with(self, scope: Scope) -> OperateProblem | None:
        headers = Headers(scope["headers"])
        may_be_led_to = scope["path"] == entrances.PATH  # guard: operate-entrance-link-only
        reason = refusal(
            scope["method"], headers, hosts=self._hosts, origins=self._origins, may_be_led_to=may_be_led_to
        )
        if reason is not None:  # guard: operate-own-host-only
            return OperateProblem(HTTPStatus.FORBIDDEN, "another_website", reason)
        if not scope["path"].startswith("/operate"):  # guard: operate-read-token
            return None
        try:
            given = headers.only(b"authorization") or b""
        except ValueError as error:
            return OperateProblem(HTTPStatus.UNAUTHORIZED, "unauthorized", str(error))
        if not hmac.compare_digest(given, b"Bearer " + self._token):  # guard: operate-request-token
            return OperateProblem(
                HTTPStatus.UNAUTHORIZED,
                "unauthorized",
                "The token of this run is missing or wrong: open the address that `darkroom operate` has printed.",
            )
        return None


def _add_headers(message: MutableMapping[str, Any]) -> None:
    own = {name.lower().encode(): value.encode() for name, value in HEADERS.items()}
    message["headers"] = [*((name, value) for name, value in message["headers"] if name not in own), *own.items()]
