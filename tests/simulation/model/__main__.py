"""Thousands of generated histories, for minutes on end: what happened in them, and that no promise was broken.

    python -m tests.simulation.model [--seconds 90] [--seed S] [--jobs 2] [--histories N]

Hypothesis generates what clients, queues, crashes, clocks and operators do; the operations are the real ones, over the
fakes of the ports, in virtual time. Prints the seed, how often everything happened, and each broken promise with its
shortest history. Exits with 1 if a promise was broken or something never happened.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from typing import Any

from hypothesis import HealthCheck, Verbosity, seed, settings
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test

from repository.report import Goal, write_report
from tests.simulation.model.histories import COUNTS, RULES, Histories
from tests.simulation.model.machine import ProcessMachine
from tests.simulation.model.processes import MODES
from tests.simulation.model.stores import HARMS, Broken
from tests.simulation.model.world import ENDINGS, Counts

STEPS = 50
"""Steps of a history."""

LOOKS = ("rescued", "waiting", "gave_up", "dead_letter_placed", "removed", "unsent", "fenced", "unreadable")
"""The outcomes that sweeps must have had at least once, of thousands."""

_CHUNK = 250
"""Histories that Hypothesis generates from one seed."""

_SECONDS = 90
_LONG_SECONDS = 1200


@dataclass(frozen=True, kw_only=True)
class Chunk:
    """The results of one seed's histories; `broken` is how a promise was broken, and `harm` which."""

    seed: int
    counts: Any
    harm: str | None = None
    broken: str = ""


def run(machine: type[Histories], *, histories: int, seed_number: int | None = None) -> Counts:
    """Runs that many histories like `play`, and returns what happened in them."""
    before = COUNTS.copy()
    play(machine, histories=histories, seed_number=seed_number)
    return COUNTS - before


def play(machine: type[RuleBasedStateMachine], *, histories: int, seed_number: int | None = None) -> None:
    """Runs that many histories: always the same for a given seed, and always the same without one.

    Raises Broken (or a group of errors, if there were several) with the shortest history that breaks a promise.
    """
    if seed_number is not None:
        machine = seed(seed_number)(type(machine.__name__, (machine,), {}))
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=histories,
            stateful_step_count=STEPS,
            deadline=None,
            database=None,
            derandomize=seed_number is None,
            print_blob=False,
            verbosity=Verbosity.normal,
            suppress_health_check=list(HealthCheck),
        ),
    )


def never_happened(counts: Counts, *, looks: Sequence[str] = ()) -> list[str]:
    """What a run should have seen and has not: every rule, fault and end, and these outcomes of sweeps."""
    return [
        *(f"rule: {name}" for name in RULES if not counts.rules[name]),
        *(f"fault: {name}" for name in MODES if not counts.faults[name]),
        *(f"end: {name}" for name in ENDINGS if not counts.endings[name]),
        *(f"sweep: {name}" for name in looks if not counts.looks[name]),
    ]


def table(counts: Counts) -> str:
    """How often everything happened."""
    parts: tuple[tuple[str, Counter[str]], ...] = (
        ("rules", counts.rules),
        ("faults", counts.faults),
        ("deliveries", counts.deliveries),
        ("sweeps", counts.looks),
        ("replays", counts.replays),
        ("ends", counts.endings),
        ("in all", counts.totals),
    )
    return "\n".join(
        f"{title:<12}{name:<40}{count:>10,}" for title, counts in parts for name, count in counts.most_common()
    )


def _chunk(machine: type[ProcessMachine[Any]], seed_number: int, histories: int) -> Chunk:
    before = machine.counts.copy()
    try:
        play(machine, histories=histories, seed_number=seed_number)
    except Exception as error:  # a broken promise or any other bug: both are findings
        broken = "".join(traceback.format_exception(error))
        return Chunk(seed=seed_number, counts=machine.counts - before, harm=harm_of(error), broken=broken)
    return Chunk(seed=seed_number, counts=machine.counts - before)


def harm_of(error: BaseException) -> str:
    """Which harm the broken promise did; `other` for any other error."""
    if isinstance(error, BaseExceptionGroup):
        return next((harm for part in error.exceptions if (harm := harm_of(part)) in HARMS), "other")
    return error.harm if isinstance(error, Broken) else "other"


def chunks(
    machine: type[ProcessMachine[Any]],
    first_seed: int,
    *,
    seconds: float,
    jobs: int,
    size: int = _CHUNK,
    histories: int | None = None,
) -> Iterator[Chunk]:
    """Runs chunks of one seed after another, until that many histories have begun or the time is over; at least one."""
    deadline = time.monotonic() + seconds
    number = begun = 0
    with ProcessPoolExecutor(jobs) as pool:
        running: set[Future[Chunk]] = set()
        while True:
            while len(running) < jobs and (
                begun < histories if histories else begun == 0 or time.monotonic() < deadline
            ):
                some = min(size, histories - begun) if histories else size
                running.add(pool.submit(_chunk, machine, first_seed + number, some))
                number, begun = number + 1, begun + some
            if not running:
                return
            done, running = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                yield future.result()


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs histories until the time is over, prints what happened and writes the report."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.simulation.model", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    long = os.environ.get("LONG") == "1"
    parser.add_argument("--seconds", type=float, default=_LONG_SECONDS if long else _SECONDS)
    parser.add_argument("--histories", type=int, help="this many, however long they take")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**9))
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args(arguments)
    print(f"seed {options.seed}", flush=True)
    counts, broken = Counts(), Counter[str]()
    played = chunks(Histories, options.seed, seconds=options.seconds, histories=options.histories, jobs=options.jobs)
    for chunk in played:
        counts.update(chunk.counts)
        if chunk.harm is not None:
            broken[chunk.harm] += 1
            print(f"{chunk.broken}\nRepeat: python -m tests.simulation.model --seed {chunk.seed} --histories {_CHUNK}")
        print(f"{counts.totals['histories']:,} histories, {sum(broken.values())} broken", flush=True)
    print(table(counts))
    missing = never_happened(counts, looks=LOOKS)
    for name in missing:
        print(f"never happened: {name}")
    write_report("model", seed=options.seed, rows=_rows(counts, broken, options.jobs), goals=_goals(broken, missing))
    return 1 if broken or missing else 0


def _rows(counts: Counts, broken: Counter[str], jobs: int) -> list[dict[str, Any]]:
    return [
        {
            "steps": STEPS,
            "jobs": jobs,
            "histories": counts.totals["histories"],
            "duplicates": counts.totals["duplicates"],
            "repeated_deliveries": counts.totals["repeated deliveries"],
            "faults": counts.faults.total(),
            "images": counts.endings.total(),
            **{harm: broken[harm] for harm in (*HARMS, "other")},
        },
        *({"rule": name, "count": counts.rules[name]} for name in RULES),
        *({"fault": name, "count": counts.faults[name]} for name in MODES),
        *({"end": name, "count": counts.endings[name]} for name in ENDINGS),
    ]


def _goals(broken: Counter[str], missing: Sequence[str]) -> list[Goal]:
    return [
        *(Goal(name=f"{harm} in invented histories", value=broken[harm], limit=0, at_least=False) for harm in HARMS),
        Goal(name="other failures of invented histories", value=broken["other"], limit=0, at_least=False),
        Goal(name="things that never happened in them", value=len(missing), limit=0, at_least=False),
    ]


if __name__ == "__main__":
    sys.exit(main())
