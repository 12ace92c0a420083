"""The programs that need no stack."""

from __future__ import annotations

import shutil

import pytest

from repository.report import ROOT
from tests.benchmarks.programs import IN_A_PROCESS, ON_A_STACK, WITH_RIVALS, need_environments, run


def test_every_program_is_run() -> None:
    programs = {path.parent.name for path in (ROOT / "benchmarks").glob("*/__main__.py")}
    assert programs == {*ON_A_STACK, *IN_A_PROCESS, *WITH_RIVALS}


@pytest.mark.parametrize("program", IN_A_PROCESS)
def test_it_runs_to_its_report_and_counts_what_is_documented(program: str) -> None:
    run(program)


@pytest.mark.parametrize("program", WITH_RIVALS)
def test_it_runs_to_its_report_where_its_rivals_can_be_installed(program: str) -> None:
    need_environments("bench")
    if program == "engine" and not (shutil.which("node") and shutil.which("npm")):
        pytest.skip("there is no Node.js with npm")
    run(program)
