"""A route of the API: what one method of one path takes, and how it answers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Annotated, Any, Literal

from pydantic import Field

from darkroom.domain.tenants.api_keys import Scope
from darkroom.http.kernel.headers import ALLOWANCE_HEADERS, Header


@dataclass(frozen=True, kw_only=True)
class Parameter:
    """A parameter of a request: in its path, its query or a header. `kind` is the Python type that gives its schema;
    `media_type` is set if the value is a document itself."""

    name: str
    place: Literal["path", "query", "header"]
    kind: Any
    description: str
    example: Any = None
    media_type: str | None = None


@dataclass(frozen=True, kw_only=True)
class Body:
    """The body of a request, in any of these media types: a document of type `kind`, otherwise bytes; with `or_kind`
    also a document of that type, as JSON."""

    description: str
    media_types: tuple[str, ...]
    kind: Any = None
    or_kind: Any = None
    is_required: bool = True
    examples: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class RouteAnswer:
    """An answer to a request that was not refused; `kind` is the type of its document, or None without one."""

    status: HTTPStatus
    description: str
    kind: Any = None
    headers: tuple[Header, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Route:
    """One method of one path: what it takes, how it answers, and the codes of the problems it may answer with."""

    method: Literal["GET", "POST", "PATCH", "DELETE"]
    path: str
    name: str
    summary: str
    description: str
    answers: tuple[RouteAnswer, ...]
    problems: tuple[str, ...]
    parameters: tuple[Parameter, ...] = ()
    body: Body | None = None
    is_rate_limited: bool = False
    """Whether a request costs its tenant a token."""
    is_open: bool = False
    """Whether it answers everybody, without a credential."""
    takes_upload_tokens: bool = False
    """Whether a browser with an upload token may send it: a new route takes none."""

    @property
    def methods(self) -> tuple[str, ...]:
        """The methods that it answers: HEAD as GET. The gateway leaves the body out and keeps its length."""
        return (self.method, "HEAD") if self.method == "GET" else (self.method,)  # guard: api-head-as-get

    @property
    def subject(self) -> str:
        """What it is about, as its path begins: `images`, `webhooks`, `batches`, …"""
        return self.path.split("/")[1]

    @property
    def rule(self) -> str:
        """The path in the router's syntax. The handler's argument is `image_id`, `webhook_id` or `batch_id`, because
        `id` is a Python builtin."""
        name = {"webhooks": "<webhook_id>", "batches": "<batch_id>", "imports": "<batch_id>"}.get(
            self.subject, "<image_id>"
        )
        return self.path.replace("{id}", name).replace("{", "<").replace("}", ">")

    @property
    def headers(self) -> tuple[Header, ...]:
        """The headers that any of its answers may have, including errors."""
        return ALLOWANCE_HEADERS if self.is_rate_limited else ()

    @property
    def scope(self) -> Scope:
        """What a key must have been made for to send it."""
        if self.subject == "webhooks":  # guard: webhook-own-scopes
            return Scope.WEBHOOKS_READ if self.method == "GET" else Scope.WEBHOOKS_WRITE
        return Scope.IMAGES_READ if self.method == "GET" else Scope.IMAGES_WRITE

    @property
    def query(self) -> frozenset[str]:
        """The names of all query parameters."""
        return frozenset(parameter.name for parameter in self.parameters if parameter.place == "query")


def one_of(words: Iterable[str]) -> Any:
    """The type of one of the words."""
    return Annotated[str, Field(json_schema_extra={"enum": list(dict.fromkeys(words))})]
