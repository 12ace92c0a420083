"""openapi.json as this stack has it, and the methods that it allows at a path.

`openapi.json` beside this module is that of every stack: made from the table of routes by `repository.openapi`, so that
no function loads the routes, documents and events of all the others to describe them.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Collection
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from darkroom.parts import PARTS

if TYPE_CHECKING:
    from darkroom.settings import Access

KEPT = Path(__file__).with_name("openapi.json")

PIECES = "?"
"""The member of an object that stands for what stacks have differently: a list of terms and pieces."""


@functools.cache
def description(access: Access, parts: frozenset[str] = frozenset(PARTS)) -> dict[str, Any]:
    """The OpenAPI document of a stack with that access mode and these optional parts."""
    facts = frozenset({access, *(part if part in parts else f"-{part}" for part in PARTS)})
    document: dict[str, Any] = of_stack(json.loads(KEPT.read_bytes()), facts)
    return document


def of_stack(value: Any, facts: frozenset[str]) -> Any:
    """What a stack has of a value, of which these words hold. Of its pieces those count of which a term holds, and a
    term does if each of its words does, or one of those that `|` separates; what counts is put together."""
    if isinstance(value, list):
        return [of_stack(element, facts) for element in value]
    if not isinstance(value, dict):
        return value
    if PIECES not in value:
        return {name: of_stack(member, facts) for name, member in value.items()}
    pieces = [
        of_stack(piece, facts)
        for terms, piece in value[PIECES]
        # guard: parts-off-undescribed
        if any(all(not facts.isdisjoint(word.split("|")) for word in term.split()) for term in terms)
    ]
    if isinstance(pieces[0], dict):
        return dict(chain.from_iterable(piece.items() for piece in pieces))
    return list(chain.from_iterable(pieces)) if isinstance(pieces[0], list) else pieces[0]


def methods_of(path: str, access: Access, parts: Collection[str]) -> tuple[str, ...]:
    """The methods that a path allows in a stack with these parts; none if there is nothing at it."""
    return tuple(
        method.upper()
        for template, operations in description(access, frozenset(parts))["paths"].items()
        if re.fullmatch(re.sub(r"\\{\w+\\}", "[^/]+", re.escape(template)), path)
        for method in operations
    )
