"""docs/changing.md: its examples, made in a copy of the repository as they are written there, pass the tests."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from repository.report import ROOT

PAGE = (ROOT / "docs" / "changing.md").read_text()

EXAMPLES = {
    "A preset": r"avatar|PRESETS",
    "A route": r"openapi\.routes|openapi\.kept|gateways\.ROUTES",
    "A lane": r"LANES|idle_cost|expand_template|sound import|(?s:\bfast\b.*\bslow\b)",
}
"""The sections with an example, and what a test mentions, or what it uses of its file, if it may depend on such a
change."""

TIERS = {"A preset": ["unit"], "A route": ["unit", "contract"], "A lane": ["unit"]}
"""The tiers that the page says to run first."""


def edited(text: str, hunk: str) -> str:
    """The text after a hunk of a diff, whose first or last lines say where it belongs."""
    lines = hunk.splitlines(keepends=True)
    before = "".join(line[1:] or "\n" for line in lines if not line.startswith("+"))
    after = "".join(line[1:] or "\n" for line in lines if not line.startswith("-"))
    assert before.strip() and text.count(before) == 1, f"the file has this once:\n{before}"
    return text.replace(before, after)


def follow(section: str, copy: Path) -> None:
    """Makes the example of a section: its edits, and then its first commands."""
    text = PAGE.partition(f"\n## {section}\n")[2].partition("\n## ")[0].partition("**Then:**")[0]
    for diff in re.findall(r"```diff\n(.*?)```", text, re.DOTALL):
        for name, hunks in re.findall(r"^# (\S+)\n((?:(?!# ).*\n)+)", diff, re.MULTILINE):
            file = copy / name
            for hunk in re.split(r"^…\n", hunks, flags=re.MULTILINE):
                file.write_text(edited(file.read_text(), hunk))
    for commands in re.findall(r"```sh\n(.*?)```", text, re.DOTALL):
        subprocess.run(["sh", "-ec", commands], cwd=copy, check=True)


def copied(root: Path) -> Path:
    """The files of this repository, in a repository of their own, with its environments."""
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listed, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split("\0")
    for name in filter(None, names):
        if (ROOT / name).exists():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, root / name)
    (root / ".darkroom").mkdir()
    (root / ".darkroom" / "venvs").symlink_to(ROOT / ".darkroom" / "venvs")
    for command in (["init", "--quiet"], ["add", "--all"]):
        subprocess.run(["git", *command], cwd=root, check=True)
    return root


def statements(code: str) -> Iterator[tuple[set[str], str]]:
    """The statements of a file, each with the names that it defines; an import for each of its names."""
    for statement in ast.parse(code).body:
        match statement:
            case ast.ImportFrom(module=module, names=imported):
                yield from (({each.asname or each.name}, f"from {module} import {each.name}") for each in imported)
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                yield {name}, ast.unparse(statement)
            case _:
                nodes = [node for node in ast.walk(statement) if isinstance(node, ast.Name)]
                yield {node.id for node in nodes if isinstance(node.ctx, ast.Store)}, ast.unparse(statement)


def dependents(code: str, mentioned: str) -> set[str]:
    """The tests of a file that mention it, or use what does."""
    if not re.search(mentioned, code):
        return set()
    known, found, before = list(statements(code)), set[str](), None
    while found != before:
        before, reached = set(found), "|".join([mentioned, *(rf"\b{name}\b" for name in found)])
        found |= {name for names, said in known if re.search(reached, said) for name in names}
    assert not [said for names, said in known if names & found and "autouse" in said], "every test uses this one"
    return {name for name in found if name.startswith("test_")}


@pytest.mark.long
def test_whoever_follows_the_page_about_changes_word_by_word_passes_the_tests(tmp_path: Path) -> None:
    copy = copied(tmp_path / "repository")
    tests = {
        f"{file.relative_to(copy)}::{test}"
        for section, tiers in TIERS.items()
        for tier in tiers
        for file in (copy / "tests" / tier).rglob("test_*.py")
        for test in dependents(file.read_text(), EXAMPLES[section])
    }
    for section in EXAMPLES:
        follow(section, copy)
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", "--tb=line", *sorted(tests)],
        cwd=copy,
        # Bytecode is next to its source, so that the environments' packages are compiled once and not for this run.
        env={
            name: value
            for name, value in os.environ.items()
            if not name.startswith("PYTEST_") and name != "PYTHONPYCACHEPREFIX"
        }
        | {"PYTHONPATH": "scripts:cli:layers/core:."},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout[-4000:]
