"""Poison in every queue, row and batch, among kills, pauses and duplicates: it harms only itself.

    python -m tests.chaos [--images N] [--seed S] [--without kills | pauses | duplicates | poison] …

Starts its own local stack and rehearses one plan on it twice. Images of both lanes are sent directly, by forms, for
soon and for later, while function processes are killed, the emulator pauses, and clients and queues repeat themselves.
The first rehearsal has no poison. The second adds messages that no Darkroom wrote in all queues, dead-letter queues
included, damaged batches with their own executions, unreadable rows at the head of every index, and records of work
that a process began before it died.

The product keeps its real timing; whenever the stack is at rest, its clock is moved to the next event, so the six
minutes for which a dead worker's message is hidden pass at once. The clock never skips an image's time, and for two
minutes in all it waits for images that only a slow machine holds up.

How much later the poison makes its neighbours: both rehearsals follow the same plan. In it kills are tied to images (a
process dies at a call whose number the seed chooses, in the first event that contains the image), pauses and poison to
the number of images that have been answered, and nothing to the time of day. Each image's duration, from its acceptance
(for a form: when its file was stored) or from its `process_at` to `completed_at`, by the stack's own clock, is compared
with that in the other rehearsal, and may be longer by a minute. Not compared are the images that the poison was meant
for (their record is stale, their original gone), and those that were hit themselves in either rehearsal: by a process
that died while it accepted or developed them, or by a message, a delivery or an attempt that failed during an emulator
pause or within half a minute after it. The table counts them by reason.

Exits with 1 if a promise was broken.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from repository.report import ROOT, Goal, write_report
from tests.chaos.comparison import LATER_SECONDS, SWEEPS_APART_SECONDS, Comparison, compare
from tests.chaos.machinery import struck
from tests.chaos.plan import plan_of
from tests.chaos.rehearsal import Account, Kind, Rehearsal, stage_of
from tests.support.running.conditions import have_workers
from tests.support.running.serving import serving
from tests.support.running.stack import Stack

STATE = ROOT / "build" / "prove" / "chaos"

WORKERS = 3
"""Per lane: as many workers as two processors can restart again and again."""

_SHOWN = 10


@dataclass(frozen=True, kw_only=True)
class Found:
    """The results of the rehearsals, by name, and of their comparison, if there were two."""

    accounts: Mapping[str, Account]
    comparison: Comparison | None

    @property
    def broken(self) -> list[str]:
        """Every broken promise."""
        sentences = [sentence for account in self.accounts.values() for sentence in account.broken]
        sentences += [
            f"{name}: no sweep for {account.longest_gap_seconds:.0f} s"
            for name, account in self.accounts.items()
            if account.longest_gap_seconds > SWEEPS_APART_SECONDS
        ]
        return sentences + list(self.comparison.late if self.comparison else ())


def rehearse(
    stack: Stack,
    *,
    images: int,
    seed: int,
    without: frozenset[str] = frozenset(),
    tell: Callable[[str], None] = lambda _: None,
) -> Found:
    """Rehearse the plan of that seed without poison and with it; only once if poison is left out altogether."""
    kinds = frozenset(Kind.ALL) - without
    plan = plan_of(images, seed)
    have_workers(stack, WORKERS)
    accounts: dict[str, Account] = {}
    with struck(stack, stack.state / "strikes") as strikes:
        tell("developing each photo undisturbed")
        with stage_of(stack, strikes) as stage:
            for name, own in (("without poison", kinds - {Kind.POISON}), ("with poison", kinds)):
                if name == "without poison" or Kind.POISON in kinds:
                    tell(f"{name}: {len(plan.sendings)} images")
                    rehearsal = Rehearsal(stage, plan, kinds=own, tell=tell)
                    accounts[name] = rehearsal.perform()
    lives = [account.lives for account in accounts.values()]
    return Found(accounts=accounts, comparison=compare(*lives) if len(lives) == 2 else None)


def _row(name: str, account: Account) -> dict[str, Any]:
    outcome = account.outcome
    return {
        "rehearsal": name,
        "images": len(account.lives),
        "accepted": account.accepted,
        "done": outcome.done,
        "lost": len(outcome.lost) - len(account.failed),
        "failed": len(account.failed),
        "stuck": len(outcome.stuck),
        "doubled": len(outcome.doubled) + len(account.doubled),
        "differing": len(outcome.differing),
        "dead_letters_wrong": len(account.dead_letters),
        "astray": len(account.misrouted),
        "rows_touched": len(account.rows_touched),
        "lists_refused": len(account.lists_refused),
        "kills": dict(sorted(account.deaths.items())),
        "pauses": account.pauses,
        "duplicates": account.duplicates,
        "repetitions": account.repetitions,
        "poison": account.poison,
        "stale_records": account.stale_records,
        "most_attempts_of_stale": account.stale_attempts,
        "postponed_in_pauses": account.postponed,
        "attempts": outcome.attempts,
        "sweeps": account.sweeps,
        "longest_without_sweep_seconds": account.longest_gap_seconds,
        "seconds": account.seconds,
        "broken": account.broken,
    }


def _comparison_row(comparison: Comparison) -> dict[str, Any]:
    return {
        "rehearsal": "with poison, beside without",
        "compared": comparison.compared,
        "late": len(comparison.late),
        "latest_seconds": round(comparison.latest_seconds, 1),
        "excluded": dict(sorted(comparison.excluded.items())),
        "latest_of_those_hit_alike_seconds": round(comparison.alike_latest_seconds, 1),
        "broken": list(comparison.late),
    }


def goals_of(results: Found, *, images: int, without: frozenset[str]) -> list[Goal]:
    """The goals of the rehearsals, including that there were any."""
    rows = [_row(name, account) for name, account in results.accounts.items()]
    goals = [
        Goal(name=f"{row['rehearsal']}: {name.replace('_', ' ')}", value=row[name], limit=0, at_least=False)
        for row in rows
        for name in (
            *("lost", "failed", "stuck", "doubled", "differing", "dead_letters_wrong"),
            *("astray", "rows_touched", "lists_refused"),
        )
    ]
    for row in rows:
        name = row["rehearsal"]
        goals.append(
            Goal(
                name=f"{name}: longest without a sweep (s)",
                value=row["longest_without_sweep_seconds"],
                limit=SWEEPS_APART_SECONDS,
                at_least=False,
            )
        )
        floors = {
            Kind.KILLS: ("kills", sum(row["kills"].values()), images // 40),
            Kind.PAUSES: ("pauses", row["pauses"], 2),
            Kind.DUPLICATES: ("duplicates", row["duplicates"] + row["repetitions"], images // 2),
        }
        goals += [
            Goal(name=f"{name}: {what}", value=value, limit=limit, at_least=True)
            for kind, (what, value, limit) in floors.items()
            if kind not in without
        ]
    if results.comparison is not None:
        compared = results.comparison
        goals += [
            Goal(name=f"neighbours over {LATER_SECONDS} s later", value=len(compared.late), limit=0, at_least=False),
            Goal(name="neighbours compared", value=compared.compared, limit=images * 3 // 5, at_least=True),
            Goal(name="poison", value=rows[-1]["poison"], limit=100, at_least=True),
        ]
    return goals


def _print(row: Mapping[str, Any]) -> None:
    shown = {name: value for name, value in row.items() if name not in ("rehearsal", "broken")}
    print(f"{row['rehearsal']}: " + ", ".join(f"{name} {value}" for name, value in shown.items()), flush=True)
    for sentence in row["broken"][:_SHOWN]:
        print(f"    BROKEN: {sentence}")
    if len(row["broken"]) > _SHOWN:
        print(f"    … and {len(row['broken']) - _SHOWN} more", flush=True)


def main(arguments: Sequence[str]) -> int:
    """The exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description="Poison among neighbours.")
    long = os.environ.get("LONG") == "1"
    parser.add_argument("--images", type=int, default=5000 if long else 150, help="150; with LONG=1, 5,000")
    parser.add_argument("--seed", type=int, default=1, help="of who is struck by what (1)")
    parser.add_argument(
        "--without", choices=Kind.ALL, action="append", default=[], help="leave out one kind; may be said again"
    )
    chosen = parser.parse_args(arguments)
    without, started = frozenset(chosen.without), time.monotonic()
    print(f"seed {chosen.seed}", flush=True)
    with serving(STATE, "--access", "keys") as stack:
        results = rehearse(
            stack,
            images=chosen.images,
            seed=chosen.seed,
            without=without,
            tell=lambda doing: print(f"{time.monotonic() - started:5.0f} s  {doing}", flush=True),
        )
    rows = [_row(name, account) for name, account in results.accounts.items()]
    rows += [_comparison_row(results.comparison)] if results.comparison else []
    for row in rows:
        _print(row)
    goals = goals_of(results, images=chosen.images, without=without)
    write_report("chaos", seed=chosen.seed, rows=rows, goals=goals)
    return 0 if all(goal.holds for goal in goals) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
