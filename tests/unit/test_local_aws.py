"""The embedded AWS is told by its caller which project it runs: its own code does not name one."""

import ast
from pathlib import Path

import pytest

from local_aws import project
from local_aws.paths import State
from local_aws.project import NothingGiven, given
from repository.report import ROOT

NEEDING_NOTHING = {
    "local_aws.lambda_base_image": {"ImageNotBuilt", "host_architecture"},
    "local_aws.layers": {"deployed_template"},
    "local_aws.local_invoke": {"Answer", "logical_id", "read_answer"},
    "local_aws.paths": {"State"},
    "local_aws.stack": {"supervisor"},
}
"""What may be used of a module that asks for the project, although nobody gave one."""


def test_the_embedded_aws_does_not_name_the_product() -> None:
    files = sorted((ROOT / "local_aws").rglob("*.py"))
    assert len(files) > 100
    naming = [str(file.relative_to(ROOT)) for file in files if "darkroom" in file.read_text().lower()]
    assert naming == []


def test_without_a_project_the_error_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(project, "_projects", [])
    for ask in (given, State.current):
        with pytest.raises(NothingGiven, match=r"call local_aws\.project\.give\(Project\(…\)\)"):
            ask()


def test_whoever_needs_the_project_imports_what_gives_it() -> None:
    asking = {_module(file) for file in (ROOT / "local_aws").glob("*.py") if "given()" in file.read_text()}
    assert asking >= NEEDING_NOTHING.keys() | {"local_aws.build", "local_aws.environment", "local_aws.project"}
    needing = []
    for folder in ("benchmarks", "cli", "scripts", "tests"):
        for file in (ROOT / folder).rglob("*.py"):
            if "local_aws" not in (code := file.read_text()):
                continue
            imported = _imported(code)
            uses = {module for module in asking if imported.get(module, set()) - NEEDING_NOTHING.get(module, set())}
            if uses or "State.current()" in code:
                needing.append((str(file.relative_to(ROOT)), imported))
    assert len(needing) > 5
    given_to = ("cli/darkroom_cli/local/", "tests/unit/test_local_aws.py")
    assert [
        name
        for name, imported in needing
        if not name.startswith(given_to) and not any(module.startswith("darkroom_cli.local") for module in imported)
    ] == []


def _module(file: Path) -> str:
    return ".".join(file.relative_to(ROOT).with_suffix("").parts)


def _imported(code: str) -> dict[str, set[str]]:
    """The names that a file's code imports of each module; a module that it imports as a whole has the name `*`."""
    names: dict[str, set[str]] = {}
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            for alias in node.names:
                names.setdefault(node.module, set()).add(alias.name)
                names.setdefault(f"{node.module}.{alias.name}", set()).add("*")
        elif isinstance(node, ast.Import):
            for alias in node.names:
                names.setdefault(alias.name, set()).add("*")
    return names
