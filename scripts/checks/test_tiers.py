"""Runs tiers of tests one after another, and reports what each ran, how long it took and what did not run.

    python -m checks.test_tiers            the quick tiers, in their short form: `make test`
    python -m checks.test_tiers --all      every tier, in its long form: `make test-all`
    python -m checks.test_tiers --rest     what --all runs and the default does not: after `make test`, for CI
    python -m checks.test_tiers unit …     some tiers (LONG=1: in their long form)

Writes build/reports/tests.json (tests-all.json, tests-rest.json). A tier that exceeds its time budget does not fail;
times are judged only if the machine is idle before the first tier, between tiers and after the last.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from pathlib import Path
from typing import IO, Any

from browser import installed as browser_installed
from browser.installed import NoChromium
from checks.idle_machine import why_not_idle
from local_aws import docker_engine
from repository.report import REPORTS, ROOT, Goal, write_report

PASSED = ROOT / "build" / "passed"
"""The inputs with which each tier last passed, for the tiers that need not run again until their inputs change."""

QUICK_SECONDS = 480
"""How long `make test` may take on two idle cores."""

_CLEAN_UP_SECONDS = 60


class TierForm(Enum):
    """How much of a tier runs: `LONG_ONLY` is the part of the long form that is not in the short one."""

    SHORT = "short"
    LONG = "long"
    LONG_ONLY = "long only"


@dataclass(frozen=True, kw_only=True)
class SuiteTier:
    """A folder of tests, or a command that counts its own results in a report.

    `budget_seconds` is how long it should take on two idle cores, in its long form `long_seconds`. A tier with `inputs`
    is skipped while they are the same as when it last passed, except in CI. A tier that mostly waits can run `beside`
    others, which follow each other; its output is then shown after the end of the last. Its tests are in
    `tests/<name>`, or in a `folder` with settings of its own, which knows no long form.
    """

    name: str
    budget_seconds: int
    long_seconds: int | None = None
    is_quick: bool = False
    workers: int = 2
    needs_docker: bool = False
    needs_chromium: bool = False
    distribution: tuple[str, ...] = ("load",)
    beside: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()
    folder: str = ""
    command: tuple[str, ...] = ()

    def budget(self, form: TierForm) -> int:
        """How long the tier should take in that form."""
        return self.budget_seconds if form is TierForm.SHORT or self.long_seconds is None else self.long_seconds


# The cheapest come first, so that failures show early.
TIERS = (
    SuiteTier(name="unit", budget_seconds=110, is_quick=True),
    SuiteTier(name="engine", budget_seconds=100, long_seconds=120, is_quick=True),
    SuiteTier(name="contract", budget_seconds=100, is_quick=True),
    SuiteTier(name="simulation", budget_seconds=140, long_seconds=480, is_quick=True),
    # All tests that use one stack run in one worker, which mostly waits.
    SuiteTier(
        name="smoke",
        budget_seconds=310,
        is_quick=True,
        workers=0,
        beside=("unit", "engine", "contract", "simulation"),
    ),
    # The page's tests share a stack and a browser. What waits for the stack leaves others a core.
    SuiteTier(
        name="page",
        budget_seconds=80,
        long_seconds=500,
        is_quick=True,
        workers=0,
        needs_chromium=True,
        beside=("simulation", "guards"),
    ),
    # One worker has a stack and the programs that measure it, the other one the programs that measure this machine.
    # Nothing is measured well, so others may run at the same time.
    SuiteTier(
        name="benchmarks",
        budget_seconds=190,
        distribution=("loadfile", "--no-loadscope-reorder"),
        beside=("guards",),
    ),
    SuiteTier(name="guards", budget_seconds=300, command=("tests.guards",)),
    SuiteTier(
        name="emulator",
        budget_seconds=100,
        workers=3,
        folder="local_aws/tests",
        inputs=(
            *("local_aws", "scripts/setup", ".python-version", "requirements/dev.txt"),
            *("requirements/emulator.txt", "requirements/runtime.txt"),
        ),
        beside=("guards",),  # half of its time it waits for the clock
    ),
    # It waits for containers.
    SuiteTier(name="invoke", budget_seconds=520, workers=0, needs_docker=True, beside=("local",)),
    # The tests of a file share a stack, which mostly waits: so there are more workers than cores.
    SuiteTier(name="local", budget_seconds=740, workers=3, distribution=("loadfile", "--no-loadscope-reorder")),
)


@dataclass(frozen=True, kw_only=True)
class TierOutcome:
    """The result of one tier.

    `failures` names what failed and why, a line each; `note` says why part did not run. `cpu_seconds` are those of its
    process and of the children that it has waited for: a detached stack's are not in it.
    """

    tier: SuiteTier
    form: TierForm
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    failures: tuple[str, ...] = ()
    seconds: float = 0
    cpu_seconds: float = 0
    exit_status: int = 0
    note: str = ""

    @property
    def is_good(self) -> bool:
        return self.exit_status == 0 and self.failed == 0

    @property
    def has_run(self) -> bool:
        return bool(self.passed or self.failed) or not self.note

    def line(self) -> str:
        if not self.has_run:
            return f"{self.tier.name}: not run ({self.note})"
        parts = [f"{self.passed} passed"]
        if self.failed:
            parts.append(f"{self.failed} failed")
        if self.skipped:
            parts.append(f"{self.skipped} not run")
        if not self.is_good and not self.failed:
            parts.append(f"ended with status {self.exit_status}")
        short = "" if self.tier.long_seconds is None else f", {self.form.value}"
        budget = f"(budget {self.tier.budget(self.form)} s{short}; {self.cpu_seconds:.0f} s of CPU)"
        line = f"{self.tier.name}: {', '.join(parts)} in {self.seconds:.0f} s {budget}"
        return f"{line}; {self.note}" if self.note else line


def run_all(
    tiers: Sequence[SuiteTier], form: TierForm, between: Callable[[], object] = lambda: None
) -> Iterator[TierOutcome]:
    """Runs the tiers one after another, those that run beside others at the same time; `between` is called after a
    tier whenever none is running."""
    names = {tier.name for tier in tiers}
    companions = {tier.name: [name for name in tier.beside if name in names] for tier in tiers}
    running: dict[str, Future[tuple[TierOutcome, str]]] = {}
    with ThreadPoolExecutor() as pool:
        for tier in tiers:
            if companions[tier.name]:
                continue
            for other in tiers:
                if companions[other.name][:1] == [tier.name]:
                    running[other.name] = pool.submit(_run_quietly, other, form)
            outcome = run(tier, form)
            for other in tiers:
                if companions[other.name][-1:] == [tier.name]:
                    beside, output = running.pop(other.name).result()
                    print(output, end="", flush=True)
                    yield beside
            if not running:
                between()
            yield outcome


def _run_quietly(tier: SuiteTier, form: TierForm) -> tuple[TierOutcome, str]:
    """Runs the tier; returns what it printed, too, which can be read in its log meanwhile."""
    REPORTS.mkdir(parents=True, exist_ok=True)
    log = REPORTS / f"tests-{tier.name}.log"
    with log.open("w") as output:
        outcome = run(tier, form, output)
    return outcome, log.read_text()


def run(tier: SuiteTier, form: TierForm, output: IO[str] | None = None) -> TierOutcome:
    """Runs one tier in its own process, which prints to `output`, or to where this process does."""
    print(f"── {tier.name} " + "─" * (100 - len(tier.name)), file=output, flush=True)
    in_ci = os.environ.get("CI") == "true"
    digest = digest_of(tier)
    passed_at = None if in_ci else passed_before(tier, digest)
    if passed_at is not None:
        return TierOutcome(tier=tier, form=form, note=f"unchanged since it passed at {passed_at}")
    note = what_is_missing(tier)
    REPORTS.mkdir(parents=True, exist_ok=True)
    report = REPORTS / f"tests-{tier.name}.xml"
    report.unlink(missing_ok=True)
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix=f"darkroom-{tier.name}-", ignore_cleanup_errors=True) as folder:
        process = subprocess.Popen(
            [sys.executable, "-m", *command_of(tier, form, report, Path(folder) / "t")],
            cwd=ROOT,
            stdout=output,
            stderr=None if output is None else subprocess.STDOUT,
        )
        try:
            _, status, used = os.wait4(process.pid, 0)
        except BaseException:
            try:
                process.wait(_CLEAN_UP_SECONDS)  # Ctrl-C has reached it, too, and its tests may have a stack
            finally:
                process.kill()
            raise
        seconds = time.monotonic() - started
    exit_status = process.returncode = os.waitstatus_to_exitcode(status)
    passed, failed, skipped = counts(report)
    if exit_status == 5 and note:  # pytest collected no tests
        exit_status = 0
    if note and in_ci:
        exit_status = exit_status or 1
    outcome = TierOutcome(
        tier=tier,
        form=form,
        passed=passed,
        failed=failed,
        skipped=skipped,
        failures=tuple(failures_in(report)),
        seconds=seconds,
        cpu_seconds=used.ru_utime + used.ru_stime,
        exit_status=exit_status,
        note=note,
    )
    if outcome.is_good and not skipped:
        remember_passed(tier, digest)
    return outcome


def what_is_missing(tier: SuiteTier) -> str:
    """What the tier needs and this machine does not have, in a few words; empty if it has everything."""
    if tier.needs_docker:
        try:
            docker_engine.host()
        except docker_engine.NoDockerEngine:
            return "no Docker engine answers"
    if tier.needs_chromium:
        try:
            browser_installed.path()
        except NoChromium as missing:
            return str(missing).rstrip(".")
    return ""


def command_of(tier: SuiteTier, form: TierForm, report: Path, temporary: Path) -> list[str]:
    """The module that runs the tier, and its arguments.

    Its tests write to the folder `temporary`: processes of pytest that end at the same time disturb each other in the
    one that they share by default (its `cleanup_dead_symlinks` raises if another process was faster).
    """
    if tier.command:
        return [*tier.command, f"--junit-xml={report}"]
    command = [
        "pytest",
        tier.folder or f"tests/{tier.name}",
        "-q",
        f"--junit-xml={report}",
        f"--basetemp={temporary}",
        "--durations=5",
    ]
    if tier.workers:
        command += [f"--numprocesses={tier.workers}", "--dist", *tier.distribution]
    if form is not TierForm.SHORT and not tier.folder:
        command.append("--long")
    if form is TierForm.LONG_ONLY and tier.is_quick:
        command.append("-mlong")
    return command


def digest_of(tier: SuiteTier) -> str:
    """A hash of the files that the tier's outcome depends on; empty for a tier without inputs."""
    digest = hashlib.sha256()
    for name in tier.inputs:
        path = ROOT / name
        files = sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]
        for file in files:
            if "__pycache__" not in file.parts:
                digest.update(f"{file.relative_to(ROOT)}\0{hashlib.sha256(file.read_bytes()).hexdigest()}\n".encode())
    return digest.hexdigest()


def passed_before(tier: SuiteTier, digest: str) -> str | None:
    """When the tier passed with these inputs, if its last run did; otherwise None."""
    file = PASSED / f"{tier.name}.json"
    if not tier.inputs or not file.exists():
        return None
    passed: dict[str, str] = json.loads(file.read_text())
    return passed["at"] if passed["inputs"] == digest else None


def remember_passed(tier: SuiteTier, digest: str) -> None:
    """Records that the tier passed with these inputs, unless they were edited meanwhile."""
    if tier.inputs and digest == digest_of(tier):
        PASSED.mkdir(parents=True, exist_ok=True)
        at = datetime.now(UTC).isoformat(timespec="seconds")
        (PASSED / f"{tier.name}.json").write_text(json.dumps({"at": at, "inputs": digest}) + "\n")


def counts(report: Path) -> tuple[int, int, int]:
    """How many tests passed, failed and were skipped, according to pytest's report."""
    if not report.exists():
        return 0, 0, 0
    suites = ET.parse(report).getroot().iter("testsuite")  # noqa: S314 - the file is our own
    total = failed = skipped = 0
    for suite in suites:
        total += int(suite.get("tests", 0))
        failed += int(suite.get("failures", 0)) + int(suite.get("errors", 0))
        skipped += int(suite.get("skipped", 0))
    return total - failed - skipped, failed, skipped


def failures_in(report: Path) -> Iterator[str]:
    """What failed according to pytest's report, and why: a line for each, at most 200 characters long."""
    if not report.exists():
        return
    for case in ET.parse(report).getroot().iter("testcase"):  # noqa: S314 - the file is our own
        for problem in [*case.iter("failure"), *case.iter("error")]:
            name = "::".join(filter(None, (case.get("classname"), case.get("name"))))
            yield " ".join(f"{name}: {problem.get('message', '')}".split())[:200]


def left_out(names: Sequence[str], form: TierForm) -> Iterator[str]:
    """What `make test` did not run, and how to run it."""
    others = [tier.name for tier in TIERS if tier.name not in names]
    if others:
        yield f"left out: {', '.join(others)} (make test-all runs everything; make test-{others[0]} one of them)"
    short = [tier.name for tier in TIERS if tier.name in names and tier.long_seconds is not None]
    if short and form is TierForm.SHORT:
        yield f"in short form: {', '.join(short)} (in long form: LONG=1 make test-{short[0]}, or make test-all)"


def report_of(
    outcomes: Sequence[TierOutcome], seconds: float, limit: int | None
) -> tuple[list[dict[str, Any]], list[Goal]]:
    """The row of each tier, and the budgets as goals; `limit` is the budget of all together, which took `seconds`."""
    goals = [
        Goal(
            name=f"{outcome.tier.name} (s)",
            value=round(outcome.seconds, 1),
            limit=outcome.tier.budget(outcome.form),
            at_least=False,
        )
        for outcome in outcomes
        if outcome.has_run
    ]
    if limit is not None:
        goals.append(Goal(name="all (s)", value=round(seconds, 1), limit=limit, at_least=False))
    rows = [
        {
            "tier": outcome.tier.name,
            "form": outcome.form.value,
            "has_run": outcome.has_run,
            "passed": outcome.passed,
            "failed": outcome.failed,
            "not_run": outcome.skipped,
            "seconds": round(outcome.seconds, 1),
            "cpu_seconds": round(outcome.cpu_seconds, 1),
            "note": outcome.note,
        }
        for outcome in outcomes
    ]
    return rows, goals


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the requested tiers; the exit status is 0 only if everything that ran passed."""
    parser = argparse.ArgumentParser(prog="python -m checks.test_tiers", description="Runs tiers of tests.")
    known = {tier.name: tier for tier in TIERS}
    parser.add_argument("names", nargs="*", metavar="TIER", help=", ".join(known))
    parser.add_argument("--all", action="store_true", help="every tier, in its long form")
    parser.add_argument("--rest", action="store_true", help="what --all runs and the default does not")
    chosen = parser.parse_args(arguments)
    if unknown := [name for name in chosen.names if name not in known]:
        parser.error(f"no such tier: {', '.join(unknown)}; there are {', '.join(known)}")
    form, name, limit = TierForm.LONG if os.environ.get("LONG") == "1" else TierForm.SHORT, "tests", None
    if chosen.names:
        tiers = [known[each] for each in chosen.names]
    elif chosen.all:
        tiers, form, name = list(TIERS), TierForm.LONG, "tests-all"
    elif chosen.rest:
        tiers, form, name = (
            [each for each in TIERS if not each.is_quick or each.long_seconds],
            TierForm.LONG_ONLY,
            "tests-rest",
        )
    else:
        tiers, limit = [tier for tier in TIERS if tier.is_quick], QUICK_SECONDS
    busy = [why_not_idle()]
    begun = time.monotonic()
    outcomes = list(run_all(tiers, form, between=lambda: busy.append(why_not_idle())))
    seconds = time.monotonic() - begun
    print("── tiers " + "─" * 95)
    for outcome in outcomes:
        print(outcome.line())
        if outcome.note and not outcome.is_good:
            print(f"{outcome.tier.name}: that is a failure under CI=true")
    for line in left_out([tier.name for tier in tiers], form) if limit is not None else ():
        print(line)
    rows, goals = report_of(outcomes, seconds, limit)
    write_report(name, seed=None, rows=rows, goals=goals, times_unjudged=next(filter(None, busy), ""))
    passed, failed = sum(outcome.passed for outcome in outcomes), sum(outcome.failed for outcome in outcomes)
    # Last, as the end of a long output is what is read and kept.
    for outcome in outcomes:
        for failure in outcome.failures[:10]:
            print(f"failed: {outcome.tier.name}: {failure}")
        if len(outcome.failures) > 10:
            print(f"failed: {outcome.tier.name}: and {len(outcome.failures) - 10} more, in its output above")
    print(f"{passed} passed, {failed} failed in {seconds:.0f} s")
    return 0 if all(outcome.is_good for outcome in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
