"""Reports what is wrong with a client's input, by field and in plain words."""

from __future__ import annotations

import codecs
from dataclasses import dataclass
from typing import TYPE_CHECKING

from darkroom.domain.kernel.errors import Rejected

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pydantic import ValidationError
    from pydantic_core import ErrorDetails

_MOST_PROBLEMS = 16
"""How many invalid fields are reported at once: 4 KB of JSON may have a thousand."""

_PATH_CHARACTERS = 40
"""How much of a field's path is told: a client may have invented it."""


@dataclass(frozen=True, kw_only=True)
class FieldProblem:
    """What is wrong with one field: its path (`variants.2.width`, or a name for the whole) and a clause about it."""

    field: str
    message: str

    def __str__(self) -> str:
        return f"{self.field}: {self.message}"


class InvalidFields(Rejected):
    """Some fields are invalid; `problems` lists them, or the first of many."""

    def __init__(self, code: str, message: str, problems: tuple[FieldProblem, ...]) -> None:
        super().__init__(code, f"{message} {'; '.join(map(str, problems))}.")
        self.problems = problems


def problems_of(
    error: ValidationError, *, known: Iterable[str], patterns: Mapping[str, str] | None = None
) -> tuple[FieldProblem, ...]:
    """What is wrong with a JSON document, its first problems: `body` names the whole, `known` are its fields, and
    `patterns` says for a field what its text must be."""
    problems = []
    for details in findings(error):
        path = ".".join(str(part) for part in details["loc"])
        match details["type"]:
            case "string_pattern_mismatch" if patterns is not None:
                message = patterns[path]
            case "extra_forbidden":
                message = f"is not a known field. Known fields: {', '.join(known)}"
            case _:
                message = in_words(details)
        problems.append(FieldProblem(field=path[:_PATH_CHARACTERS] or "body", message=message))
    return tuple(problems)


def findings(error: ValidationError) -> list[ErrorDetails]:
    """What pydantic has found, the first of many. It also calls a list with invalid elements too short, which helps
    nobody."""
    every = error.errors(include_url=False)
    return [details for details in every if details["type"] != "too_short" or len(every) == 1][:_MOST_PROBLEMS]


def in_words(details: ErrorDetails) -> str:
    """Pydantic's finding, as a clause."""
    if details["type"] == "json_invalid" and _first_bytes(details["input"]).startswith(_BYTE_ORDER_MARKS):
        return "begins with a byte order mark, which is not allowed in JSON: send it as UTF-8 without one"
    if details["type"] in _WORDS:
        return _WORDS[details["type"]].format_map(details.get("ctx", {}))
    return details["msg"]


def _first_bytes(document: str | bytes) -> bytes:
    return document[:4].encode(errors="replace") if isinstance(document, str) else document[:4]


_BYTE_ORDER_MARKS = (codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)

_WORDS = {
    "missing": "is missing",
    "json_invalid": "is not JSON: {error}",
    "greater_than_equal": "must be at least {ge:g}",
    "less_than_equal": "must be at most {le:g}",
    "greater_than": "must be more than {gt:g}",
    "less_than": "must be less than {lt:g}",
    "literal_error": "must be {expected}",
    "int_type": "must be a whole number",
    "float_type": "must be a number",
    "bool_type": "must be true or false",
    "string_type": "must be text",
    "dict_type": "must be an object",
    "model_type": "must be an object",
    "list_type": "must be a list",
    "tuple_type": "must be a list",
    "too_short": "must not be empty",
    "string_too_long": "must have at most {max_length} characters",
    "too_long": "has {actual_length}; at most {max_length} are allowed",
}
"""Pydantic's error types in words for people who do not know Python
(https://docs.pydantic.dev/latest/errors/validation_errors/)."""
