"""Webhooks amid faults: at every call between an event and its receiver, at pairs of calls, and in random histories.

    python -m tests.simulation.webhooks [--every N] [--seconds 60] [--seed S] [--jobs 2] [--history NAME …]
    python -m tests.simulation.webhooks --replay "resting: throttled at 9; dies before at 12"

The operations are the real ones, over the fakes of their ports, in virtual time. The points are the calls that the code
makes when it runs: nobody lists them. Pairs are sampled: only those whose first fault is at each 100th call, from a
random one (LONG=1, or --every 1: all of them). Then Hypothesis generates histories until the time is over. Prints a
table, and the story of each broken promise. Exits with 1 if a promise was broken, a call was not struck or something
never happened.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from typing import Any

from repository.report import Goal, write_report
from tests.simulation.model.__main__ import chunks
from tests.simulation.model.processes import MODES
from tests.simulation.model.stores import HARMS
from tests.simulation.webhooks import generated
from tests.simulation.webhooks.generated import LOOKS, OUTCOMES, RULES
from tests.simulation.webhooks.histories import HISTORIES, Findings, strike
from tests.simulation.webhooks.histories import play as play_struck
from tests.support.faults import read_replay

_EVERY = 100
"""Without LONG=1 the first fault of a pair is at every Nth call."""

_SECONDS, _LONG_SECONDS = 60, 600

_CHUNK = 100
"""Histories that Hypothesis generates from one seed."""

_SHOWN = 5


def main(arguments: Sequence[str] | None = None) -> int:
    """Strikes every call, invents histories, prints the results and writes the report; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.simulation.webhooks",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    long = os.environ.get("LONG") == "1"
    parser.add_argument("--history", action="append", choices=list(HISTORIES), help="only these are struck")
    parser.add_argument("--every", type=int, default=1 if long else _EVERY)
    parser.add_argument("--seconds", type=float, default=_LONG_SECONDS if long else _SECONDS)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**9))
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--replay", metavar="HISTORY: MODE at CALL; …", help="plays one history and tells its story")
    chosen = parser.parse_args(arguments)
    if chosen.replay is not None:
        return _replay(chosen.replay)
    print(f"seed {chosen.seed}", flush=True)
    rows, broken, percents = [], Counter[str](), {1: 100.0, 2: 100.0}
    with ProcessPoolExecutor(chosen.jobs) as pool:
        for name, faults, findings in _strike(pool, chosen.history or list(HISTORIES), chosen.every, chosen.seed):
            broken.update(violation.harm or "other" for violation in findings.violations)
            percents[faults] = min(percents[faults], 100 * findings.struck / max(1, findings.offered))
            rows.append(_row(name, faults, findings))
    counts, harms = invent(chosen.seed, seconds=chosen.seconds, jobs=chosen.jobs)
    broken += harms
    missing = never_happened(counts)
    for name, count in sorted(counts.items()):
        print(f"{name:<40}{count:>12,}")
    for name in missing:
        print(f"never happened: {name}")
    rows += [{"event": name, "count": count} for name, count in sorted(counts.items())]
    goals = [
        *(
            Goal(name=f"{title} struck (%)", value=percents[faults], limit=100, at_least=True)
            for faults, title in ((1, "single faults"), (2, "pairs of faults"))
        ),
        *(Goal(name=harm, value=broken[harm], limit=0, at_least=False) for harm in HARMS),
        Goal(name="other failures", value=broken["other"], limit=0, at_least=False),
        Goal(name="things that never happened", value=len(missing), limit=0, at_least=False),
    ]
    write_report("webhooks", seed=chosen.seed, rows=rows, goals=goals)
    return 1 if any(not goal.holds for goal in goals) else 0


def never_happened(counts: Counter[str]) -> list[str]:
    """What a run should have seen and has not: every rule, fault, outcome and look, and every end."""
    wanted = [
        *(f"rule: {name}" for name in RULES),
        *(f"fault: {name}" for name in MODES),
        *(f"delivery: {name}" for name in OUTCOMES),
        *(f"look: {name}" for name in LOOKS),
        *(
            "opened again",
            "sent again",
            "sent: at a host of several",
            "sent: from a runway",
            "ended: delivered",
            "ended: removed",
            "ended: blank",
        ),
    ]
    return [name for name in wanted if not counts[name]]


# ── Faults at every call ─────────────────────────────────────────────────────────────────────────────────────────────


def _strike(
    pool: ProcessPoolExecutor, names: Sequence[str], every: int, seed: int
) -> Iterator[tuple[str, int, Findings]]:
    first = seed % every
    if every > 1:
        print(f"pairs whose first fault is at each {every}th call from {first} on", flush=True)
    columns = ("faults", "points", "struck", "broken", "seconds")
    print(f"{'history':<36}" + "".join(f"{name:>12}" for name in columns))
    running = {pool.submit(_all_of, name, faults, every, first): (name, faults) for faults in (1, 2) for name in names}
    for future in as_completed(running):
        name, faults = running[future]
        findings, seconds = future.result()
        cells = (faults, len(findings.points), findings.struck, len(findings.violations), round(seconds))
        print(f"{name:<36}" + "".join(f"{value:>12,}" for value in cells), flush=True)
        for violation in findings.violations[:_SHOWN]:
            print(f'{violation}\n    Repeat: --replay "{violation.replay}"', flush=True)
        yield name, faults, findings


def _all_of(name: str, faults: int, every: int, first: int) -> tuple[Findings, float]:
    started = time.monotonic()
    return strike(name, faults=faults, every=every, first=first), time.monotonic() - started


def _row(name: str, faults: int, findings: Findings) -> dict[str, Any]:
    return {
        "history": name,
        "faults": faults,
        "points": len(findings.points),
        "offered": findings.offered,
        "struck": findings.struck,
        "broken": len(findings.violations),
        "sent_again": findings.counts["sent again"],
        **{mode.replace(" ", "_"): findings.counts[f"fault: {mode}"] for mode in MODES},
    }


def _replay(description: str) -> int:
    name, struck = read_replay(description)
    model, violation = play_struck(name, struck)
    print("\n".join(model.story))
    print(f"broken: {violation.problem}" if violation else "every promise held")
    return 1 if violation else 0


# ── Random histories ─────────────────────────────────────────────────────────────────────────────────────────────────


def invent(first_seed: int, *, seconds: float, jobs: int) -> tuple[Counter[str], Counter[str]]:
    """Random histories until the time is over: what happened in them, and how many seeds broke a promise, by harm."""
    counts, harms = Counter[str](), Counter[str]()
    for chunk in chunks(generated.Histories, first_seed, seconds=seconds, jobs=jobs, size=_CHUNK):
        counts += chunk.counts
        if chunk.harm is not None:
            harms[chunk.harm] += 1
            print(f"{chunk.broken}\nRepeat: python -m tests.simulation.webhooks --seed {chunk.seed} --seconds 0")
    return counts, harms


if __name__ == "__main__":
    sys.exit(main())
