"""Policies as data: their statements, and what these allow and refuse."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any

from darkroom_cli.doctor.facts import Statement

_SECURE = "aws:securetransport"


def statements_of(document: str | Mapping[str, Any] | None) -> tuple[Statement, ...]:
    """The statements of a policy document, as text or parsed; none for no document."""
    if not document:
        return ()
    parsed: Mapping[str, Any] = json.loads(document) if isinstance(document, str) else document
    return tuple(
        Statement(
            sid=statement.get("Sid", ""),
            is_allowed=statement["Effect"] == "Allow",
            # `NotAction` and `NotResource` leave open what they do not name.
            actions=_texts(statement.get("Action", "*")),
            resources=_texts(statement.get("Resource", "*")),
            principals=statement.get("Principal"),
            condition=statement.get("Condition", {}),
        )
        for statement in _list(parsed.get("Statement", []))
    )


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _texts(value: Any) -> frozenset[str]:
    return frozenset(element if isinstance(element, str) else str(element) for element in _list(value))


def services(statement: Statement) -> frozenset[str]:
    """The services among its principals."""
    principals = statement.principals
    return _texts(principals["Service"]) if isinstance(principals, Mapping) and "Service" in principals else frozenset()


def is_for_anybody(statement: Statement) -> bool:
    """Whether its principals include everybody."""
    principals = statement.principals
    if isinstance(principals, Mapping):
        return any("*" in _texts(value) for value in principals.values())
    return bool(principals == "*")


def refuses_plain_http(policy: Iterable[Statement], action: str) -> bool:
    """Whether a policy denies `action` to everybody who comes without TLS."""
    return any(
        not statement.is_allowed
        and is_for_anybody(statement)  # guard: doctor-plain-http-for-anybody
        and action in statement.actions
        and statement.resources
        and {name.lower(): value for name, value in statement.condition.get("Bool", {}).items()}.get(_SECURE)
        in ("false", ["false"])
        for statement in policy
    )


def allowed(statements: Iterable[Statement]) -> Iterator[tuple[str, str]]:
    """Each action with each resource on which it is allowed; both may have wildcards."""
    for statement in statements:
        if statement.is_allowed:
            yield from ((action, resource) for action in statement.actions for resource in statement.resources)


def actions_on(statements: Iterable[Statement], arn: str, service: str) -> frozenset[str]:
    """The actions of a service that statements allow on a resource, as they write them."""
    return frozenset(
        action
        for action, resource in allowed(statements)
        if (action == "*" or action.lower().startswith(f"{service}:")) and fnmatchcase(arn, _pattern(resource))
    )


def covers(pattern: str, action: str) -> bool:
    """Whether an action as a policy writes it, which may have wildcards, includes another one."""
    return fnmatchcase(action.lower(), _pattern(pattern.lower()))


def _pattern(text: str) -> str:
    return text.replace("[", "[[]")
