"""Writes into docs/guarantees.md which tests hold each promise, as their marks say.

A promise names what it rests on: guards (`@pytest.mark.guards("claim-live-lease")`), and sweeps of tests that no single
line of code turns red (`pytestmark = pytest.mark.promise("fault-at-any-call")`).

    python -m tests.guards.promises
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from repository.report import ROOT
from tests.guards.__main__ import read_guards

PAGE = ROOT / "docs" / "guarantees.md"
_ROW = re.compile(r"^\| (?!promise \|)(?P<promise>.+) \| (?P<names>[a-z0-9, -]+) \|.*\|$", re.MULTILINE)


@cache
def sweeps() -> dict[str, set[Path]]:
    """The names of the sweeps, each with the files of its tests."""
    files = defaultdict[str, set[Path]](set)
    for file in (ROOT / "tests").rglob("test_*.py"):
        if "mark.promise(" not in (code := file.read_text()):
            continue
        for node in ast.walk(ast.parse(code)):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.promise":
                files[ast.literal_eval(node.args[0])].add(file.relative_to(ROOT))
    return dict(files)


@cache
def tests_of_guards() -> dict[str, set[Path]]:
    """The names of the guards, each with the files of the tests that fail without it."""
    return {guard.name: {Path(test.partition("::")[0]) for test in guard.tests} for guard in read_guards()}


def rows(page: str) -> Iterator[tuple[str, list[str]]]:
    """The promises of the page, each with the names of its guards and sweeps."""
    for row in _ROW.finditer(page):
        yield row["promise"], row["names"].split(", ")


def with_tests(page: str) -> str:
    """The page with the tests of each promise. Raises KeyError for a name that no line and no test has."""
    tests = tests_of_guards() | sweeps()

    def row(match: re.Match[str]) -> str:
        files = set[Path]().union(*(tests[name] for name in match["names"].split(", ")))
        return f"| {match['promise']} | {match['names']} | {_listed(files)} |"

    return _ROW.sub(row, page)


def _listed(files: Iterable[Path]) -> str:
    """The files of tests by tier, as the page says it: `unit: image` is tests/unit/test_image.py."""
    of_tier = defaultdict[str, list[str]](list)
    for file in sorted(files):
        tier, _, name = str(file).removeprefix("tests/").partition("/")
        of_tier[tier].append(str(Path(name).with_name(file.stem.removeprefix("test_"))))
    return "; ".join(f"{tier}: {', '.join(names)}" for tier, names in of_tier.items())


if __name__ == "__main__":
    PAGE.write_text(with_tests(PAGE.read_text()))
