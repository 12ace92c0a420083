"""The whole path in virtual time: bursts and hours of uploads against AWS's ramps and quotas; what saturates first.

    make bench-scale

First some images pass through the real operations, over the tests' stores at AWS's latencies: what they wait for and
write is what an upload and a worker take in the larger runs. There each upload meets the gateway's throttles, Lambda's
ramp (1,000 more environments every 10 seconds, five batches per queue and 300 more per minute), the account's
concurrent executions, the warmth of the table and S3's rate, and the product's own decisions: a load shedder per
process, what workers report, the lanes. Operations are not run for each of 3.6 million uploads: that would take days.

Writes build/reports/scale.json. Exits with 1 if an accepted image was lost.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

from benchmarks.forms import FOLDER, by_form
from benchmarks.scale import backfills, loads, saturation, usage
from benchmarks.scale.sample import sample
from repository.report import Goal, write_report


def _usage(seed: int) -> tuple[list[dict[str, Any]], list[Goal]]:
    """How many events a second are counted, of one tenant and of many."""
    rows = usage.rows(seed, events=by_form(short=2_000, usual=usage.EVENTS))
    least = min(row["events_per_second"] for row in rows)
    return rows, [Goal(name="events counted a second on the worst day", value=least, limit=1000, at_least=True)]


def _backfills(seed: int) -> tuple[list[dict[str, Any]], list[Goal]]:
    """The live lanes beside a backfill, and one that is interrupted."""
    rows = backfills.rows(seed)
    print()
    for row in rows:
        print("  ".join(f"{name} {figure:,}" for name, figure in row.items()), flush=True)
    return rows, backfills.goals_of(rows)


OTHERS: Mapping[str, Callable[[int], tuple[list[dict[str, Any]], list[Goal]]]] = {
    "usage": _usage,
    "backfills": _backfills,
}
"""The rows and goals of what is played apart, by its name. One endpoint is in benchmarks/webhooks."""

SEED = 1
IMAGES = by_form(short=50, usual=500)
"""The images of the smaller run, in each lane."""

HOUR_SECONDS = by_form(short=20.0, usual=3600.0)
RATES = by_form(short=(50.0,), usual=(50.0, 200.0, 1000.0))
BURSTS = by_form(short=1, usual=len(loads.BURSTS))
SATURATING = by_form(short=saturation.RATES[:2], usual=saturation.RATES)
SATURATING_SECONDS = by_form(short=20.0, usual=60.0)


def main() -> int:
    """Plays everything, prints the tables and writes the report; returns the exit status."""
    day = sample(images=IMAGES, seed=SEED, day="usual")
    seconds = {lane: round(day.seconds(lane), 3) for lane in day.workers}
    rows: list[dict[str, Any]] = [
        {"part": "sample", "day": "usual", "seconds": seconds, "calls": day.calls, "writes": day.writes}
    ]
    print(f"an image takes a worker {seconds} seconds and the images table {day.writes['images']:g} write units\n")
    print(f"{'load':<40}{'stack':<16}{'uploads':>10}{'accepted':>10}{'late':>7}{'longest, s':>16}  Retry-After")
    played = []
    for load in loads.loads(hour_seconds=HOUR_SECONDS, rates=RATES, bursts=BURSTS):
        began = time.monotonic()
        played.append(loads.play(load, day, seed=SEED))
        _print_load(played[-1], time.monotonic() - began)
    bad = sample(images=IMAGES, seed=SEED, day="bad")
    slow_days = []
    for name, phase in loads.BURSTS[:BURSTS]:
        load = loads.Load(name=f"{name}, on a bad day", phase=phase)
        slow_days.append(loads.play(load, bad, seed=SEED))
        _print_load(slow_days[-1], 0.0)
    saturated = saturation.measure(SATURATING, day, seconds=SATURATING_SECONDS, seed=SEED)
    print(f"\n{'a second':>8}  {'stack':<9}{'by arithmetic':<62}by simulation")
    for row in saturated:
        _print_saturation(row)
    rows += [*played, *slow_days, *saturated]
    goals = loads.goals_of(played)
    late = sum(sum(row["late"].values()) for row in slow_days)
    goals.append(Goal(name="images of bursts that were late on a bad day", value=late, limit=0))
    for name, measure in OTHERS.items():
        rows_of_part, held = measure(SEED)
        rows += [{"part": name, **row} for row in rows_of_part]
        goals += held
    write_report("scale", seed=SEED, rows=rows, goals=goals, folder=FOLDER)
    return 1 if any(row["lost"] for row in (*played, *slow_days)) else 0


def _print_load(row: Mapping[str, Any], seconds: float) -> None:
    retry_after = row["retry_after"]
    ratio = (
        f"{retry_after['median']:.2f} ({retry_after['p5']:.2f} to {retry_after['p95']:.2f})"
        if "median" in retry_after
        else "-"
    )
    longest = " / ".join(f"{seconds:g}" for seconds in row["longest_seconds"].values())
    print(
        f"{row['load']:<40}{row['stack']:<16}{row['uploads']:>10,}{row['answers'].get('accepted', 0):>10,}"
        f"{sum(row['late'].values()):>7,}{longest:>16}  {ratio}  [{seconds:.0f} s]",
        flush=True,
    )


def _print_saturation(row: Mapping[str, Any]) -> None:
    arithmetic = f"{row['by_arithmetic'] or 'nothing; first ' + next(iter(row['limits']))} at {row['at']:,.0f}"
    simulation = (
        "nothing" if row["by_simulation"] is None else f"{row['by_simulation']}, after {row['after_seconds']} s"
    )
    print(f"{row['per_second']:>8,.0f}  {row['stack']:<9}{arithmetic:<62}{simulation}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
