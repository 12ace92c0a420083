"""Runs a program of `benchmarks/` as its target of `make` does, in its shortest form, and checks its report."""

from __future__ import annotations

import json
import os
import subprocess

import pytest

from benchmarks.documented import FIGURES, stale
from repository.report import REPORTS, ROOT

ON_A_STACK = ("calls", "costs", "cold", "api", "page", "delivery", "peers", "local", "reads")
"""In this order: the first finds a stack without images, and the last leaves nothing to do when it stops."""

IN_A_PROCESS = ("attention", "delay", "imports", "memory", "scale", "sweeper", "webhooks")
WITH_RIVALS = ("best", "engine")
"""They need an environment of their own, with packages of two registries."""


def need_environments(*names: str) -> None:
    """Skips the test, which is then reported as not run, where these environments cannot be installed."""
    installed = subprocess.run(["scripts/setup/environments.sh", *names], cwd=ROOT, capture_output=True, check=False)
    if installed.returncode != 0:
        pytest.skip(f"an environment cannot be installed here: {installed.stderr.decode()[-300:]}")


def run(program: str, **variables: str) -> None:
    """It ends well, its report has rows and goals, and what it counts is what docs/benchmarks.md says."""
    target = f"bench-{program.replace('_', '-')}"
    report = REPORTS / "short" / f"{program}.json"
    report.unlink(missing_ok=True)
    ran = subprocess.run(
        ["make", "--no-print-directory", target],
        cwd=ROOT,
        env={**os.environ, **variables, "SHORT": "1", "PHOTOS": "none"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout[-4000:]
    document = json.loads(report.read_text())
    assert document["rows"] and document["goals"]
    assert ran.stdout.splitlines()[-1].startswith("goals: ")
    outdated = stale(program, document["rows"], short=True) if program in FIGURES else []
    assert not outdated, f"{outdated}: run `make {target}`, then `make documented PROGRAMS={program}`"
