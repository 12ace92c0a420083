"""Runs the tiers of tests one after the other and says of each what it ran, how long it took, and what did not run.

Usage: python -m checks.test_tiers [unit] [engine] [contract] [simulation] [invoke] [local]   (all of them by default)
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from dataclasses import dataclass
from pathlib import Path

from embedded_aws import docker_engine

ROOT = Path(__file__).parents[2]
REPORTS = ROOT / "build" / "reports"


@dataclass(frozen=True, kw_only=True)
class Tier:
    """One folder of tests. `budget_seconds` is what it should take on two cores; it is shown, never asserted."""

    name: str
    budget_seconds: int
    workers: int
    needs_docker: bool = False
    distribution: str = "load"


TIERS = (
    Tier(name="unit", budget_seconds=10, workers=2),
    Tier(name="engine", budget_seconds=100, workers=2),
    Tier(name="contract", budget_seconds=90, workers=2),
    Tier(name="simulation", budget_seconds=150, workers=2),
    Tier(name="invoke", budget_seconds=180, workers=0, needs_docker=True),
    # Whatever uses the one shared stack runs in one worker.
    Tier(name="local", budget_seconds=300, workers=2, distribution="loadgroup"),
)


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What one tier came to. `note` says why it did not run whole."""

    tier: Tier
    passed: int
    failed: int
    skipped: int
    seconds: float
    exit_status: int
    note: str = ""

    @property
    def is_good(self) -> bool:
        return self.exit_status == 0 and self.failed == 0

    def line(self) -> str:
        if self.note and not self.passed:
            return f"{self.tier.name}: not run ({self.note})"
        parts = [f"{self.passed} passed"]
        if self.failed:
            parts.append(f"{self.failed} failed")
        if self.skipped:
            parts.append(f"{self.skipped} not run")
        return f"{self.tier.name}: {', '.join(parts)} in {self.seconds:.0f} s (budget {self.tier.budget_seconds} s)" + (
            f"; {self.note}" if self.note else ""
        )


def run(tier: Tier) -> Outcome:
    """Runs one tier in a pytest of its own."""
    note = ""
    if tier.needs_docker:
        try:
            docker_engine.host()
        except docker_engine.NoDockerEngine:
            note = "no Docker engine answers"
    REPORTS.mkdir(parents=True, exist_ok=True)
    report = REPORTS / f"tests-{tier.name}.xml"
    report.unlink(missing_ok=True)
    print(f"── {tier.name} " + "─" * (100 - len(tier.name)), flush=True)
    command = [sys.executable, "-m", "pytest", f"tests/{tier.name}", "-q", f"--junit-xml={report}", "--durations=3"]
    if tier.workers:
        command += [f"--numprocesses={tier.workers}", f"--dist={tier.distribution}"]
    started = time.monotonic()
    exit_status = subprocess.run(command, cwd=ROOT, check=False).returncode
    seconds = time.monotonic() - started
    passed, failed, skipped = counts(report)
    if exit_status == 5 and note:  # pytest found nothing that it could run
        exit_status = 0
    if note and os.environ.get("CI") == "true":
        exit_status = exit_status or 1
    return Outcome(
        tier=tier, passed=passed, failed=failed, skipped=skipped, seconds=seconds, exit_status=exit_status, note=note
    )


def counts(report: Path) -> tuple[int, int, int]:
    """How many tests passed, failed and were skipped, by pytest's own report."""
    if not report.exists():
        return 0, 0, 0
    suites = ET.parse(report).getroot().iter("testsuite")  # noqa: S314 - the file is our own
    total = failed = skipped = 0
    for suite in suites:
        total += int(suite.get("tests", 0))
        failed += int(suite.get("failures", 0)) + int(suite.get("errors", 0))
        skipped += int(suite.get("skipped", 0))
    return total - failed - skipped, failed, skipped


def main(names: list[str]) -> int:
    """Runs the named tiers, or all; the exit status is 0 only where everything that ran is good."""
    known = {tier.name: tier for tier in TIERS}
    unknown = [name for name in names if name not in known]
    if unknown:
        print(f"no such tier: {', '.join(unknown)}; there are {', '.join(known)}", file=sys.stderr)
        return 2
    outcomes = [run(known[name]) for name in names or known]
    print("── tiers " + "─" * 95)
    for outcome in outcomes:
        print(outcome.line())
        if outcome.note and os.environ.get("CI") == "true":
            print(f"{outcome.tier.name}: that is a failure under CI=true")
    passed, failed = sum(outcome.passed for outcome in outcomes), sum(outcome.failed for outcome in outcomes)
    print(f"{passed} passed, {failed} failed")
    return 0 if all(outcome.is_good for outcome in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
