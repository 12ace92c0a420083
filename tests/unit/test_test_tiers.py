"""What `make test` reports about its tiers: what ran, what did not and why, and which budgets were missed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from checks import test_tiers
from checks.test_tiers import TIERS, SuiteTier, TierForm, run
from repository.report import ROOT
from tests.local.local_stack import wait_until


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A repository with one input, and no CI."""
    monkeypatch.setattr(test_tiers, "ROOT", tmp_path)
    monkeypatch.setattr(test_tiers, "REPORTS", tmp_path / "reports")
    monkeypatch.setattr(test_tiers, "PASSED", tmp_path / "passed")
    monkeypatch.delenv("CI", raising=False)
    (tmp_path / "input.txt").write_text("1")
    (tmp_path / "counted.py").write_text(
        "import sys; open('runs', 'a').write('.')\n"
        "report = sys.argv[1].removeprefix('--junit-xml=')\n"
        "failed = int(open('input.txt').read() == 'bad')\n"
        "why = '<failure message=\"no&#10;water\"/>' * failed\n"
        'case = f\'<testcase classname="tests.tea" name="boils">{why}</testcase>\'\n'
        "open(report, 'w').write(f'<testsuite tests=\"1\" failures=\"{failed}\">{case}</testsuite>')\n"
        "sys.exit(failed)\n"
    )
    return tmp_path


COUNTED = SuiteTier(name="counted", budget_seconds=60, inputs=("input.txt",), command=("counted",))


def test_a_tier_is_not_run_again_while_its_inputs_are_as_they_were_when_it_passed(here: Path) -> None:
    assert run(COUNTED, TierForm.SHORT).line().startswith("counted: 1 passed")
    again = run(COUNTED, TierForm.SHORT)
    assert again.line().startswith("counted: not run (unchanged since it passed at 20")
    assert (again.passed, again.is_good) == (0, True)
    (here / "input.txt").write_text("2")
    assert run(COUNTED, TierForm.SHORT).passed == 1
    assert (here / "runs").read_text() == ".."


def test_in_ci_it_always_runs(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(COUNTED, TierForm.SHORT)
    monkeypatch.setenv("CI", "true")
    assert run(COUNTED, TierForm.SHORT).passed == 1


def test_a_tier_that_failed_runs_again(here: Path) -> None:
    (here / "input.txt").write_text("bad")
    assert [run(COUNTED, TierForm.SHORT).failed for _ in range(2)] == [1, 1]


def test_what_failed_and_why_is_said_at_the_end(
    here: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (here / "input.txt").write_text("bad")
    monkeypatch.setattr(test_tiers, "TIERS", (COUNTED,))
    monkeypatch.setattr(test_tiers, "write_report", lambda *_, **__: print("goals"))
    assert test_tiers.main(["counted"]) == 1
    *_, what, total = capfd.readouterr().out.splitlines()
    assert what == "failed: counted: tests.tea::boils: no water"
    assert total.startswith("0 passed, 1 failed")


def test_a_tier_that_is_interrupted_may_clean_up(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "cleaning.py").write_text(
        "import pathlib, time\n"
        "try: pathlib.Path('begun').touch(); time.sleep(60)\n"
        "except KeyboardInterrupt: time.sleep(0.1); pathlib.Path('cleaned').touch()\n"
    )

    def interrupted(pid: int, _: int) -> None:
        wait_until((here / "begun").exists, "the tier runs")
        os.kill(pid, signal.SIGINT)
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "wait4", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run(SuiteTier(name="cleaning", budget_seconds=60, command=("cleaning",)), TierForm.SHORT)
    assert (here / "cleaned").exists()


def test_a_stack_ends_with_the_tests_that_started_it_however_they_end(tmp_path: Path) -> None:
    checkout, state = tmp_path / "checkout", tmp_path / "state"
    checkout.mkdir()
    (checkout / "darkroom").write_text(f"#!/bin/sh\necho $$ >{state}/pid; touch {state}/stack.json; exec sleep 60\n")
    (checkout / "darkroom").chmod(0o755)
    serve = (
        "import os, pathlib, signal; from tests.local.local_stack import LocalStack\n"
        f"with LocalStack(state=pathlib.Path({str(state)!r}), checkout=pathlib.Path({str(checkout)!r})).serving():\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    assert subprocess.run([sys.executable, "-c", serve], cwd=ROOT, check=False).returncode == -signal.SIGKILL
    supervisor = Path("/proc", (state / "pid").read_text().strip())
    wait_until(lambda: not supervisor.exists(), "it has ended")


def test_every_input_of_a_tier_exists() -> None:
    assert [name for tier in TIERS for name in tier.inputs if not (ROOT / name).exists()] == []


def test_all_tests_are_in_a_tier() -> None:
    folders = {path.parent.relative_to(ROOT / "tests").parts[0] for path in (ROOT / "tests").rglob("test_*.py")}
    assert folders == {tier.name for tier in TIERS if not (tier.command or tier.folder)}


def test_no_example_of_a_property_has_a_deadline() -> None:
    assert settings().deadline is None and HealthCheck.too_slow in settings().suppress_health_check
