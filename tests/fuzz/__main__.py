"""Attacks the engine with the hostile set and with mutants, and reports how each input ended.

    python -m tests.fuzz [--mutants N] [--seed S] [--jobs 2] [--only hostile|mutants|photographs] [--replay NAME]

One in twenty mutants is of a whole photograph of up to 16 megapixels, and may take two seconds more than an undamaged
one of its format.

Inputs with a wrong outcome are kept in build/fuzz. Exits with 1 if there is any; being too slow misses a goal, but is
no failure.
"""

from __future__ import annotations

import argparse
import itertools
import os
import shutil
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from repository.report import ROOT, Goal, write_report
from tests.fuzz.attack import (
    CRASH,
    MEMORY_LIMIT,
    PHOTOGRAPH,
    Attack,
    attack_named,
    attacks,
    hostile_attack,
    is_mutant,
    mutant_attack,
    photograph_attack,
    photograph_mutant_attack,
)
from tests.fuzz.hostile import hostile_cases
from tests.fuzz.photographs import photographs
from tests.fuzz.verdict import OTHERWISE, problem_of
from tests.fuzz.worker import MEGABYTE, NO_CODE, NO_MEMORY, UNEXPECTED, WRONG, Result

OFFENDERS = ROOT / "build" / "fuzz"
CPU_GOAL_SECONDS = 2.0
_PHOTOGRAPHS_IN = 20

_PROGRESS_EVERY_SECONDS = 10
_SHOWN = 10


def _keep(result: Result, problem: str, *, seed: int) -> None:
    OFFENDERS.mkdir(parents=True, exist_ok=True)
    name = f"mutant-{seed}-{result.name}" if is_mutant(result.name) else result.name
    (OFFENDERS / f"{name}.{result.format}").write_bytes(attack_named(result.name, seed=seed).make())
    replay = f"python -m tests.fuzz --replay {result.name} --seed {seed}"
    said = f"{problem}\n{_line(result)}\nReplay: {replay}\n\n{result.detail}\n"
    (OFFENDERS / f"{name}.txt").write_text(said)
    print(f"{problem}: {_line(result)}\n    {replay}", flush=True)


def _line(result: Result) -> str:
    return (
        f"{result.name} ({result.format}): {result.outcome}, "
        f"{result.cpu_seconds:.2f} s, {result.start_bytes // MEGABYTE} → {result.peak_bytes // MEGABYTE} MB"
    )


def _run(title: str, inputs: Iterator[Attack], total: int, *, jobs: int, seed: int) -> list[Result]:
    results: list[Result] = []
    problems = 0
    started = shown = time.monotonic()
    for result in attacks(inputs, jobs=jobs):
        if problem := problem_of(result):
            problems += 1
            _keep(result, problem, seed=seed)
        results.append(replace(result, detail=""))  # a million of them fit into memory without
        now = time.monotonic()
        if now - shown > _PROGRESS_EVERY_SECONDS or len(results) == total:
            shown = now
            rate = len(results) / (now - started)
            slowest = max(each.cpu_seconds for each in results)
            peak = max(each.peak_bytes for each in results) // MEGABYTE
            print(
                f"{title}: {len(results):,} of {total:,}, {rate:.0f} a second, {problems} problems, "
                f"at most {slowest:.2f} s of CPU and {peak} MB",
                flush=True,
            )
    return results


def _outcome_rows(name: str, results: Sequence[Result], settings: dict[str, Any]) -> list[dict[str, Any]]:
    rows = []
    for file_format in sorted({result.format for result in results}):
        own = [result for result in results if result.format == file_format]
        rows.append(
            {
                "set": name,
                "format": file_format,
                "inputs": len(own),
                "outcomes": dict(Counter(result.outcome for result in own).most_common()),
                "worst_cpu_seconds": round(max(result.cpu_seconds for result in own), 3),
                "peak_megabytes": max(result.peak_bytes for result in own) // MEGABYTE,
                **settings,
            }
        )
    return rows


def _extreme_rows(kind: str, name: str, results: Sequence[Result], settings: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {
            "set": name,
            "extreme": kind,
            "input": result.name,
            "format": result.format,
            "outcome": result.outcome,
            "cpu_seconds": round(result.cpu_seconds, 3),
            "start_megabytes": result.start_bytes // MEGABYTE,
            "peak_megabytes": result.peak_bytes // MEGABYTE,
            **settings,
        }
        for result in results
    ]


def _print_rows(rows: Sequence[dict[str, Any]]) -> None:
    for row in rows:
        if "outcomes" in row:
            outcomes = ", ".join(f"{count:,} {outcome}" for outcome, count in row["outcomes"].items())
            print(
                f"{row['set']:8} {row['format']:5} {row['inputs']:7,}  {row['worst_cpu_seconds']:5.2f} s "
                f"{row['peak_megabytes']:4} MB  {outcomes}"
            )
        else:
            memory = f"{row['start_megabytes']} → {row['peak_megabytes']} MB"
            print(
                f"{row['set']:8} {row['extreme']:10} {row['cpu_seconds']:5.2f} s  {memory:13}  "
                f"{row['input']} ({row['format']}): {row['outcome']}"
            )


def _report(sets: dict[str, list[Result]], *, seed: int, mutants: int) -> int:
    settings = {"memory_limit_megabytes": MEMORY_LIMIT // MEGABYTE, "seed": seed, "mutants": mutants}
    rows: list[dict[str, Any]] = []
    for name, results in sets.items():
        slowest = sorted(results, key=lambda result: -result.cpu_seconds)[:_SHOWN]
        hungriest = sorted(results, key=lambda result: result.start_bytes - result.peak_bytes)[:_SHOWN]
        rows += _outcome_rows(name, results, settings)
        rows += _extreme_rows("slowest", name, slowest, settings)
        rows += _extreme_rows("hungriest", name, hungriest, settings)
    _print_rows(rows)
    every = [result for results in sets.values() for result in results]
    problems = Counter(problem for result in every if (problem := problem_of(result)))
    worst_cpu_seconds = max((result.cpu_seconds for result in every if not _is_large(result)), default=0.0)
    peak_megabytes = max(result.peak_bytes for result in every) / MEGABYTE
    goals = [
        Goal(name="crashes", value=problems[CRASH], limit=0, at_least=False),
        Goal(name="unexpected exceptions", value=problems[UNEXPECTED], limit=0, at_least=False),
        Goal(name="out of memory", value=problems[NO_MEMORY], limit=0, at_least=False),
        Goal(name="refusals without a code", value=problems[NO_CODE], limit=0, at_least=False),
        Goal(name="outputs that are not as declared", value=problems[WRONG], limit=0, at_least=False),
        Goal(
            name="hostile files that end otherwise than they should", value=problems[OTHERWISE], limit=0, at_least=False
        ),
        Goal(name="worst CPU seconds", value=round(worst_cpu_seconds, 3), limit=CPU_GOAL_SECONDS, at_least=False),
        Goal(
            name="worst CPU seconds of a whole photograph's mutant, more than undamaged",
            value=round(_more_than_undamaged(every), 3),
            limit=CPU_GOAL_SECONDS,
            at_least=False,
        ),
        Goal(name="peak megabytes", value=round(peak_megabytes, 1), limit=MEMORY_LIMIT // MEGABYTE, at_least=False),
    ]
    write_report("fuzz", seed=seed, rows=rows, goals=goals)
    return 1 if problems else 0


def _is_large(result: Result) -> bool:
    return result.name.startswith(PHOTOGRAPH)


def _more_than_undamaged(results: Sequence[Result]) -> float:
    """The most CPU seconds by which a whole photograph's mutant exceeds the undamaged ones of its format."""
    large = [result for result in results if _is_large(result)]
    undamaged: dict[str, float] = {}
    for result in large:
        if not is_mutant(result.name):
            undamaged[result.format] = max(undamaged.get(result.format, 0), result.cpu_seconds)
    return max((result.cpu_seconds - undamaged[result.format] for result in large if is_mutant(result.name)), default=0)


def _replay(name: str, *, seed: int) -> int:
    (result,) = attacks([attack_named(name, seed=seed)], jobs=1)
    problem = problem_of(result)
    print(f"{_line(result)}\n{result.detail}".rstrip())
    if problem:
        print(f"problem: {problem}")
    return 1 if problem else 0


def main(arguments: Sequence[str]) -> int:
    """The exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description="Attack the engine.")
    default = 1_000_000 if os.environ.get("LONG") == "1" else 100_000
    parser.add_argument("--mutants", type=int, default=default, help="how many (100,000; with LONG=1 a million)")
    parser.add_argument("--seed", type=int, default=1, help="of the mutants (1)")
    parser.add_argument("--jobs", type=int, default=2, help="worker processes (2)")
    parser.add_argument("--only", choices=("hostile", "mutants", "photographs"), help="one of the sets")
    parser.add_argument("--replay", metavar="NAME", help="one input as reports name it (17), and how it ends")
    chosen = parser.parse_args(arguments)
    if chosen.replay is not None:
        return _replay(chosen.replay, seed=chosen.seed)
    shutil.rmtree(OFFENDERS, ignore_errors=True)
    sets: dict[str, list[Result]] = {}
    if chosen.only in (None, "hostile"):
        cases = hostile_cases().values()
        inputs = (hostile_attack(case) for case in cases)
        sets["hostile"] = _run("hostile files", inputs, len(cases), jobs=chosen.jobs, seed=chosen.seed)
    large = chosen.mutants // _PHOTOGRAPHS_IN
    if chosen.only in (None, "mutants"):
        small = chosen.mutants - large
        numbers = (mutant_attack(index, seed=chosen.seed) for index in range(small))
        sets["mutants"] = _run("mutants", numbers, small, jobs=chosen.jobs, seed=chosen.seed)
    if chosen.only in (None, "photographs"):
        undamaged = [photograph_attack(name) for name in photographs()]
        damaged = (photograph_mutant_attack(index, seed=chosen.seed) for index in range(large))
        sets["whole photographs"] = _run(
            "whole photographs",
            itertools.chain(undamaged, damaged),
            len(undamaged) + large,
            jobs=chosen.jobs,
            seed=chosen.seed,
        )
    return _report(sets, seed=chosen.seed, mutants=chosen.mutants)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
