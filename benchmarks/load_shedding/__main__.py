"""Measures what load shedding promises on the local stack, over HTTP with real photos and API keys.

    make bench-load-shedding
    python -m benchmarks.load_shedding [burst | neighbours] [--runs N] [--burst-seconds S] [--sla-seconds S] …

`burst`: two workers per lane, and a free tenant that sends ten times what the slow lane drains (measured first) for 30
seconds, three times, while a paying tenant sends a little. Every answer is 202 or 429, every accepted image is done
within its lane's service level, the median `Retry-After` matches the time that the backlog really took, and the paying
tenant is served while the free one is refused. The free tenants' mark is five minutes of drain, which is more than such
a burst brings, so a burst begins once uploads at the same rate have filled the lane up to the mark.

`neighbours`: a tenant that sends a hundred times as much as each of ten others in its lane; all have the same
allowance.

Writes build/reports/load_shedding.json. Exits with 1 if an answer was not 202 or 429, or an accepted image was lost.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any

from benchmarks.forms import FOLDER, by_form
from benchmarks.load_shedding import burst, neighbours
from benchmarks.load_shedding.stage import STATE, have_two_workers_a_lane
from benchmarks.stage import stack_of
from darkroom.domain.kernel.lanes import SLOW
from repository.report import Goal, write_report

PARTS = ("burst", "neighbours")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the parts and writes the report; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.load_shedding",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], metavar="PART", help="burst, neighbours, or both")
    parser.add_argument("--runs", type=int, default=by_form(short=1, usual=3), help="bursts (3)")
    parser.add_argument(
        "--burst-seconds", type=float, default=by_form(short=2.0, usual=30.0), help="how long each lasts (30)"
    )
    parser.add_argument(
        "--sla-seconds",
        type=int,
        default=by_form(short=20, usual=SLOW.sla_seconds),
        help=f"the slow lane's service level ({SLOW.sla_seconds}, the product's; a shorter one makes a short run)",
    )
    parser.add_argument(
        "--quiet-seconds",
        type=float,
        default=by_form(short=4.0, usual=100.0),
        help="each stretch of the quiet tenants (100)",
    )
    options = parser.parse_args(arguments)
    parts = options.parts or PARTS
    rows: list[dict[str, Any]] = []
    goals: list[Goal] = []
    with stack_of(STATE, "--access", "keys") as stack:
        is_shortened = options.sla_seconds != SLOW.sla_seconds
        have_two_workers_a_lane(stack, slow_sla_seconds=options.sla_seconds if is_shortened else None)
        # The neighbours come first: they need lanes with no backlog, and leave them so.
        if "neighbours" in parts:
            rows_of_part, held = neighbours.measure(stack, options.quiet_seconds)
            rows, goals = rows + rows_of_part, goals + held
        if "burst" in parts:
            plan = burst.Burst(seconds=options.burst_seconds, runs=options.runs, sla_seconds=options.sla_seconds)
            rows_of_part, held = burst.measure(stack, plan)
            rows, goals = rows + rows_of_part, goals + held
    for row in rows:
        print(", ".join(f"{name} {value}" for name, value in row.items()), flush=True)
    write_report("load_shedding", seed=None, rows=rows, goals=goals, folder=FOLDER)
    return 1 if any(row.get("unexpected") or row.get("lost") for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
