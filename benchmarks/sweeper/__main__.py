"""The sweeper in virtual time: what it rescues behind a pile and after an outage, what it removes, and its idle bill.

    make bench-sweeper                             (LONG=1: with three seeds)
    python -m benchmarks.sweeper [--seed S] [--measure]

Plays the function's operations, sweep after sweep, over the tests' stores with a hundred tenants, on a good, a usual
and a bad day of AWS: each call takes its time, and the processor's, of which the function's memory decides how much
there is. `--measure` measures that part of the calls on this machine instead, and prints it. Prints tables and writes
build/reports/sweeper.json. Exits with 1 if a lost message was not rescued at all.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import Any

from benchmarks.forms import FOLDER, by_form
from benchmarks.sweeper.plane import MEGABYTES
from benchmarks.sweeper.processor_time import measure
from benchmarks.sweeper.scenarios import after_an_outage, behind_a_pile, idle, steady_removals, working
from repository.report import Goal, write_report
from tests.support.virtual.latencies import DAYS

MEMORIES = (512, 1024, 1769, 2048)

RESCUE_SECONDS, OUTAGE_MINUTES, OVERDUE_SECONDS, IDLE_CALLS, IDLE_DOLLARS = 180, 15, 180, 80, 0.40

type Rows = Sequence[Mapping[str, Any]]


def play(seeds: Sequence[int]) -> list[dict[str, Any]]:
    """Plays everything, two at a time and the longest first; each row says on which day it was."""
    parts: list[tuple[str, int, Callable[..., dict[str, Any]]]] = [
        (day, seed, part)
        for part in (behind_a_pile, after_an_outage, steady_removals)
        for day in DAYS
        for seed in seeds
    ]
    for megabytes in MEMORIES:
        parts.append(("usual", seeds[0], partial(working, megabytes=megabytes)))
        parts += [(day, seeds[0], partial(idle, megabytes=megabytes)) for day in DAYS]
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as processes:
        played = [processes.submit(part, day=day, seed=seed) for day, seed, part in parts]
        return [
            {"day": day, "seed": seed} | future.result() for (day, seed, _), future in zip(parts, played, strict=True)
        ]


def goals_of(rows: Rows) -> list[Goal]:
    """Of each day, the worst of its seeds."""

    def most(part: str, figure: str, day: str) -> float:
        return max(float(row[figure]) for row in rows if (row["part"], row["day"]) == (part, day))

    goals = []
    for day in DAYS:
        for name, value, limit in (
            (
                "seconds until a lost message is rescued behind another tenant's pile, median",
                most("pile", "rescued_seconds_p50", day),
                RESCUE_SECONDS,
            ),
            ("the same, worst", most("pile", "rescued_seconds_worst", day), RESCUE_SECONDS),
            ("minutes until all are rescued after an outage of SQS", most("outage", "minutes", day), OUTAGE_MINUTES),
            (
                "seconds that the oldest removal is overdue at 1,000 deletions a minute",
                most("removals", "oldest_overdue_seconds", day),
                OVERDUE_SECONDS,
            ),
            ("calls of a sweep with nothing to do", most("idle", "calls_each", day), IDLE_CALLS),
            ("dollars of the calls of an idle month", dollars_of(_idle(rows, day), of_calls=True), IDLE_DOLLARS),
        ):
            goals.append(Goal(name=f"a {day} day: {name}", value=value, limit=limit))
    return goals


def dollars_of(row: Mapping[str, Any], *, of_calls: bool = False) -> float:
    """All of a row's dollars, or those of its calls alone, without the function's own time."""
    dollars: Mapping[str, float] = row["dollars"]
    return round(sum(cost for unit, cost in dollars.items() if not (of_calls and unit.startswith("Lambda"))), 3)


def _idle(rows: Rows, day: str, megabytes: int | None = None) -> Mapping[str, Any]:
    wanted = ("idle", day, megabytes or MEGABYTES)
    return next(row for row in rows if (row["part"], row["day"], row["megabytes"]) == wanted)


def main(arguments: Sequence[str] | None = None) -> int:
    """Plays everything, prints the tables and writes the report; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.sweeper", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--measure", action="store_true", help="measure the calls' processor time on this machine")
    options = parser.parse_args(arguments)
    if options.measure:
        for name, milliseconds in measure().items():
            print(f"{name:<28}{milliseconds:>8.3f} ms")
        return 0
    rows = play(range(options.seed, options.seed + by_form(short=1, usual=1, long=3)))
    _print_days(rows)
    _print_memories(rows)
    write_report("sweeper", seed=options.seed, rows=rows, goals=goals_of(rows), folder=FOLDER)
    return 1 if any(row.get("unrescued") for row in rows) else 0


def _print_days(rows: Rows) -> None:
    print(f"{'':<58}" + "".join(f"{day:>9}" for day in DAYS))
    for label, part, figure in (
        ("behind a pile, seconds until a rescue: median", "pile", "rescued_seconds_p50"),
        ("  worst", "pile", "rescued_seconds_worst"),
        ("after an outage, minutes until all are rescued", "outage", "minutes"),
        ("1,000 deletions a minute, oldest overdue, seconds", "removals", "oldest_overdue_seconds"),
        ("  due at the end", "removals", "waiting_at_the_end"),
    ):
        values_by_day = ([row[figure] for row in rows if (row["part"], row["day"]) == (part, day)] for day in DAYS)
        print(f"  {label:<56}" + "".join(f"{max(values):>9,}" for values in values_by_day))


def _print_memories(rows: Rows) -> None:
    print(f"\n{'memory':<10}{'looks a minute':>16}{'$ a million looks':>20}{'idle ms':>10}{'idle $ a month':>16}")
    for megabytes in MEMORIES:
        worked = next(row for row in rows if (row["part"], row["megabytes"]) == ("memory", megabytes))
        rested = _idle(rows, "usual", megabytes)
        print(
            f"{megabytes:<10}{worked['done_a_minute']:>16,}{worked['lambda_dollars_a_million']:>20.2f}"
            f"{rested['milliseconds_each']:>10}{dollars_of(rested):>16.2f}"
        )
    rested = _idle(rows, "usual")
    print(f"\nA sweep with nothing to do has {rested['calls_each']:g} calls. A month of them, usual days:")
    for unit, dollars in rested["dollars"].items():
        print(f"  {unit:<26}${dollars:>7.3f}")


if __name__ == "__main__":
    sys.exit(main())
