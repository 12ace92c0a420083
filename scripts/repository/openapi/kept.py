"""Writes the openapi.json of every stack into the one file from which `darkroom.http.description` takes a stack's own.

python -m repository.openapi.kept
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple, get_args

from darkroom.http.description import KEPT, PIECES
from darkroom.parts import PARTS
from darkroom.settings import Access
from repository.openapi.document import document

ACCESSES: tuple[Access, ...] = get_args(Access.__value__)
DESCRIBED = tuple(part for part in PARTS if part != "page")
"""The parts that have something in the API: the page is for people."""

WIDTH = 110
"""The longest line, unless a text is longer."""


class Stack(NamedTuple):
    """What decides how a stack's document differs from another's."""

    access: Access
    parts: frozenset[str]


STACKS = tuple(
    Stack(access, frozenset(itertools.compress(DESCRIBED, chosen)))
    for access in ACCESSES
    for chosen in itertools.product((True, False), repeat=len(DESCRIBED))
)


def main() -> None:
    """Writes the file."""
    KEPT.write_text(kept({stack: document(*stack) for stack in STACKS}))


def kept(documents: Mapping[Stack, Mapping[str, Any]]) -> str:
    """The file's text, from the document of every stack."""
    return _written(merged(documents), "") + "\n"


def _written(value: Any, indentation: str) -> str:
    """The value as JSON, with what fits into a line on one."""
    text = json.dumps(value, ensure_ascii=False)
    if len(indentation) + len(text) <= WIDTH or not isinstance(value, dict | list):
        return text
    deeper = f"{indentation} "
    if isinstance(value, list):
        elements = ",\n".join(deeper + _written(element, deeper) for element in value)
        return f"[\n{elements}\n{indentation}]"
    members = ",\n".join(f"{deeper}{json.dumps(name)}: {_written(member, deeper)}" for name, member in value.items())
    return f"{{\n{members}\n{indentation}}}"


def merged(values: Mapping[Stack, Any]) -> Any:
    """One value of which `darkroom.http.description.of_stack` makes each stack's again: where they differ, it has
    pieces, and each piece the terms of the stacks that have it."""
    first, *others = values.values()
    if all(json.dumps(other) == json.dumps(first) for other in others):  # in the same order
        return first
    if isinstance(first, dict):
        members = [
            (having, {name: merged({stack: values[stack][name] for stack in having})})
            for name, having in _in_order({stack: list(value) for stack, value in values.items()})
        ]
        return _joined(values, members, lambda piece, member: piece | member)
    if isinstance(first, list):
        written = {stack: [json.dumps(element) for element in value] for stack, value in values.items()}
        elements = [(having, [json.loads(element)]) for element, having in _in_order(written)]
        return _joined(values, elements, lambda piece, element: piece + element)
    alternatives = dict.fromkeys(values.values())
    known = frozenset(values)
    return {
        PIECES: [
            [list(terms_of(frozenset(stack for stack in values if values[stack] == value), known)), value]
            for value in alternatives
        ]
    }


def _in_order(texts: Mapping[Stack, Sequence[str]]) -> list[tuple[str, tuple[Stack, ...]]]:
    """The texts of all stacks, each with those that have it, in an order of which each stack's own is a part. A text
    that stacks have in different places comes more than once."""
    left = {stack: list(own) for stack, own in texts.items()}
    ordered = []
    while heads := list(dict.fromkeys(own[0] for own in left.values() if own)):
        # That which nobody has further behind; otherwise that which most have here.
        head = min(
            heads,
            key=lambda text: (
                any(text in own[1:] for own in left.values()),
                -sum(own[:1] == [text] for own in left.values()),
            ),
        )
        having = tuple(stack for stack, own in left.items() if own[:1] == [head])
        for stack in having:
            del left[stack][0]
        ordered.append((head, having))
    return ordered


def _joined(stacks: Collection[Stack], parted: Sequence[tuple[tuple[Stack, ...], Any]], join: Any) -> Any:
    """The parts in pieces, one for all neighbours that the same stacks have; without pieces if all stacks have all."""
    pieces: list[tuple[tuple[Stack, ...], Any]] = []
    for having, part in parted:
        if pieces and pieces[-1][0] == having:
            pieces[-1] = having, join(pieces[-1][1], part)
        else:
            pieces.append((having, part))
    if len(pieces) == 1 and len(pieces[0][0]) == len(stacks):
        return pieces[0][1]
    # The empty one is there for a stack that has no other.
    known = frozenset(stacks)
    return {
        PIECES: [
            [[""], type(pieces[0][1])()],
            *([list(terms_of(frozenset(having), known)), piece] for having, piece in pieces),
        ]
    }


@cache
def terms_of(having: frozenset[Stack], known: frozenset[Stack]) -> Sequence[str]:
    """The terms of which at least one holds in these stacks, and none in any other of those that are `known`: the
    largest ones first, and one that says nothing if all of them have it."""
    missing, others = set(having), set(known) - set(having)
    terms = []
    while missing:
        term = max(
            (term for term, stacks in _terms().items() if not stacks & others),
            key=lambda term: (len(_terms()[term] & missing), -len(term.split()), -len(term)),
        )
        missing -= _terms()[term]
        terms.append(term)
    return terms


@cache
def _terms() -> Mapping[str, frozenset[Stack]]:
    """Every term, `keys|jwt webhooks -usage`, with the stacks in which each of its words holds."""
    accesses = [some for count in range(1, len(ACCESSES) + 1) for some in itertools.combinations(ACCESSES, count)]
    terms = {}
    for some, signs in itertools.product(accesses, itertools.product(("", "+", "-"), repeat=len(DESCRIBED))):
        words = [sign.removeprefix("+") + part for sign, part in zip(signs, DESCRIBED, strict=True) if sign]
        text = " ".join(words if len(some) == len(ACCESSES) else ["|".join(some), *words])
        terms[text] = frozenset(
            stack
            for stack in STACKS
            if stack.access in some
            and all(
                sign in ("", "+" if part in stack.parts else "-") for sign, part in zip(signs, DESCRIBED, strict=True)
            )
        )
    return terms


if __name__ == "__main__":
    main()
