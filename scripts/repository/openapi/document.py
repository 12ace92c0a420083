"""Makes openapi.json: the API in OpenAPI 3.1, from the table of routes, the problems, the documents' types and the
events."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from http import HTTPStatus
from typing import Annotated, Any, TypedDict

from pydantic import Field, TypeAdapter
from pydantic.json_schema import GenerateJsonSchema

from darkroom.domain.events.event import MEANINGS
from darkroom.domain.webhooks.delivery import PING
from darkroom.domain.webhooks.webhook_signature import ID_HEADER, SIGNATURE_HEADER, TIMESTAMP_HEADER
from darkroom.http.bulk.batches import BatchDocument
from darkroom.http.bulk.imports import ImportDocument, NewImportDocument
from darkroom.http.images.documents import ImageDocument, StatusDocument, UploadDocument
from darkroom.http.kernel.forms import FILE_PART, FORM_MEDIA_TYPE
from darkroom.http.kernel.headers import ALLOWANCE_HEADERS, EXAMPLE_ID, NO_SNIFFING, Header
from darkroom.http.kernel.problems import PROBLEMS, Problem, ProblemDocument, problem_document
from darkroom.http.kernel.requests import JSON
from darkroom.http.kernel.route import Body, Parameter, Route, RouteAnswer
from darkroom.http.webhooks.webhooks import NewWebhookDocument, WebhookDocument
from darkroom.parts import PARTS
from darkroom.settings import Access
from repository.openapi.examples import event_body, examples_of
from repository.openapi.payloads import PAYLOADS
from repository.openapi.routes import routes_of

type Json = dict[str, Any]


class GatewayError(TypedDict):
    """An error of API Gateway itself, in AWS's format instead of Darkroom's."""

    message: Annotated[str, Field(description="For people; it may change.")]


_DESCRIPTION = """\
Post a photo, get `202 Accepted`, and it will be developed: no accepted photo is ever lost.

Errors are `application/problem+json` (RFC 9457); branch on `code`. API Gateway's own errors have another format:
`{"message": …}`. The gateway routes only GET, HEAD, POST, PUT, PATCH and DELETE, and accepts 10 KiB of request
line and headers. Query parameters that are not described here are refused."""

_CACHE_CONTROL = Header("Cache-Control", str, "Whether the answer may be cached.", "no-store")

_ALWAYS_HEADERS = (_CACHE_CONTROL, NO_SNIFFING)
"""The headers of every answer of a function."""

EVERYWHERE = ("internal", "unknown_parameter")
"""Problems that every route may have."""

NOWHERE = ("unknown_path", "method_not_allowed")
"""The problems of a request that no route takes."""

_SECURITY: dict[Access, dict[str, Json]] = {
    "anonymous": {},
    "keys": {
        "key": {
            "type": "http",
            "scheme": "bearer",
            "description": "An API key, `dr_…`; to upload and for GET /images/{id}/status also an upload token.",
        }
    },
    "jwt": {
        "token": {
            "type": "http",
            "scheme": "bearer",
            "bearerFormat": "JWT",
            "description": "A token from the stack's identity provider.",
        }
    },
    "iam": {
        "sigv4": {
            "type": "apiKey",
            "in": "header",
            "name": "Authorization",
            "x-amazon-apigateway-authtype": "awsSigv4",
            "description": "AWS Signature Version 4 for the service `execute-api`.",
        }
    },
}
"""How callers authenticate, by the stack's access mode."""

_REFUSED_BY_GATEWAY: dict[Access, tuple[HTTPStatus, ...]] = {
    "anonymous": (),
    "keys": (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN),
    "jwt": (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN),
    "iam": (HTTPStatus.FORBIDDEN,),
}
"""How API Gateway answers a request without a valid credential."""

_REFUSED_BY_US: dict[Access, tuple[str, ...]] = {
    "anonymous": (),
    "keys": ("insufficient_scope",),
    "jwt": ("no_tenant",),
    "iam": (),
}
"""The problems of a credential that the gateway lets through."""

_OF_UPLOAD_TOKENS = ("upload_token_refused", "upload_token_expired", "upload_token_used_up")
"""Those of upload tokens, which API keys make, where they are taken; who only reads meets the first."""

_FAILED_BY_GATEWAY = (
    HTTPStatus.TOO_MANY_REQUESTS,
    HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
    HTTPStatus.INTERNAL_SERVER_ERROR,
    HTTPStatus.SERVICE_UNAVAILABLE,
)
"""How API Gateway itself may answer any request."""

_GATEWAY_MESSAGES: dict[HTTPStatus, str] = {
    HTTPStatus.UNAUTHORIZED: "Unauthorized",
    HTTPStatus.FORBIDDEN: "Forbidden",
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: "Request Entity Too Large",
    HTTPStatus.TOO_MANY_REQUESTS: "Too Many Requests",
    HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE: "Request Header Fields Too Large",
    HTTPStatus.INTERNAL_SERVER_ERROR: "Internal Server Error",
    HTTPStatus.SERVICE_UNAVAILABLE: "Service Unavailable",
}
"""The messages of API Gateway's own errors
(https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-troubleshooting-lambda.html)."""


def document(access: Access, parts: Collection[str] = PARTS) -> Json:
    """Returns the OpenAPI document of a stack with that access mode and these optional parts."""
    routes = routes_of(access, parts)
    components = _Components(routes)
    paths: Json = {}
    for route in routes:
        operation = _operation(route, access, components)
        described = {method.lower(): operation for method in route.methods}
        if "head" in described:
            described["head"] = _without_bodies(operation)
        paths[route.path] = paths.get(route.path, {}) | described
    payloads = PAYLOADS if "webhooks" in parts else ()
    webhooks = {kind: {"post": _received(kind, components)} for kind in payloads}
    responses = {code: _refusal(PROBLEMS[code].status, (code,), components) for code in NOWHERE}
    specification: Json = {
        "openapi": "3.1.0",
        "info": {"title": "Darkroom", "version": "1", "description": _DESCRIPTION},
        "servers": [{"url": "/"}],
        "security": [{name: []} for name in _SECURITY[access]],
        "paths": paths,
        "webhooks": webhooks,
        "components": {
            "responses": responses,
            "headers": components.headers,
            "examples": components.examples,
            "schemas": components.schemas,
            "securitySchemes": _SECURITY[access],
        },
    }
    for part, fields in _FIELDS_OF.items():
        if part not in parts:
            _leave_out(specification, fields)
    return specification


_FIELDS_OF = {"webhooks": ("notify",), "usage": ("used", "allowed"), "bulk": ("batch",)}
"""The fields of the core's documents that only a stack with the part has."""


def _leave_out(specification: Json, fields: tuple[str, ...]) -> None:
    """Removes these fields from all schemas, and the schemas to which nothing refers any more."""
    schemas = specification["components"]["schemas"]
    for schema in schemas.values():
        for name in fields:
            schema.get("properties", {}).pop(name, None)
    text = json.dumps(specification)
    for name in [name for name in schemas if f'"#/components/schemas/{name}"' not in text]:
        del schemas[name]


class _JsonSchema(GenerateJsonSchema):
    """Pydantic's schemas without a title for each field, which would repeat its name."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


class _Identical:
    """A Python type as a key: it may have no hash of its own."""

    def __init__(self, kind: Any) -> None:
        self.kind = kind

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Identical) and self.kind is other.kind

    def __hash__(self) -> int:
        return id(self.kind)


@cache
def _generated(of: _Identical) -> str:
    """A type's schema and the named ones to which it refers, as JSON: each stack changes its own."""
    adapter: TypeAdapter[Any] = TypeAdapter(of.kind)
    schemas, definitions = TypeAdapter.json_schemas(
        [("it", "validation", adapter)],
        schema_generator=_JsonSchema,
        ref_template="#/components/schemas/{model}",
    )
    return json.dumps([schemas["it", "validation"], definitions.get("$defs", {})])


class _Components:
    """What operations refer to, by name; everything that is asked for is added. `routes` are all of the stack."""

    def __init__(self, routes: Sequence[Route]) -> None:
        self.routes = routes
        self._known: dict[int, Json] = {}
        self.schemas: dict[str, Json] = {}
        self.examples: dict[str, Json] = {}
        self.headers: dict[str, Json] = {}

    def schema_of(self, kind: Any) -> Json:
        """The schema of a Python type, or a reference to it if it has a name."""
        if id(kind) not in self._known:
            schema, definitions = json.loads(_generated(_Identical(kind)))
            self.schemas |= definitions
            self._known[id(kind)] = schema
        return self._known[id(kind)]

    def examples_of(self, kind: Any) -> Json:
        """References to the examples of a document."""
        named = {f"{kind.__name__}.{name}": value for name, value in examples_of(kind).items()}
        self.examples |= {name: {"value": value} for name, value in named.items()}
        return {name.rpartition(".")[2]: {"$ref": f"#/components/examples/{name}"} for name in named}

    def problem(self, code: str) -> Json:
        """A reference to the schema of one problem."""
        name = "".join(word.capitalize() for word in code.split("_")) + "Problem"
        kind = PROBLEMS[code]
        self.schemas[name] = {
            "title": kind.title,
            "allOf": [self.schema_of(ProblemDocument)],
            "properties": {
                "type": {"const": kind.urn},
                "status": {"const": kind.status.value},
                "code": {"const": code},
            },
        }
        self.examples[code] = {"summary": kind.title, "value": _problem_example(code)}
        return {"$ref": f"#/components/schemas/{name}"}

    def event(self, kind: str) -> Json:
        """A reference to the schema of one type of event."""
        name = "".join(word.capitalize() for word in kind.split(".")) + "Event"
        envelope, data = PAYLOADS[kind]
        self.schemas[name] = {
            "allOf": [self.schema_of(envelope)],
            "properties": {"type": {"const": kind}, "data": self.schema_of(data)},
        }
        self.examples[kind] = {"value": json.loads(event_body(kind))}
        return {"$ref": f"#/components/schemas/{name}"}

    def header(self, header: Header, *, always: bool) -> Json:
        """One header of an answer."""
        described: Json = {
            "description": header.description,
            "required": always,
            "schema": self.schema_of(header.kind),
            "example": header.example,
        }
        is_shared = always if header in _ALWAYS_HEADERS else header in ALLOWANCE_HEADERS
        if not is_shared:
            return described
        self.headers[header.name] = described
        return {"$ref": f"#/components/headers/{header.name}"}


def _operation(route: Route, access: Access, components: _Components) -> Json:
    operation: Json = {
        "operationId": route.name,
        "summary": route.summary,
        "description": route.description,
        "parameters": [_parameter(parameter, components) for parameter in route.parameters],
    }
    if route.body is not None:
        operation["requestBody"] = _body(route.body, components)
    responses = {str(answer.status.value): _answer(answer, route.headers, components) for answer in route.answers}
    codes = (*route.problems, *EVERYWHERE)
    gateways = {*_FAILED_BY_GATEWAY}
    if route.is_open:
        operation["security"] = []
    else:
        codes += _REFUSED_BY_US[access]
        if access == "keys" and route.takes_upload_tokens:
            codes += _OF_UPLOAD_TOKENS if route.body is not None else _OF_UPLOAD_TOKENS[:1]
        gateways |= {*_REFUSED_BY_GATEWAY[access]}
    if route.body is not None:
        gateways.add(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
    for status in sorted(gateways | {PROBLEMS[code].status for code in codes}):
        own = tuple(code for code in codes if PROBLEMS[code].status is status)
        responses[str(status.value)] = _refusal(
            status, own, components, headers=route.headers, by_gateway=status in gateways
        )
    operation["responses"] = responses
    return operation


def _without_bodies(operation: Json) -> Json:
    """The operation that answers to HEAD what this one answers to GET."""
    responses = {
        status: {"description": response["description"], "headers": response["headers"]}
        for status, response in operation["responses"].items()
    }
    summary = f"{operation['summary']}, without the body"
    return operation | {"operationId": f"{operation['operationId']}Head", "summary": summary, "responses": responses}


_SENT_HEADERS = {
    ID_HEADER: ("The event's id: the same in every attempt.", {"type": "string"}, f"{EXAMPLE_ID}-3"),
    TIMESTAMP_HEADER: (
        "When this attempt is made, in seconds since 1970. Refuse what is older than five minutes.",
        {"type": "integer"},
        1_795_251_602,
    ),
    SIGNATURE_HEADER: (
        "`v1,` and the HMAC-SHA256 in Base64, with the webhook's secret, of id, timestamp and body, joined by full "
        "stops. Several, separated by spaces, while an earlier secret signs too: one that fits is enough.",
        {"type": "string", "pattern": "^v1,[A-Za-z0-9+/=]+( v1,[A-Za-z0-9+/=]+)*$"},
        "v1,tZ1I4/hDygAJgO5TYxiSd6Sd0kDW6hPenDe+bTa3Kkw=",
    ),
}

_MEANINGS: Mapping[str, str] = {str(kind): meaning for kind, meaning in MEANINGS.items()} | {
    PING: "The webhook's owner tries it."
}

_EXPECTED_ANSWERS = {
    "2XX": "You have it: answer within 15 seconds, and work afterwards.",
    "410": "You want nothing any more: the webhook is disabled.",
    "429": "Not so fast: `Retry-After` may delay the next attempt.",
    "default": "Everything else, redirects included, is a failure: ten attempts are made, over three days.",
}


def _received(kind: str, components: _Components) -> Json:
    """What the webhooks of a tenant receive when an event of that type happens."""
    words = kind.split(".")
    content = {"schema": components.event(kind), "examples": {"event": {"$ref": f"#/components/examples/{kind}"}}}
    return {
        "operationId": "receive" + "".join(word.capitalize() for word in words),
        "summary": f"Receive {kind}",
        "description": _MEANINGS[kind],
        "security": [],
        "parameters": [
            {
                "name": name,
                "in": "header",
                "required": True,
                "description": description,
                "schema": schema,
                "example": example,
            }
            for name, (description, schema, example) in _SENT_HEADERS.items()
        ],
        "requestBody": {"required": True, "content": {"application/json": content}},
        "responses": {status: {"description": description} for status, description in _EXPECTED_ANSWERS.items()},
    }


def _parameter(parameter: Parameter, components: _Components) -> Json:
    described: Json = {
        "name": parameter.name,
        "in": parameter.place,
        "description": parameter.description,
        "required": parameter.place == "path",
    }
    schema = components.schema_of(parameter.kind)
    if parameter.media_type is not None:
        return described | {"content": {parameter.media_type: {"schema": schema, "example": parameter.example}}}
    if schema.get("type") == "array":
        described |= {"style": "form", "explode": False}
    return described | {"schema": schema, "example": parameter.example}


def _body(body: Body, components: _Components) -> Json:
    content: Json = {}
    for media_type in body.media_types:
        if body.kind is not None:
            examples = {name: {"value": value} for name, value in body.examples.items()}
            content[media_type] = {"schema": components.schema_of(body.kind), "examples": examples}
        elif media_type == FORM_MEDIA_TYPE:
            file: Json = {"type": "string", "contentMediaType": "application/octet-stream"}
            content[media_type] = {
                "schema": {
                    "type": "object",
                    "properties": {FILE_PART: file},
                    "required": [FILE_PART],
                    "additionalProperties": False,
                },
                "encoding": {FILE_PART: {"contentType": ", ".join(t for t in body.media_types if t != media_type)}},
            }
        else:
            # The bytes themselves (https://spec.openapis.org/oas/v3.1.0#considerations-for-file-uploads).
            content[media_type] = {}
    if body.or_kind is not None:
        examples = {name: {"value": value} for name, value in body.examples.items()}
        content[JSON] = {"schema": components.schema_of(body.or_kind), "examples": examples}
    return {"description": body.description, "required": body.is_required, "content": content}


_SUBJECTS: dict[Any, str] = {
    **dict.fromkeys((StatusDocument, UploadDocument, ImageDocument), "images"),
    **dict.fromkeys((WebhookDocument, NewWebhookDocument), "webhooks"),
    BatchDocument: "batches",
    **dict.fromkeys((ImportDocument, NewImportDocument), "imports"),
}
"""What documents with an id are about, as the paths of its routes begin."""


def _answer(answer: RouteAnswer, of_route: tuple[Header, ...], components: _Components) -> Json:
    headers = (*answer.headers, *of_route, *_ALWAYS_HEADERS)
    described: Json = {
        "description": answer.description,
        "headers": {header.name: components.header(header, always=header.always) for header in headers},
    }
    if answer.kind is None:
        return described
    examples = components.examples_of(answer.kind)
    described["content"] = {"application/json": {"schema": components.schema_of(answer.kind), "examples": examples}}
    about = _SUBJECTS.get(answer.kind)
    if about is not None:
        described["links"] = {
            route.name: {"operationId": route.name, "parameters": {"id": "$response.body#/id"}}
            for route in components.routes
            if [parameter.name for parameter in route.parameters if parameter.place == "path"] == ["id"]
            and route.subject == about
        }
    return described


def _refusal(
    status: HTTPStatus,
    codes: tuple[str, ...],
    components: _Components,
    *,
    headers: tuple[Header, ...] = (),
    by_gateway: bool = False,
) -> Json:
    """The responses of one status: problems with these codes, which may have these headers besides their own, and the
    errors of API Gateway itself."""
    content: Json = {}
    described: Json = {}
    if codes:
        schemas = {code: components.problem(code) for code in codes}
        one_of = {"oneOf": list(schemas.values()), "discriminator": _discriminator(schemas)}
        content["application/problem+json"] = {
            "schema": one_of if len(codes) > 1 else schemas[codes[0]],
            "examples": {code: {"$ref": f"#/components/examples/{code}"} for code in codes},
        }
        for header in (*headers, *_ALWAYS_HEADERS):
            described[header.name] = components.header(header, always=header.always and not by_gateway)
        for code in codes:
            for header in PROBLEMS[code].headers:
                always = header.always and len(codes) == 1 and not by_gateway
                described[header.name] = components.header(header, always=always)
    if by_gateway:
        message = _GATEWAY_MESSAGES[status]
        content["application/json"] = {
            "schema": components.schema_of(GatewayError),
            "examples": {"gateway": {"summary": "API Gateway itself", "value": {"message": message}}},
        }
    titles = [PROBLEMS[code].title for code in codes] + ["API Gateway itself"] * by_gateway
    return {"description": ". ".join(titles) + ".", "headers": described, "content": content}


def _discriminator(schemas: dict[str, Json]) -> Json:
    return {"propertyName": "code", "mapping": {code: schema["$ref"] for code, schema in schemas.items()}}


def _problem_example(code: str) -> ProblemDocument:
    kind = PROBLEMS[code]
    problem = Problem(code, kind.example, errors=kind.example_errors, excess=kind.example_excess)
    return problem_document(problem, "T3stRequ3stId=")
