"""What wiring loads: each function gets only its own operation and libraries."""

from __future__ import annotations

import functools
import json
import subprocess
import sys

import pytest

from checks.report import ROOT

FUNCTIONS = sorted(path.parent.name for path in (ROOT / "functions").glob("*/app.py"))

# Each in a fork of its own, of a process that has imported nothing.
SCRIPT = """
import json, os, sys
for name in sys.argv[1:]:
    if os.fork() == 0:
        __import__(f"darkroom.wiring.{name}")
        print(json.dumps([name, sorted(sys.modules)]), flush=True)
        os._exit(0)
    assert os.wait()[1] == 0, name
"""


@functools.cache
def loaded() -> dict[str, frozenset[str]]:
    """The modules that each function's wiring loads."""
    ran = subprocess.run(
        [sys.executable, "-c", SCRIPT, *FUNCTIONS],
        env={"PYTHONPATH": str(ROOT / "layers" / "core")},
        capture_output=True,
        text=True,
        check=True,
    )
    return {name: frozenset(modules) for name, modules in map(json.loads, ran.stdout.splitlines())}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_loads_only_its_own_operation(name: str) -> None:
    operations = {module.rpartition(".")[2] for module in loaded()[name] if module.startswith("darkroom.operations.")}
    assert name in operations
    assert operations & set(FUNCTIONS) == {name}


@pytest.mark.parametrize(
    ("library", "users"),
    [
        ("PIL", {"transcode_image"}),
        ("boto3", {"transcode_image"}),  # Powertools' idempotency imports it
        ("aws_xray_sdk", set()),
        ("pydantic", {*FUNCTIONS} - {"authorize_request"}),
    ],
)
def test_a_library_is_loaded_only_where_it_is_needed(library: str, users: set[str]) -> None:
    assert {name for name, modules in loaded().items() if library in modules} == users
