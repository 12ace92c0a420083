"""Sends requests of every kind to the API of its own local stack, and compares each answer with openapi.json.

    make fuzz-api                                                           (LONG=1: ten times as many random requests)
    python -m tests.fuzz.api [--examples N] [--seed S]

Every accepted upload must end, without a dead letter. Exits with 1 if anything was found.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from typing import Any

import httpx

from repository.report import ROOT, Goal, write_report
from tests.fuzz.api.attack import Findings, attack
from tests.support.running.serving import serving
from tests.support.running.stack import Stack

STATE = ROOT / "build" / "fuzz-api"
PATIENCE_SECONDS = 900
LEAST_ACCEPTED = 20
"""An attack whose requests are all rejected at the door proves nothing."""


def unfinished(stack: Stack) -> int:
    """How many images are still unfinished once none is or the time limit is reached."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    with httpx.Client(base_url=stack.api_url, trust_env=False, timeout=60) as api:
        while (left := _listed(api, "pending,processing")) and time.monotonic() < deadline:
            time.sleep(1)
    return left


def _listed(api: httpx.Client, statuses: str) -> int:
    count, cursor = 0, None
    while True:
        query = {"status": statuses, "limit": "100"} | ({} if cursor is None else {"cursor": cursor})
        page: dict[str, Any] = api.get("/images", params=query).raise_for_status().json()
        count, cursor = count + len(page["images"]), page["next"]
        if cursor is None:
            return count


def _rows(findings: Findings, seed: int) -> list[dict[str, Any]]:
    outcomes = {name: findings.good_requests(name) for name in ("accepted", "rejected", "unreachable", "conflicts")}
    return [
        {"operation": operation, "seed": seed} | {name: counts[operation] for name, counts in outcomes.items()}
        for operation in outcomes["accepted"]
    ]


def main(arguments: Sequence[str]) -> int:
    """The exit code."""
    default = 2_000 if os.environ.get("LONG") == "1" else 200
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.api", description="Attack the API.")
    parser.add_argument("--examples", type=int, default=default, help="random requests an operation (200; LONG: 2000)")
    parser.add_argument("--seed", type=int, default=1, help="of the random requests (1)")
    chosen = parser.parse_args(arguments)
    with serving(STATE) as stack:
        findings = attack(stack.api_url, examples=chosen.examples, seed=chosen.seed, folder=STATE / "schemathesis")
        print(findings.said, flush=True)
        stuck, dead_letters = unfinished(stack), len(stack.dead_letters())
    rows = _rows(findings, chosen.seed)
    for row in rows:
        print(", ".join(f"{name} {value}" for name, value in row.items()))
    goals = [
        Goal(name="answers that are not as described", value=len(findings.failures), limit=0, at_least=False),
        Goal(name="parts of the attack that were left out", value=len(findings.left_out), limit=0, at_least=False),
        Goal(name="images that do not end", value=stuck, limit=0, at_least=False),
        Goal(name="dead letters", value=dead_letters, limit=0, at_least=False),
        Goal(
            name="uploads accepted",
            value=findings.good_requests("accepted")["POST /images"],
            limit=LEAST_ACCEPTED,
            at_least=True,
        ),
    ]
    write_report("fuzz-api", seed=chosen.seed, rows=rows, goals=goals)
    return 0 if all(goal.holds for goal in goals) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
