"""What the packages of the command and of the core declare is what they import, in the versions of the lock files."""

from __future__ import annotations

import ast
import importlib.metadata
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from repository.report import ROOT

OURS = {"darkroom", "darkroom_cli", "darkroom_client", "local_aws"}
IN_A_CHECKOUT = {"repository"}
"""What only commands in a checkout import."""
IMAGING = {"PIL", "pillow_heif", "pyvips"}
"""What the command does not need of the core."""
LAMBDA = {"awslambdaric", "snapshot_restore_py"}
"""What only Lambda's runtime has."""


def declared(project: str) -> set[str]:
    """The names of the packages that a project depends on."""
    dependencies = tomllib.loads((ROOT / project / "pyproject.toml").read_text())["project"]["dependencies"]
    return {_name_of(dependency) for dependency in dependencies}


def imported(*folders: Path) -> set[str]:
    """The top-level modules of others that the code imports, but for type checkers."""
    files = [
        file for folder in folders for file in folder.rglob("*.py") if "local" not in file.relative_to(folder).parts
    ]
    imported = {name.partition(".")[0] for file in files for name in _imports_of(ast.parse(file.read_text()))}
    return imported - sys.stdlib_module_names - OURS - IN_A_CHECKOUT - IMAGING - LAMBDA


def _imports_of(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.If(test=ast.Name(id="TYPE_CHECKING")):
            return
        case ast.Import(names=names):
            yield from (name.name for name in names)
        case ast.ImportFrom(module=str(module), level=0):
            yield module
    for child in ast.iter_child_nodes(node):
        yield from _imports_of(child)


def _name_of(requirement: str) -> str:
    name = re.match(r"[A-Za-z0-9._-]+", requirement)
    assert name is not None, requirement
    return name[0].lower().replace("_", "-")


@pytest.mark.parametrize(
    ("project", "folders"),
    [
        ("cli", ["cli/darkroom_cli", "cli/darkroom_client", "local_aws/stacks"]),
        ("layers/core", ["layers/core/darkroom"]),
    ],
)
def test_a_package_declares_what_it_imports(project: str, folders: list[str]) -> None:
    distributions = importlib.metadata.packages_distributions()
    needed = {name: set(map(_name_of, distributions[name])) for name in imported(*(ROOT / it for it in folders))}
    named = declared(project)
    brought = {_name_of(each) for name in named - {"darkroom-core"} for each in importlib.metadata.requires(name) or ()}
    assert {name for name, providers in needed.items() if not (named | brought) & providers} == set()


def test_the_core_is_installed_in_no_older_versions_than_the_layers() -> None:
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text())["dependency-groups"]
    core = tomllib.loads((ROOT / "layers/core/pyproject.toml").read_text())["project"]["dependencies"]
    assert core == [pinned.replace("==", ">=") for pinned in groups["layer-dependencies"]]
