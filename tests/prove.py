"""Runs every part of `make prove`, one after another, and counts their goals together.

    make prove                         all of `PARTS`, from crashes to guards: samples, 25 minutes on two cores
    LONG=1 make prove                  all of them with the published counts, every pair of faults and every guard
    python -m tests.prove PART …             some of them

Each part prints its own table and writes build/reports/<part>.json; build/reports/prove.json combines them. Exits with
1 if a part failed or an invariant was broken.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from typing import Any

from repository.report import REPORTS, ROOT, Goal, write_report

PARTS = {
    "crashes": "a process dies, an answer is lost, a call is throttled: at every call, and at pairs of calls",
    "model": "thousands of histories of duplicates, delays, crashes, skewed clocks, withdrawals and replays",
    "webhooks": "a fault at every call between an event and its receiver, at pairs of calls, and random histories",
    "delays": "tens of thousands of delays from a second to a year, with crashes, moves and withdrawals",
    "time_travel": "images scheduled two days ahead on the local stack, whose clock is then moved",
    "faults": "the real processes on the local stack, killed under load, on a disturbed wire",
    "chaos": "poison in every queue, row and batch, among kills, pauses and duplicates: is anybody else late",
    "batches": "batches on the local stack, whose workers and counters are killed: each ends once, with true counts",
    "backfills": "a preset is edited, deployed and its images made again beside live uploads, whose feeder is killed",
    "guards": "each guard taken out of a copy: a test must turn red",
}

_MODULES = {
    **{name: f"tests.simulation.{name}" for name in ("crashes", "model", "webhooks", "delays")},
    **{name: f"tests.chaos.{name}" for name in ("time_travel", "faults", "batches", "backfills")},
    **{name: f"tests.{name}" for name in ("chaos", "guards")},
}

DEFAULT_SECONDS = 1500
"""How long all parts together should take with their default counts on two idle cores."""

_SAMPLED_GUARDS = ("--every", "5")
"""`make test-all` tries every guard; without LONG=1 a sample is taken of them."""


def main(names: list[str]) -> int:
    """Runs the named parts, or all of them; returns the exit status."""
    unknown = [name for name in names if name not in PARTS]
    if unknown:
        print(f"no such part: {', '.join(unknown)}; there are {', '.join(PARTS)}", file=sys.stderr)
        return 2
    failed, rows, goals = [], [], []
    long, begun, parts = os.environ.get("LONG") == "1", time.monotonic(), names or list(PARTS)
    for number, name in enumerate(parts, start=1):
        print(f"── part {number} of {len(parts)}, after {time.monotonic() - begun:.0f} s", flush=True)
        print(f"── {name}: {PARTS[name]} " + "─" * max(3, 110 - len(name) - len(PARTS[name])), flush=True)
        report = REPORTS / f"{name}.json"
        report.unlink(missing_ok=True)
        started = time.monotonic()
        options = _SAMPLED_GUARDS if name == "guards" and not long else ()
        command = [sys.executable, "-m", _MODULES[name], *options]
        status = subprocess.run(command, cwd=ROOT, check=False).returncode
        print(f"{name}: {'held' if status == 0 else 'BROKEN'}, {time.monotonic() - started:.0f} s", flush=True)
        if status:
            failed.append(name)
        if report.exists():
            document = json.loads(report.read_text())
            rows += [{"part": name, **row} for row in document["rows"]]
            goals += [_goal(name, goal) for goal in document["goals"]]
    if not names and not long:
        seconds = time.monotonic() - begun
        goals.append(Goal(name="all parts (s)", value=seconds, limit=DEFAULT_SECONDS, at_least=False))
    write_report("prove", seed=None, rows=rows, goals=goals)
    return 1 if failed else 0


def _goal(part: str, goal: dict[str, Any]) -> Goal:
    value = float("nan") if goal["value"] is None else goal["value"]
    at_least = goal["holds"] == (value >= goal["limit"])
    return Goal(name=f"{part}: {goal['name']}", value=value, limit=goal["limit"], at_least=at_least)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
