"""A function fits on a screen."""

import ast
from pathlib import Path

from repository.report import ROOT

MOST_LINES = 60
FOLDERS = ("layers", "functions", "cli")


def test_no_function_of_the_product_and_the_console_is_longer_than_a_screen() -> None:
    files = [file for folder in FOLDERS for file in (ROOT / folder).rglob("*.py")]
    assert files
    assert {name: lines for file in files for name, lines in lengths(file).items() if lines > MOST_LINES} == {}


def lengths(file: Path) -> dict[str, int]:
    """How many lines each function has, from its `def` to its last line."""
    return {
        f"{file.relative_to(ROOT)}:{node.lineno} {node.name}": (node.end_lineno or node.lineno) - node.lineno + 1
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
