"""Every fault at every call: each HTTP attempt of the real handlers is struck in every way, and in pairs.

    python -m tests.simulation.crashes [--faults 1|2] [--history NAME …] [--every N] [--jobs 2]
                                       [--shards N] [--attempts N]
    python -m tests.simulation.crashes --replay "good: throttled at 9; dies before at 12"

The handlers, the adapters and Powertools are the real ones, over moto, in virtual time. The points are the attempts
that the code makes when it runs: nobody lists them. Pairs are sampled: only those whose first fault is at each 100th
attempt, from a random one (LONG=1, or --every 1: all of them). Prints a table, and the whole story of each broken
promise. Exits with 1 if a promise was broken or a point was not struck.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from typing import Any

from repository.report import Goal, write_report
from tests.simulation.crashes.exploration import Findings, explore, play_struck, prepare, strikes_at
from tests.simulation.crashes.histories import HISTORIES
from tests.simulation.crashes.promises import ViolationKind
from tests.simulation.crashes.scale import AS_DEPLOYED, Scale
from tests.simulation.crashes.wire import MODES, Point
from tests.support.faults import read_replay

SMALL = Scale(shards=1, attempts=3)
"""For pairs. Two faults cost an image two attempts at most, so the third must succeed; and a sweep queries all shards
in the same way. With LONG=1 the singles strike the system as it is deployed."""

FEWER = Scale(shards=2, attempts=AS_DEPLOYED.attempts)
"""For singles without LONG=1: more than one of the sweeper's shards, which are all alike."""

_EVERY = 100
"""Without LONG=1 the first fault of a pair is at every Nth point."""

_SHOWN = 5
_PROGRESS_EVERY_SECONDS = 15


@dataclass(frozen=True, kw_only=True)
class Job:
    """A share of the faults of one history: up to `faults` at a time, in a world of that scale."""

    history: str
    faults: int
    scale: Scale
    share: int
    shares: int
    every: int
    first: int


@dataclass(kw_only=True)
class Sum:
    """The results of all shares of one history."""

    history: str
    faults: int
    scale: Scale
    every: int
    points: tuple[Point, ...] = ()
    findings: Findings = field(default_factory=Findings)


def run(jobs: Sequence[Job], *, processes: int) -> Iterator[tuple[Job, Findings, bool, float]]:
    """Runs the jobs, some in parallel; yields what each has found so far, whether it is done, and how long it ran."""
    context = get_context("fork")
    ahead = list(jobs)
    running: dict[Connection, tuple[Job, Any, float]] = {}
    while ahead or running:
        while ahead and len(running) < processes:
            job = ahead.pop(0)
            receiving, sending = context.Pipe(duplex=False)
            process = context.Process(target=_work, args=(job, sending), daemon=True)
            process.start()
            sending.close()
            running[receiving] = (job, process, time.monotonic())
        for connection in wait(list(running)):
            if not isinstance(connection, Connection):
                continue
            job, process, started = running[connection]
            try:
                findings, done = connection.recv()
            except EOFError:
                process.join()
                raise RuntimeError(f"the process of {job} ended with status {process.exitcode}") from None
            yield job, findings, done, time.monotonic() - started
            if done:
                process.join()
                del running[connection]


def _work(job: Job, sending: Connection) -> None:
    shown = time.monotonic()

    def report_progress(_: Point, findings: Findings) -> None:
        nonlocal shown
        if time.monotonic() - shown > _PROGRESS_EVERY_SECONDS:
            shown = time.monotonic()
            sending.send((findings.counts(), False))

    part = _part_of(job)
    findings = explore(job.history, job.scale, faults=job.faults, **part, plain=None, on_point=report_progress)
    sending.send((findings.counts(), True))


def _part_of(job: Job) -> dict[str, int]:
    return {"share": job.share, "shares": job.shares, "every": job.every, "first": job.first}


def main(arguments: Sequence[str] | None = None) -> int:
    """Strikes every point, prints the results and writes the report; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.simulation.crashes",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--faults", type=int, choices=(1, 2), help="singles or pairs alone; both without it")
    parser.add_argument("--history", action="append", choices=list(HISTORIES), help="one of them; all without it")
    every = 1 if os.environ.get("LONG") == "1" else _EVERY
    parser.add_argument(
        "--every", type=int, default=every, help=f"the first fault of a pair at each Nth point ({every})"
    )
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--shards", type=int)
    parser.add_argument("--attempts", type=int)
    parser.add_argument("--replay", metavar="HISTORY: MODE at POINT; …", help="plays one history and tells its story")
    chosen = parser.parse_args(arguments)
    prepare()
    if chosen.replay is not None:
        return _replay(chosen.replay, _scaled(SMALL, chosen))
    sums: list[Sum] = []
    singles = AS_DEPLOYED if os.environ.get("LONG") == "1" else FEWER
    for faults, scale in ((1, _scaled(singles, chosen)), (2, _scaled(SMALL, chosen))):
        if chosen.faults in (None, faults):
            names = chosen.history or list(HISTORIES)
            every = 1 if faults == 1 else chosen.every
            sums += _strike(names, faults=faults, scale=scale, every=every, processes=chosen.jobs)
    return _report(sums, is_complete=chosen.faults is None and chosen.history is None, jobs=chosen.jobs)


def _scaled(scale: Scale, chosen: argparse.Namespace) -> Scale:
    return Scale(shards=chosen.shards or scale.shards, attempts=chosen.attempts or scale.attempts)


def _strike(names: Sequence[str], *, faults: int, scale: Scale, every: int, processes: int) -> list[Sum]:
    """Explores the histories with that many faults, and prints its progress."""
    shares = processes if faults > 1 and every == 1 else 1
    first = random.SystemRandom().randrange(every)
    if every > 1:
        print(f"pairs whose first fault is at each {every}th point from {first} on", flush=True)
    jobs = [
        Job(history=name, faults=faults, scale=scale, share=share, shares=shares, every=every, first=first)
        for name in names
        for share in range(shares)
    ]
    by_job: dict[Job, Findings] = {}
    shown: set[str] = set()
    for job, findings, done, seconds in run(jobs, processes=processes):
        by_job[job] = findings
        for violation in findings.violations:
            if violation.replay not in shown and len(shown) < _SHOWN:
                print(f'{violation}\n    Repeat: --replay "{violation.replay}"', flush=True)
            shown.add(violation.replay)
        struck = " + ".join(f"{findings.struck[depth]:,}" for depth in range(1, faults + 1))
        of = f" ({job.share + 1} of {shares})" if shares > 1 else ""
        print(
            f"{job.history}{of}: {'' if done else 'so far '}{struck} histories struck, "
            f"{len(findings.violations)} broken, {seconds:.0f} s",
            flush=True,
        )
    sums = []
    for name in names:
        total = Sum(history=name, faults=faults, scale=scale, every=every)
        for job, findings in by_job.items():
            if job.history == name:
                total.findings.add(findings)
                total.points = findings.points
        sums.append(total)
    return sums


def _row(total: Sum) -> dict[str, Any]:
    findings, depth = total.findings, total.faults
    return {
        "history": total.history,
        "faults": depth,
        "shards": total.scale.shards,
        "attempts": total.scale.attempts,
        "points": len(total.points),
        "first_fault_at_every": total.every,
        "offered": findings.offered[depth],
        "struck": findings.struck[depth],
        "alike": findings.alike[depth],
        "percent": _percent(total),
        "deliveries": findings.events["deliveries"],
        "redeliveries": findings.events["redeliveries"],
        "kills": findings.events["kills"],
        "settled_dead_letters": findings.settled[depth],
        "broken": len(findings.violations),
        **{mode.replace(" ", "_"): findings.modes[f"{depth} {mode}"] for mode in MODES},
    }


def _percent(total: Sum) -> float:
    """The percentage of the possible histories that were struck: every mode at every point, first or second."""
    offered = total.findings.offered[total.faults]
    if total.faults == 1 and offered != strikes_at(total.points):
        return 0.0  # a share was not finished
    if not offered:
        return 100.0  # the history is over before the first point of the sample
    return 100 * total.findings.struck[total.faults] / offered


_COLUMNS = ("points", "struck", "alike", "percent", "redeliveries", "kills", "settled_dead_letters", "broken")


def _report(sums: Sequence[Sum], *, is_complete: bool, jobs: int) -> int:
    rows = [_row(total) | {"jobs": jobs} for total in sums]
    print(f"{'history':28}{'faults':>7}" + "".join(f"{name.replace('_', ' '):>16}" for name in _COLUMNS))
    for row in rows:
        print(f"{row['history']:28}{row['faults']:>7}" + "".join(f"{row[name]:>16,g}" for name in _COLUMNS))
    violations = [violation for total in sums for violation in total.findings.violations]
    harms = Counter(violation.harm for violation in violations)
    goals = [
        *(
            Goal(name=f"{title} struck (%)", value=min(each), limit=100, at_least=True)
            for faults, title in ((1, "single faults"), (2, "pairs of faults"))
            if (each := [_percent(total) for total in sums if total.faults == faults])
        ),
        *(Goal(name=harm.value, value=harms[harm], limit=0, at_least=False) for harm in ViolationKind),
        Goal(name="other failures", value=harms[None], limit=0, at_least=False),
    ]
    write_report("crashes" if is_complete else "crashes-part", seed=None, rows=rows, goals=goals)
    return 1 if any(not goal.holds for goal in goals) else 0


def _replay(description: str, scale: Scale) -> int:
    name, modes = read_replay(description)
    problem, story = play_struck(name, scale, modes)
    print("\n".join(story))
    print(f"broken: {problem}" if problem else "every promise held")
    return 1 if problem else 0


if __name__ == "__main__":
    sys.exit(main())
