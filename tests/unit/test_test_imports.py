"""Tests stand alone: what several need is in tests/support, in a tier's conftest or in a module that has no tests."""

from __future__ import annotations

import re

from repository.report import ROOT

IMPORT = re.compile(r"^ *from ([\w.]+) import (\([^)]*\)|.*)$", re.MULTILINE)


def test_no_module_imports_a_module_of_tests() -> None:
    modules = [*ROOT.glob("tests/**/*.py"), *ROOT.glob("local_aws/tests/*.py")]
    with_tests = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts) for path in modules if "test_" in path.stem[:5]
    }
    assert len(with_tests) > 200
    imported = {
        (str(path.relative_to(ROOT)), module)
        for path in modules
        for module, names in IMPORT.findall(path.read_text())
        for name in (module, *(f"{module}.{each}" for each in re.findall(r"\w+", names)))
        if name in with_tests
    }
    assert imported == set()
