"""The HTTP API of template.yaml, in this process: its routes, its authorizer and the handlers behind both."""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pytest

from repository.expand_template import http_api
from tests.contract.conftest import Aws
from tests.contract.functions import call, http_event, load
from tests.support.fakes.pictures import jpeg

_FUNCTION = re.compile(r"functions/\$\{(\w+)Function\.Arn\}/invocations")


class Answer(NamedTuple):
    """The answer that a client gets."""

    status: int
    headers: dict[str, str]
    body: Any


@dataclass(frozen=True, kw_only=True)
class Route:
    """One route: its function, and the security schemes of which it requires one."""

    method: str
    path: str
    function: str
    security: tuple[str, ...]

    def matches(self, path: str) -> bool:
        """Whether the route matches the path: `{name}` matches one segment of it, `{name+}` all the rest, if any."""
        pattern = re.sub(r"\{\w+\+\}", "\x01", self.path)
        pattern = re.sub(r"\{\w+\}", "\x02", pattern)
        return re.fullmatch(re.escape(pattern).replace("\x01", ".*").replace("\x02", "[^/]+"), path) is not None


def _routes(definition: dict[str, Any]) -> Iterator[Route]:
    for path, operations in definition["paths"].items():
        for method, operation in operations.items():
            uri = operation["x-amazon-apigateway-integration"]["uri"]["Fn::Sub"]
            yield Route(
                method=method.upper(),
                path=path,
                function=_folder(uri),
                security=tuple(name for requirement in operation["security"] for name in requirement),
            )


def _folder(uri: str) -> str:
    match = _FUNCTION.search(uri)
    assert match is not None, uri
    return re.sub(r"(?<=.)([A-Z])", r"_\1", match[1]).lower()


ROUTES = tuple(_routes(http_api("keys")))
"""All routes of the template."""


@dataclass
class Gateway:
    """Answers requests as API Gateway does with `Access=keys`; `invoked` lists the functions that it has called.

    https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-lambda-authorizer.html
    """

    aws: Aws
    monkeypatch: pytest.MonkeyPatch
    invoked: list[str] = field(default_factory=list)
    _loaded: dict[str, ModuleType] = field(default_factory=dict)
    _remembered: dict[str, tuple[float, dict[str, Any]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.monkeypatch.setenv("ACCESS", "keys")
        self._schemes = http_api("keys")["components"]["securitySchemes"]

    def function(self, name: str) -> ModuleType:
        """The handler's module, loaded once as Lambda does."""
        if name not in self._loaded:
            self._loaded[name] = load(name, self.aws, self.monkeypatch)
        return self._loaded[name]

    def request(
        self,
        method: str,
        path: str,
        *,
        body: bytes | None = None,
        headers: dict[str, str] | None = None,
    ) -> Answer:
        """The answer to one request, without its body if that is HEAD; header names are in lower case."""
        answer = self._answer(method, path, body=body, headers=headers)
        return answer._replace(body=None) if method == "HEAD" else answer

    def _answer(self, method: str, path: str, *, body: bytes | None, headers: dict[str, str] | None) -> Answer:
        parts = urlsplit(path)
        event = http_event(method, parts.path, body=body, headers=headers, query=parts.query)
        routes = [route for route in ROUTES if route.method == method and route.matches(parts.path)]
        if not routes:
            return Answer(404, {}, {"message": "Not Found"})
        route = min(
            routes, key=lambda route_of: ("+}" in route_of.path, -len(route_of.path))
        )  # a full match before a greedy one
        for name in route.security:
            refusal = self._authorize(self._schemes[name]["x-amazon-apigateway-authorizer"], event)
            if refusal is not None:
                return refusal
        answer = self._invoke(route.function, event)
        if answer is None:
            return Answer(500, {}, {"message": "Internal Server Error"})
        content = None if answer.get("isBase64Encoded") else answer.get("body")
        return Answer(answer["statusCode"], answer["headers"], json.loads(content) if content else None)

    def _authorize(self, authorizer: dict[str, Any], event: dict[str, Any]) -> Answer | None:
        header = authorizer["identitySource"].removeprefix("$request.header.").lower()
        identity = event["headers"].get(header, "")
        if not identity:
            return Answer(401, {}, {"message": "Unauthorized"})
        until, outcome = self._remembered.get(identity, (0.0, {}))
        if until <= time.time():
            function = _folder(authorizer["authorizerUri"]["Fn::Sub"])
            said = self._invoke(function, event | {"type": "REQUEST", "identitySource": [identity]})
            if said is None or not isinstance(said["isAuthorized"], bool):
                return Answer(500, {}, {"message": "Internal Server Error"})
            outcome = said
            self._remembered[identity] = time.time() + authorizer["authorizerResultTtlInSeconds"], outcome
        if not outcome["isAuthorized"]:
            return Answer(403, {}, {"message": "Forbidden"})
        event["requestContext"]["authorizer"] = {"lambda": outcome["context"]}
        return None

    def _invoke(self, function: str, event: dict[str, Any]) -> dict[str, Any] | None:
        self.invoked.append(function)
        module = self.function(function)
        try:
            return call(module, event)
        except Exception:
            return None


PHOTO = jpeg(64, 48)
MOVE = b'{"delay": "PT3H"}'


def announcement_of(photo: bytes, **more: Any) -> bytes:
    """The announcement of the photo to POST /uploads."""
    return json.dumps({"bytes": len(photo), "sha256": hashlib.sha256(photo).hexdigest(), **more}).encode()


# The request of each route that creates images.
MAKING = {"/images": PHOTO, "/uploads": announcement_of(PHOTO)}
