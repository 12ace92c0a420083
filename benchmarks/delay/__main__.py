"""The cost of letting images wait: the delay plane's requests, counted, next to other ways to wait.

    make bench-delay                                (LONG=1: a million images of every load)

Plays loads through the real operations over counting fakes, and prices their requests. Above the largest load that is
played, a million images cost at most as much, because the more scattered images there are, the more share an object.
Prints objects, executions and transitions per million, the cost of each load, and the costs of other ways. Writes
build/reports/delay.json. Exits with 1 if an image was not released.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.delay.plane import LOADS, Load, Plane
from benchmarks.delay.ways import WAYS
from benchmarks.forms import FOLDER, IS_LONG, by_form
from darkroom_cli.capacity.prices import PER_MILLION, cost
from repository.report import Goal, write_report

SIZES = (1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000)
MOST = by_form(short=1000, usual=None)
SEED = 1
CEILING_DOLLARS = 0.50
"""For a million images aligned to one instant 30 days ahead."""


def counted(load: Load, images: int, seed: int) -> Mapping[str, int]:
    """The requests of a load of that size; above the largest that is played, extrapolated from that one."""
    started = time.monotonic()
    counts = Plane(load=load, images=images, seed=seed).run()
    print(f"{load.name}, {images:,} images: played in {time.monotonic() - started:.0f} s", flush=True)
    return counts


def priced(counts: Mapping[str, float]) -> Counter[str]:
    """The requests that have a price."""
    return Counter({name: counts.get(name, 0) for name in PER_MILLION})


def own_message(images: int) -> float:
    """The cost of the producers' own messages, which images that do not wait need too."""
    return cost(Counter({"SQS requests": images}))


def main() -> int:
    """Plays the loads, prints the tables and writes the report; returns the exit status."""
    rows: list[dict[str, Any]] = []
    lost = 0
    costs: dict[tuple[str, int], float] = {}
    for load in LOADS:
        most = MOST or (1_000_000 if load.aligned or IS_LONG else 100_000)
        largest: Mapping[str, float] = {}
        for size in SIZES:
            if size <= most:
                largest = counted(load, size, SEED)
                lost += size - round(largest["released"])
                played = size
            counts = {name: count * size / played for name, count in largest.items()}
            costs[load.name, size] = cost(priced(counts)) - own_message(size)
            rows.append(
                {"load": load.name, "images": size, "played": played, "seed": SEED}
                | {name.replace(" ", "_"): round(count) for name, count in counts.items()}
                | {"dollars": costs[load.name, size], "dollars_with_own_messages": cost(priced(counts))}
            )
    _print_requests(rows)
    _print_costs(costs)
    aligned = costs[LOADS[0].name, 1_000_000]
    goals = [
        Goal(name="a million images 30 days, aligned ($)", value=aligned, limit=CEILING_DOLLARS),
        Goal(name="images that were not released", value=lost, limit=0),
    ]
    write_report("delay", seed=SEED, rows=rows, goals=goals, folder=FOLDER)
    return 1 if lost else 0


def _print_requests(rows: Sequence[Mapping[str, Any]]) -> None:
    print("\nA million images, beside their own message:")
    for row in rows:
        if row["images"] == 1_000_000:
            requests = ", ".join(
                f"{row[name.replace(' ', '_')]:,} {name}"
                for name in ("objects", "executions", "Step Functions transitions", "held again", "SQS requests")
                if name.replace(" ", "_") in row
            )
            price = f"${row['dollars']:.2f}, with their own messages ${row['dollars_with_own_messages']:.2f}"
            print(f"  {row['load']} (played with {row['played']:,}): {requests}; {price}")


def _print_costs(costs: Mapping[tuple[str, int], float]) -> None:
    print("\nDollars a million images, beside their own message (- : cannot be done):")
    names = ["Darkroom", *(way.name for way in WAYS)]
    print(f"{'':22}{'images':>13}" + "".join(f"{name:>25}" for name in names) + "  cheapest")
    for load in LOADS:
        for size in SIZES:
            figures: list[float | None] = [costs[load.name, size] * 1_000_000 / size]
            for way in WAYS:
                dollars = cost(way.requests(load.seconds)) * 1_000_000 - own_message(1_000_000)
                figures.append(None if way.limit(size, load.days * 24 * 3600) else dollars)
            best = min((figure, name) for figure, name in zip(figures, names, strict=True) if figure is not None)[1]
            columns = "".join(f"{'-' if figure is None else f'{figure:.2f}':>25}" for figure in figures)
            print(f"{load.name:22}{size:>13,}{columns}  {best}")


if __name__ == "__main__":
    sys.exit(main())
