"""Checks that openapi.json describes an answer: its status, media type, headers and every field of its document."""

from __future__ import annotations

import copy
import functools
import json
import re
from collections.abc import Mapping
from typing import Any

import jsonschema_rs

from darkroom.http.description import description
from darkroom.settings import Access

GATEWAYS_OWN = frozenset({"content-type", "content-length", "date", "apigw-requestid"})
"""Headers that a description need not name."""


def described(access: Access = "anonymous") -> dict[str, Any]:
    """The description of the API that stacks serve: tests/unit/test_core_alone.py compares it with the generated one,
    which takes ten times as long."""
    return description(access)


@functools.cache
def _closed_components(access: Access) -> dict[str, Any]:
    """The components, with schemas that allow no field besides those they name: an answer may have no other."""
    components = copy.deepcopy(described(access)["components"])
    for name, schema in components["schemas"].items():
        if ("properties" in schema or "allOf" in schema) and name != "ProblemDocument":  # base schemas of others
            schema["unevaluatedProperties"] = False
    return dict(components)


def misfits(value: Any, schema: Mapping[str, Any], access: Access = "anonymous") -> list[str]:
    """What in the value violates the schema."""
    errors = _validator(json.dumps(schema), access).iter_errors(value)
    return [f"{list(error.instance_path)}: {error.message}" for error in errors]


@functools.cache
def _validator(schema: str, access: Access) -> jsonschema_rs.Draft202012Validator:
    closed_schema = {**json.loads(schema), "components": _closed_components(access)}
    return jsonschema_rs.Draft202012Validator(closed_schema, validate_formats=True)


def resolved(node: Mapping[str, Any], access: Access = "anonymous") -> Any:
    """The target of a reference to a component, or the node itself."""
    if "$ref" not in node:
        return node
    part: Any = described(access)
    for step in node["$ref"].removeprefix("#/").split("/"):
        part = part[step]
    return part


def operation_of(method: str, path: str, access: Access = "anonymous") -> dict[str, Any] | None:
    """The operation that a request matches; None if none is described."""
    for template, operations in described(access)["paths"].items():
        if re.fullmatch(re.sub(r"\\\{\w+\\\}", "[^/]+", re.escape(template)), path) and method.lower() in operations:
            operation: dict[str, Any] = operations[method.lower()]
            return operation
    return None


def assert_described(
    method: str, path: str, *, access: Access, status: int, headers: Mapping[str, str], body: str | None
) -> None:
    """Fails if openapi.json describes no such answer to such a request. A function answers to HEAD as to GET, and the
    gateway leaves the body out."""
    if method == "HEAD":
        heads = operation_of("HEAD", path, access)
        if heads is not None:
            assert "content" not in heads["responses"][str(status)], f"HEAD {path}: openapi.json promises a document"
        method = "GET"
    operation = operation_of(method, path, access)
    asked = f"{method} {path} → {status}"
    if operation is None:
        response = described(access)["components"]["responses"][
            "unknown_path" if status == 404 else "method_not_allowed"
        ]
    else:
        assert str(status) in operation["responses"], f"{asked} is not in openapi.json"
        response = operation["responses"][str(status)]
    _assert_headers(asked, access, response["headers"], {name.lower(): value for name, value in headers.items()})
    media_type = next((value for name, value in headers.items() if name.lower() == "content-type"), None)
    if not body:
        assert "content" not in response, f"{asked}: openapi.json promises a document"
        return
    assert media_type in response.get("content", {}), f"{asked}: {media_type} is not in openapi.json"
    wrong = misfits(json.loads(body), response["content"][media_type]["schema"], access)
    assert not wrong, f"{asked}: {wrong}"


def _assert_headers(asked: str, access: Access, known: Mapping[str, Any], given: Mapping[str, str]) -> None:
    known = {name.lower(): resolved(header, access) for name, header in known.items()}
    assert given.keys() <= known.keys() | GATEWAYS_OWN, f"{asked}: headers that openapi.json does not name"
    for name, header in known.items():
        if name in given:
            value: Any = int(given[name]) if header["schema"].get("type") == "integer" else given[name]
            assert not misfits(value, header["schema"], access), f"{asked}: {name}"
        else:
            assert not header["required"], f"{asked}: no {name}"
