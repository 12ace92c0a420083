"""The programs that need no stack."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from repository.report import ROOT
from tests.benchmarks.programs import IN_A_PROCESS, ON_A_STACK, WITH_RIVALS, run


def test_every_program_is_run() -> None:
    programs = {path.parent.name for path in (ROOT / "benchmarks").glob("*/__main__.py")}
    assert programs == {*ON_A_STACK, *IN_A_PROCESS, *WITH_RIVALS}


@pytest.mark.parametrize("program", IN_A_PROCESS)
def test_it_runs_to_its_report_and_counts_what_is_documented(program: str) -> None:
    run(program)


@pytest.mark.parametrize("program", WITH_RIVALS)
def test_it_runs_to_its_report_where_its_rivals_can_be_installed(program: str) -> None:
    installed = subprocess.run(["scripts/setup/environments.sh", "bench"], cwd=ROOT, capture_output=True, check=False)
    if installed.returncode != 0:
        pytest.skip(f"their environment cannot be installed here: {installed.stderr.decode()[-300:]}")
    if program == "engine" and not (shutil.which("node") and shutil.which("npm")):
        pytest.skip("there is no Node.js with npm")
    run(program)
