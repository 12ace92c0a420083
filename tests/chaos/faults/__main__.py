"""Real processes under load: killed workers, a disturbed wire, duplicate messages, a bug, and stores that go silent.

    python -m tests.chaos.faults [--uploads N] [--seed S]

Starts its own local stack. Minutes pass in seconds, by settings that the deployed functions get from outside; with
LONG=1 the product keeps its real timing and each store is silent for two minutes. Exits with 1 if a promise was broken.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from darkroom.domain.images.image import Status
from darkroom.domain.kernel.errors import INTERNAL, WORKER_LOST
from repository.report import ROOT, Goal, write_report
from tests.chaos.faults.bug import ALARMS, Bug, bug
from tests.chaos.faults.disturbance import FaultInjection, fault_injection
from tests.chaos.faults.outage import STORES, Outage, outage
from tests.chaos.faults.scenario import Plan, Scenario, scenario_of
from tests.support.running.conditions import ACCEPTOR, FUNCTIONS, QUICK
from tests.support.running.outcome import Outcome
from tests.support.running.serving import serving

STATE = ROOT / "build" / "prove" / "stack"

LONGEST_WAIT_SECONDS = 10.0
"""The longest that a client should wait for an answer, whatever is down."""

_SHOWN = 10


def plan_of(*, uploads: int, seed: int, long: bool) -> Plan:
    """The plan by which a stack is tried here."""
    silence_seconds = 120.0 if long else 12.0
    return Plan(
        uploads=uploads,
        clients=8,
        # The product takes twenty minutes to find an upload whose acceptor died between its row and its message, so
        # acceptors die only if those pass faster.
        victims=frozenset(FUNCTIONS) - {ACCEPTOR} if long else frozenset(FUNCTIONS),
        requests_a_kill=250,
        silence_seconds=silence_seconds,
        # A quarter of the uploads comes before the silence, as many during it as clients have the patience for.
        seconds_an_upload=2 * silence_seconds / uploads,
        patience_seconds=1500 if long else 240,
        seed=seed,
        pace=None if long else QUICK,
    )


@dataclass(frozen=True, kw_only=True)
class Found:
    """The results of all scenarios."""

    outages: tuple[Outage, ...]
    fault_injection: FaultInjection
    bug: Bug


def run_all(scenario: Scenario, *, tell: Callable[[str], None] = lambda _: None) -> Found:
    """Run all scenarios on a stack. What one scenario waits for happens while others run; the accounts are made at the
    end."""
    tell("uploading to an engine with a bug")
    with bug(scenario) as account_of_bug:
        outages = []
        for store in STORES:
            tell(f"uploading while {store} falls silent")
            outages.append(outage(scenario, store))
        tell("uploading while processes are killed and the wire is disturbed")
        account_of_fault_injection = fault_injection(scenario)
        tell("waiting for the bug's dead letter and alarms, mending, replaying")
        after_a_bug = account_of_bug()
    tell("making the accounts")
    return Found(
        outages=tuple(account() for account in outages), fault_injection=account_of_fault_injection(), bug=after_a_bug
    )


def prove(scenario: Scenario) -> list[dict[str, Any]]:
    """Run all scenarios on the stack, and return a row for each."""
    started = time.monotonic()
    results = run_all(scenario, tell=lambda doing: print(f"{time.monotonic() - started:5.0f} s  {doing}", flush=True))
    settings = {
        "seed": scenario.plan.seed,
        "clients": scenario.plan.clients,
        "pace": "deployed" if scenario.plan.pace is None else f"1/{scenario.plan.pace.divisor}",
    }
    rows = [*map(_outage_row, results.outages), _fault_injection_row(results.fault_injection), _bug_row(results.bug)]
    return [row | settings for row in rows]


def _account(outcome: Outcome) -> dict[str, Any]:
    return {
        "uploads": outcome.uploads,
        "accepted": outcome.accepted,
        "done": outcome.done,
        "lost": len(outcome.lost),
        "doubled": len(outcome.doubled),
        "stuck": len(outcome.stuck),
        "differing": len(outcome.differing),
        "attempts": outcome.attempts,
        "attempts_lost": outcome.attempts_lost,
        "attempts_failed": outcome.attempts_failed,
        "broken": outcome.broken,
    }


def _outage_row(result: Outage) -> dict[str, Any]:
    row = {"scenario": f"{result.store} is silent", **_account(result.outcome)}
    row["broken"] += result.dishonest
    return row | {
        "silent_seconds": result.seconds,
        "answers": {str(status): count for status, count in sorted(result.statuses.items())},
        "dishonest": len(result.dishonest),
        "longest_wait_seconds": round(result.longest_wait_seconds, 1),
    }


def _fault_injection_row(injection: FaultInjection) -> dict[str, Any]:
    return {
        "scenario": "killed, disturbed, doubled",
        **_account(injection.outcome),
        "kills": injection.kills,
        "faults": injection.faults,
        "duplicates": injection.duplicates,
        "repeated_uploads": injection.repeated_uploads,
    }


def _bug_row(result: Bug) -> dict[str, Any]:
    row = {"scenario": "one image meets a bug", **_account(result.outcome)}
    row["broken"] += broken_of(result)
    return row | {
        "letters": len(result.dead_letters),
        "refused_dead_letters": len(result.refused_dead_letters),
        "alarms_fired": sorted(result.fired),
        "alarms_cleared": sorted(result.cleared),
        "delayed": len(result.delayed),
    }


def broken_of(result: Bug) -> list[str]:
    """The broken promises about a bug and about a refusal."""
    given_up, refused = result.given_up, result.refused
    explained = [dead_letter.explanation for dead_letter in result.dead_letters if dead_letter.explanation]
    checks = {
        "the marked image ended failed, as the operator's business": given_up is not None
        and given_up.status is Status.FAILED
        and given_up.error is not None
        and given_up.error.code in (INTERNAL, WORKER_LOST),  # its last attempt may have been killed
        "it has one letter": len(result.dead_letters) == 1,
        "which explains every attempt": bool(explained)
        and given_up is not None
        and [attempt["attempt"] for attempt in explained[0]["attempts"]] == list(range(1, given_up.attempt + 1))
        and any(attempt["error_type"] == "ZeroDivisionError" for attempt in explained[0]["attempts"]),
        "the refused image ended failed at once, by its own fault": refused is not None
        and (refused.status, refused.attempt) == (Status.FAILED, 1)
        and refused.error is not None
        and not refused.error.retryable,
        "it has no letter": not result.refused_dead_letters,
        "the alarms went off": result.fired >= set(ALARMS),
        "the replay brought the marked image to its end": result.replayed is not None
        and result.replayed.status is Status.DONE,
        "its dead letter is gone": not result.dead_letters_left,
        "the warning cleared": result.is_warning_over is not False,
        "no good image took more than one retry": not result.delayed,
    }
    return [f"It is not so that {promise}. {result.said_by_replay}" for promise, kept in checks.items() if not kept]


def _print(row: Mapping[str, Any]) -> None:
    broken = row["broken"]
    shown = {name: value for name, value in row.items() if name not in ("scenario", "faults", "broken")}
    print(f"{row['scenario']}: " + ", ".join(f"{name} {value}" for name, value in shown.items()), flush=True)
    for fault, count in row.get("faults", {}).items():
        print(f"    {count:5} × {fault}")
    for sentence in broken[:_SHOWN]:
        print(f"    BROKEN: {sentence}")
    if len(broken) > _SHOWN:
        print(f"    … and {len(broken) - _SHOWN} more", flush=True)


def _goals(rows: Sequence[Mapping[str, Any]], plan: Plan) -> list[Goal]:
    def total(name: str) -> int:
        return sum(row.get(name, 0) for row in rows)

    broken = sum(len(row["broken"]) for row in rows)

    kills = sum(sum(row.get("kills", {}).values()) for row in rows)
    faults = sum(sum(row.get("faults", {}).values()) for row in rows)
    waits = [row["longest_wait_seconds"] for row in rows if "longest_wait_seconds" in row]
    return [
        *(
            Goal(name=name, value=total(name), limit=0, at_least=False)
            for name in ("lost", "doubled", "stuck", "differing", "dishonest", "delayed")
        ),
        Goal(name="broken promises", value=broken, limit=0, at_least=False),
        Goal(name="kills", value=kills, limit=plan.uploads // 50, at_least=True),
        Goal(name="faults on the wire", value=faults, limit=plan.uploads // 5, at_least=True),
        Goal(name="duplicates", value=total("duplicates"), limit=plan.uploads // 5, at_least=True),
        Goal(name="longest wait in seconds", value=max(waits), limit=LONGEST_WAIT_SECONDS, at_least=False),
    ]


def main(arguments: Sequence[str]) -> int:
    """The exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.faults", description="Try real processes.")
    long = os.environ.get("LONG") == "1"
    parser.add_argument(
        "--uploads", type=int, default=500 if long else 200, help="of each scenario; 200, with LONG=1 500"
    )
    parser.add_argument("--seed", type=int, default=1, help="of who is killed and doubled (1)")
    chosen = parser.parse_args(arguments)
    plan = plan_of(uploads=chosen.uploads, seed=chosen.seed, long=long)
    with serving(STATE) as stack, scenario_of(stack, plan, folder=STATE / "logs") as scenario:
        rows = prove(scenario)
    for row in rows:
        _print(row)
    write_report("faults", seed=plan.seed, rows=rows, goals=_goals(rows, plan))
    return 1 if any(row["broken"] for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
