"""The router of an API function, for events of HTTP APIs (payload 2.0).

Not Powertools': that imports the events of every service that AWS has, and asyncio, a tenth of a cold start.
https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-develop-integrations-lambda.html
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from aws_lambda_powertools.metrics import MetricUnit

from darkroom.http.kernel.headers import NO_SNIFFING
from darkroom.settings import AccessSettings
from darkroom.telemetry import metrics

type RouteHandler = Callable[..., Response]
type Next = Callable[[Router], Response]
type Middleware = Callable[[Router, Next], Response]


@dataclass(frozen=True, kw_only=True)
class AnswerMetrics:
    """The metrics that count a function's answers: requests that were `refused`, those that `failed` here (status 500
    and more) if they are counted separately, and all others (`served`) unless the handler counts these."""

    refused: str
    failed: str | None = None
    served: str | None = None

    def of(self, status: int) -> str | None:
        """The metric for an answer with that status."""
        if status >= 500 and self.failed is not None:
            return self.failed
        return self.refused if status >= 400 else self.served


class Request:
    """A request as the gateway passes it. The names of its headers are in lower case."""

    def __init__(self, event: Mapping[str, Any]) -> None:
        context = event["requestContext"]
        authorizer = context.get("authorizer") or {}
        stage = context.get("stage", "$default")
        self.request_id: str = context["requestId"]
        self.http_method: str = context["http"]["method"].upper()
        self.path: str = event["rawPath"] if stage == "$default" else event["rawPath"][len(f"/{stage}") :]
        self.headers = {name.lower(): value for name, value in (event.get("headers") or {}).items()}
        self.query_string_parameters: dict[str, str] = event.get("queryStringParameters") or {}
        self.body: str | None = event.get("body")
        self.is_base64_encoded: bool = event.get("isBase64Encoded", False)
        self.authorized: dict[str, Any] = authorizer.get("lambda") or {}
        self.claims: dict[str, str] = (authorizer.get("jwt") or {}).get("claims") or {}
        self.arguments: dict[str, str] = {}


class Response:
    """An answer to a request."""

    def __init__(
        self,
        status_code: int,
        content_type: str | None = None,
        body: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.status_code = status_code
        self.body = body
        self.headers = {**(headers or {}), **({"Content-Type": content_type} if content_type else {})}


class Router:
    """A router that knows which credential callers use; `nosniff` on every answer keeps browsers from guessing another
    media type.

    `answer_headers` are set on the answer to the current request, whatever it is, even a problem. Middlewares
    `everywhere` are the outermost, and run also where there is no route.
    """

    def __init__(self, access: AccessSettings, counted: AnswerMetrics | None = None) -> None:
        self.access = access
        self.counted = counted
        self.current_event: Request
        self.answer_headers: dict[str, str] = {}
        self.everywhere: list[Middleware] = []
        self._on_error: dict[type[Exception], Callable[[Any], Response]] = {}
        self._without_route: RouteHandler
        self.handlers: dict[tuple[str, str], tuple[re.Pattern[str], RouteHandler, Sequence[Middleware]]] = {}
        self._read: dict[Callable[[Router], Any], Any] = {}

    def add(self, method: str, path: str, handler: RouteHandler, middlewares: Sequence[Middleware] = ()) -> None:
        """Registers a handler; `<name>` in the path is an argument of it."""
        # An argument's characters are all that a path may have but the slash, decoded too (RFC 3986, section 3.3).
        pattern = re.compile(re.sub(r"<(\w+)>", r"(?P<\1>[-._~()'!*:@,;=+&$%<> \\[\\]{}|^\\w]+)", path))
        self.handlers[method, path] = pattern, handler, middlewares

    def exception_handler[Answer: Callable[[Any], Response]](self, kind: type[Exception]) -> Callable[[Answer], Answer]:
        """Registers what answers such an error, and those below it that have nothing of their own."""

        def register(answer: Answer) -> Answer:
            self._on_error[kind] = answer
            return answer

        return register

    def no_route(self, handler: RouteHandler) -> RouteHandler:
        """Registers what answers a request that no route takes."""
        self._without_route = handler
        return handler

    def resolve(self, event: Mapping[str, Any], _: object = None) -> dict[str, Any]:
        """The gateway's answer to the request in the event."""
        self.current_event = Request(event)
        self.answer_headers = {NO_SNIFFING.name: NO_SNIFFING.example}
        self._read = {}
        response = self._response()
        if self.counted is not None and (name := self.counted.of(response.status_code)) is not None:
            metrics.add_metric(name, MetricUnit.Count, 1)
        return {
            "statusCode": response.status_code,
            "body": response.body,
            "isBase64Encoded": False,
            # Set here and not in a middleware, because errors bypass middlewares.
            "headers": response.headers | self.answer_headers,
            "cookies": [],
        }

    def read_once[Read](self, read: Callable[[Router], Read]) -> Read:
        """What `read` reads from the current request: its price and its operation need the same, and parse it once."""
        if read not in self._read:
            self._read[read] = read(self)
        result: Read = self._read[read]
        return result

    def _response(self) -> Response:
        handler, middlewares = self._handler()
        try:
            serve: Next = partial(_serve, handler)
            for middleware in reversed([*self.everywhere, *middlewares]):
                serve = partial(_through, middleware, serve)
            return serve(self)
        except Exception as error:
            answer = next((self._on_error[kind] for kind in type(error).__mro__ if kind in self._on_error), None)
            if answer is None:
                raise
            return answer(error)

    def _handler(self) -> tuple[RouteHandler, Sequence[Middleware]]:
        for (method, _), (pattern, handler, middlewares) in self.handlers.items():
            # guard: api-path-full-match
            if method == self.current_event.http_method and (match := pattern.fullmatch(self.current_event.path)):
                self.current_event.arguments = match.groupdict()
                return handler, middlewares
        return self._without_route, ()


def _serve(handler: RouteHandler, app: Router) -> Response:
    return handler(**app.current_event.arguments)


def _through(middleware: Middleware, serve: Next, app: Router) -> Response:
    return middleware(app, serve)
