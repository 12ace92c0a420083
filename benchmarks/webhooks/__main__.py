"""Webhooks in virtual time: what bad receivers cost the others, what an outage loses, and dollars for a million.

    make bench-webhooks                                        (LONG=1: three loads)

Plays deliveries to fifty endpoints through the real operations, over the tests' stores as AWS has them: calls take
time, and the index of what is due is late. Only the queues and the pools of their functions are modelled. The load is
played with and without two endpoints that do not answer. Then 200 deliveries a second come for one healthy endpoint,
and others are slow, silent, or stop answering under that load. Then one endpoint is disabled for an hour. Then events
are published and brought to two consumers, at several rates. Prints tables and writes build/reports/webhooks.json.
Exits with 1 if something was lost or delivered twice.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.forms import FOLDER, by_form
from benchmarks.webhooks import fan_out, neighbours, one_endpoint, rest
from repository.report import Goal, write_report

SEED, SAMPLE, PER_SECOND = 1, 1000, 200.0
"""The deliveries of a load that every form plays, and how many of them come in a second."""

DELIVERIES = by_form(short=SAMPLE, usual=100_000)
"""Those of the load that is played twice."""


def main() -> int:
    """Plays everything, prints the tables and writes the report; returns the exit status."""
    runs, goals = neighbours.measure(
        seeds=range(SEED, SEED + by_form(short=1, usual=1, long=3)),
        deliveries=DELIVERIES,
        per_second=PER_SECOND,
    )
    rows: list[Mapping[str, Any]] = [run.row for run in runs]
    _print_neighbours(rows)
    # What the short form plays, so that a later one shows whether a delivery still takes what it took.
    sample = neighbours.play(seed=SEED, deliveries=SAMPLE, per_second=PER_SECOND, with_bad=True).row
    rows.append({**sample, "part": "sample"})
    alone, one_endpoint_goals = one_endpoint.measure(seed=SEED)
    _print_one_endpoint(alone)
    rested, rest_goals = rest.measure(seed=SEED)
    _print_rest(rested)
    fanned, fan_out_goals = fan_out.measure(seed=SEED)
    _print_fan_out(fanned)
    rows += [*alone, rested, *fanned]
    broken = sum(sum(row.get("broken", {}).values()) for row in rows)
    goals += [*one_endpoint_goals, *rest_goals, *fan_out_goals]
    goals.append(Goal(name="deliveries lost, or more on their way than may be", value=broken, limit=0))
    write_report("webhooks", seed=SEED, rows=rows, goals=goals, folder=FOLDER)
    return 1 if broken or any(row.get("sent_twice") for row in rows) else 0


def _print_neighbours(rows: Sequence[Mapping[str, Any]]) -> None:
    print(f"{'milliseconds of the 48 others':<42}{'p50':>8}{'p99':>8}{'worst':>8}")
    for row in rows:
        how = "with two that do not answer" if row["bad"] else "without them"
        for name, label in (("all", how), ("steady", f"{how}, no bursts")):
            figures = "".join(f"{row[f'{name}_{figure}']:>8,}" for figure in ("p50", "p99", "worst"))
            print(f"  {label:<40}{figures}")
    last = rows[-1]
    print(f"\nA million deliveries, without logs, at {last['per_second']:g} a second:")
    for name, dollars in last["dollars"].items():
        print(f"  {name:<26}{last['billed'][name]:>9,.3f} each  ${dollars:>6.2f}")
    print(f"  {'together':<40}${sum(last['dollars'].values()):>7.2f}")


def _print_one_endpoint(rows: Sequence[Mapping[str, Any]]) -> None:
    well, *bad, turned = rows
    print(
        f"\nOne healthy endpoint, {well['deliveries']:,} deliveries at 200 a second: p50 {well['p50']:,} ms, p99",
        end="",
    )
    print(f" {well['p99']:,} ms, worst {well['worst']:,} ms; {well['calls_each']} calls each")
    for row in bad:
        print(f"  {row['part']}: at most {row['most_in_flight']} on their way")
    print(f"  one that stops answering had {turned['most_in_flight_before']}, then {turned['most_in_flight']};", end="")
    figures = [turned[name] for name in ("others_p99_before", "others_p99", "others_worst")]
    print(" the others: p99 {:,} ms, in the next minute {:,} ms, worst {:,} ms".format(*figures))


def _print_rest(row: Mapping[str, Any]) -> None:
    print(f"\nDisabled for an hour: {row['waited']:,} waited, caught up after {row['caught_up_seconds']} s")


def _print_fan_out(rows: Sequence[Mapping[str, Any]]) -> None:
    print("\nPublishing a million events and bringing each to two consumers:")
    for row in rows:
        batches = ", ".join(f"{name} {size:g}" for name, size in row["batch"].items())
        parts = ", ".join(f"{name} {dollars:.2f}" for name, dollars in row["dollars"].items())
        print(f"  {row['per_second']:>5g} a second  ${row['dollars_a_million']:.2f} ({parts}); in batches of {batches}")


if __name__ == "__main__":
    sys.exit(main())
