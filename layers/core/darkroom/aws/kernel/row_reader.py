"""Makes a row from the plain values of its attributes, and refuses what this version does not understand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import is_dataclass
from enum import StrEnum
from functools import cache
from types import NoneType
from typing import Any, TypeAliasType, get_args, get_origin, get_type_hints

from pydantic import ValidationError

from darkroom.domain.recipes.edits import Edits
from darkroom.domain.recipes.recipes import Recipe

REASON_CHARACTERS = 300
"""How much of the reason why a row cannot be read is told."""


_DOCUMENTS: dict[str, Any] = {"Recipe": Recipe, "Edits": Edits}
"""What a row has as JSON, by the names that its types have where they are only checked."""


@cache
def reader(kind: Any) -> Callable[[Any], Any]:
    """Returns a function that makes a value of that kind from its plain form, and raises ValueError for anything
    else: a dataclass, a list or map of such, a text, a number, a truth value."""
    if isinstance(kind, TypeAliasType):
        return reader(kind.__value__)
    if kind in _DOCUMENTS.values():
        return _document(kind)
    if get_origin(kind) is tuple:
        return _list_of(reader(get_args(kind)[0]))
    if get_origin(kind) is dict:
        return _names_to(reader(get_args(kind)[1]))
    if NoneType in get_args(kind):  # a missing attribute is None, and a present one is not
        return reader(next(part for part in get_args(kind) if part is not NoneType))
    if is_dataclass(kind):
        return _record(kind)
    return _member_of(kind) if issubclass(kind, StrEnum) else _exactly(kind)


def _exactly(kind: type) -> Callable[[Any], Any]:
    def read(value: Any) -> Any:
        if type(value) is not kind:  # guard: unreadable-mistyped-value
            raise ValueError(f"a value of type {type(value).__name__}, not {kind.__name__}")
        return value

    return read


def _member_of(kind: type[StrEnum]) -> Callable[[Any], Any]:
    return kind


def _list_of(read_one: Callable[[Any], Any]) -> Callable[[Any], Any]:
    as_list = _exactly(list)
    return lambda value: tuple(map(read_one, as_list(value)))


def _names_to(read_one: Callable[[Any], Any]) -> Callable[[Any], Any]:
    as_dict = _exactly(dict)
    return lambda value: {name: read_one(member) for name, member in as_dict(value).items()}


def _record(kind: Any) -> Callable[[Any], Any]:
    readers = {name: reader(hint) for name, hint in get_type_hints(kind, localns=_DOCUMENTS).items()}
    as_dict = _exactly(dict)

    def read(value: Any) -> Any:
        read_parts = {}
        for name, part in as_dict(value).items():
            if name not in readers:
                raise ValueError(f"{name}: there is no such attribute")  # guard: unreadable-unknown-attribute
            try:
                read_parts[name] = readers[name](part)
            except ValueError as error:
                raise ValueError(f"{name}: {error}") from error
        return kind(**read_parts)

    return read


def _document(kind: Any) -> Callable[[Any], Any]:
    def read(text: Any) -> Any:
        try:
            return kind.model_validate_json(text)
        except ValidationError as error:
            problems = error.errors(include_url=False, include_input=False)
            raise ValueError(
                "; ".join(f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}" for problem in problems)
            ) from error

    return read
