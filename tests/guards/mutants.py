"""The guards in the code, and a file without one of them.

A guard is a line of code with the comment `# guard: NAME`, at its end or alone on the line before; several names stand
between commas. Without it, by default,

- the condition of an `if` or a `while` never holds;
- any other statement is not there; what a `with` holds stays;
- an operand of `and` or `or`, an argument, an element, an entry, an exception's handler, a decorator or a condition of
  a comprehension that begins on the line is not there;
- of a file that is not Python, the line is not there.

Where another removal is meant, tests/guards/guards.toml says it by the guard's name (`Way`).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import cast

_COMMENT = re.compile(r"(?:^[ ]*|  )(?:#|//) guard: (?P<names>[a-z0-9-]+(?:, [a-z0-9-]+)*)$", re.MULTILINE)
_STRICT_OR_NOT: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
}
_PAIR = 2


class Way(StrEnum):
    """How a guard is removed; the values in guards.toml are parts of its line, and "if" is its condition."""

    NEVER = "never"
    """The part is False."""
    ALWAYS = "always"
    """The part is True."""
    WITHOUT = "without"
    """The part is not there: an operand, an argument, an element, an entry."""
    KEEP = "keep"
    """Only the part is there, of the smallest expression around it: of `min(a, b)`, `a or b`, `a if c else b`, `not
    a`."""
    BOUND = "bound"
    """The comparison is strict if it was not, and the other way round."""
    REPLACE = "replace"
    """The first text of a pair, which begins on the line, is the second one."""


class NoMutantError(ValueError):
    """A guard cannot be removed as it is said; its text says why."""


@dataclass(frozen=True, kw_only=True)
class Removal:
    """How a guard is removed: `way` None is by default."""

    way: Way | None = None
    part: str = ""
    by: str = ""


def guarded_lines(code: str) -> Iterator[tuple[str, int]]:
    """The names of the guards in a file, each with the number of its line, from 1."""
    for comment in _COMMENT.finditer(code):
        line = code.count("\n", 0, comment.start()) + 1
        is_alone = not code[code.rfind("\n", 0, comment.start()) + 1 : comment.start()].strip()
        for name in comment["names"].split(", "):
            yield name, line + is_alone


def without_guard(path: Path, code: str, line: int, removal: Removal) -> str:
    """The file without the guard of a line. Raises NoMutantError and, if that is no Python, SyntaxError."""
    bare = _bare(code)
    if removal.way is Way.REPLACE:
        mutant = _replaced(bare, line, removal)
        if path.suffix == ".py":
            first, last = _statement(bare, line)
            added = mutant.count("\n") - bare.count("\n")
            ast.parse("".join(mutant.splitlines(keepends=True)[first - 1 : last + added]))
    elif path.suffix != ".py":
        if removal.way is not None:
            raise NoMutantError(f"of {path.suffix} a line can only be removed or replaced")
        lines = bare.splitlines(keepends=True)
        mutant = "".join(lines[: line - 1] + lines[line:])
    else:
        # Only the statement around it is parsed and written anew: a file's others stay as they are.
        lines = bare.splitlines(keepends=True)
        first, last = _statement(bare, line)
        tree = ast.parse("\n" * (first - 1) + "".join(lines[first - 1 : last]))
        remove(tree, line, removal)
        own = f"{ast.unparse(tree)}\n"
        ast.parse(own)
        mutant = "".join([*lines[: first - 1], own, *lines[last:]])
    return mutant


@cache
def _bare(code: str) -> str:
    return _COMMENT.sub("", code)


def _statement(code: str, line: int) -> tuple[int, int]:
    """The first and the last line of a file's own statement around a line; of the file if there is none."""
    whole = 1, len(code.splitlines())
    return next((span for span in _statements(code) if span[0] <= line <= span[1]), whole)


@cache
def _statements(code: str) -> list[tuple[int, int]]:
    """The first and the last line of each of a file's own statements."""
    return [
        (min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", ()))]), node.end_lineno or 0)
        for node in ast.parse(code).body
    ]


def _replaced(code: str, line: int, removal: Removal) -> str:
    start = sum(len(line_of_code) for line_of_code in code.splitlines(keepends=True)[: line - 1])
    end = code.find("\n", start)
    places = [match.start() for match in re.finditer(re.escape(removal.part), code) if start <= match.start() < end]
    if len(places) != 1:
        raise NoMutantError(f"{removal.part!r} begins {len(places)} times on its line, not once")
    return code[: places[0]] + removal.by + code[places[0] + len(removal.part) :]


def remove(tree: ast.AST, line: int, removal: Removal) -> None:
    """Removes the guard of a line from a parsed file, in place."""
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    node = next((node for node in ast.walk(tree) if getattr(node, "lineno", None) == line), None)
    if node is None:
        raise NoMutantError("nothing begins on its line")
    match removal.way:
        case None if isinstance(node, ast.If | ast.While):
            node.test = ast.Constant(value=False)
        case None:
            _drop(node, parents)
        case Way.BOUND:
            bounds = [inner for inner in _header(node) if isinstance(inner, ast.Compare) and _is_bound(inner)]
            bound = _only(bounds, "a bound")
            bound.ops = [_STRICT_OR_NOT[type(bound.ops[0])]()]
        case Way.NEVER | Way.ALWAYS:
            _put(_part(node, removal.part), parents, ast.Constant(value=removal.way is Way.ALWAYS))
        case Way.WITHOUT:
            _drop(_part(node, removal.part), parents)
        case Way.KEEP:
            part = _part(node, removal.part)
            _put(_around(part, parents), parents, part)
        case Way.REPLACE:
            raise NoMutantError("a text is replaced in the text")


def _is_bound(node: ast.Compare) -> bool:
    return len(node.ops) == 1 and type(node.ops[0]) in _STRICT_OR_NOT


def _header(node: ast.AST) -> Iterator[ast.AST]:
    """The node and what is in it, but for the statements that it holds."""
    yield node
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.stmt | ast.excepthandler | ast.match_case):
            yield from _header(child)


def _part(node: ast.AST, part: str) -> ast.AST:
    """The one part of a line that reads so: an expression, or `name=value` as of an argument; of an entry, its key."""
    if part == "if" and isinstance(node, ast.If | ast.While):
        return node.test
    call = cast(ast.Call, ast.parse(f"f({part})", mode="eval").body)
    wanted = ast.dump([*call.args, *call.keywords][0])
    return _only([inner for inner in _header(node) if ast.dump(inner) == wanted], repr(part))


def _only[Node: ast.AST](nodes: list[Node], what: str) -> Node:
    if len(nodes) != 1:
        raise NoMutantError(f"{what} is {len(nodes)} times on its line, not once")
    return nodes[0]


def _around(node: ast.AST, parents: dict[ast.AST, ast.AST]) -> ast.AST:
    parent = parents[node]
    while not isinstance(parent, ast.expr):
        parent = parents[parent]
    return parent


def _put(old: ast.AST, parents: dict[ast.AST, ast.AST], *new: ast.AST) -> None:
    """Puts a node in another's place; in a list also several, or none."""
    parent = parents[old]
    for name, value in ast.iter_fields(parent):
        if value is old:
            setattr(parent, name, new[0])
        elif isinstance(value, list) and old in value:
            place = value.index(old)
            value[place : place + 1] = new


def _drop(node: ast.AST, parents: dict[ast.AST, ast.AST]) -> None:
    """Takes a node out of its place."""
    parent = parents[node]
    if isinstance(parent, ast.Dict):
        del parent.values[parent.keys.index(cast(ast.expr, node))]
        _put(node, parents)
    elif isinstance(node, ast.With):
        _put(node, parents, *node.body)
    elif isinstance(node, ast.stmt):
        _put(node, parents, ast.Pass())
    elif isinstance(parent, ast.BoolOp) and len(parent.values) == _PAIR:
        _put(parent, parents, *(value for value in parent.values if value is not node))
    elif any(isinstance(value, list) and node in value for _, value in ast.iter_fields(parent)):
        _put(node, parents)
    else:
        raise NoMutantError("its line is no part that could be left out: say in the data what is meant")
