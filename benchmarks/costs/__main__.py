"""A month's bill, what an image calls, writes and logs, and the bill of other ways to make the same variants.

    make bench-costs

Sends photos to the local stack with the API key of one tenant, reads what its functions logged of them, and plays
others by the real operations in virtual time for the write units; compares that with what `./darkroom capacity` says of
an image; and prices three loads with it, beside other ways. Prints tables and writes build/reports/costs.json.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from benchmarks.calls.__main__ import STATE, counted
from benchmarks.costs.counted import FUNCTIONS, TYPICAL, Logged, difference, logged, stated
from benchmarks.costs.others import WAYS, Load
from benchmarks.forms import FOLDER, by_form
from benchmarks.local.__main__ import CONCURRENCY, photo
from benchmarks.local.client import rate
from benchmarks.scale.sample import sample
from benchmarks.stage import stack_of
from checks.idle_cost import LIMIT_DOLLARS, total_dollars
from darkroom_cli.capacity.bill import EVENTS, METRICS_OF_TRAFFIC, Kept, bill, formula_dollars
from darkroom_cli.capacity.plan import STATUS_READS
from repository.report import Goal, write_report
from tests.support.running.stack import Stack

CHOICES = {"default": Kept(), "Tracing=Active InvocationLogs=all": Kept(traced=True, logged=True)}
LOADS, MONTHS = (1_000, 100_000, 10_000_000), (1, 12)

FORMULA_DOLLARS = 46.0
"""What a million uploads and their workers may cost by the formula."""

METRICS_OF_BUSY_LANES = 4
"""Metrics that are not seen here: two of the other lane, and each lane's drain, which is reported after ten seconds of
work."""

EVENTS_SECONDS = 30.0
"""How long the last event of a photo may take to its consumers."""

_SEED = 1

PHOTOS = by_form(short=16, usual=100)


def of_stack(images: int) -> tuple[Mapping[str, Logged], Counter[str]]:
    """What so many photos made each function log, and what its functions called for them."""
    with stack_of(STATE, "--access", "keys") as stack:
        key = stack.key_of_tenant("costs", tier="free", requests_per_second=1000, burst=5000)
        rate(stack.api_url, photo(640, 480), count=CONCURRENCY, concurrency=CONCURRENCY, api_key=key)  # processes begin
        before = _settled(stack, 0)
        calls = counted(stack, "SubmitImageLogs") + counted(stack, "TranscodeImageLogs")
        rate(stack.api_url, photo(640, 480), count=images, concurrency=CONCURRENCY, api_key=key)
        after = _settled(stack, before["publish_events"].lines["event published"] + EVENTS * images)
        calls = counted(stack, "SubmitImageLogs") + counted(stack, "TranscodeImageLogs") - calls
        return {name: difference(before[name], after[name]) for name in FUNCTIONS}, calls


def _settled(stack: Stack, events: int) -> Mapping[str, Logged]:
    """The logs, as soon as so many events are published and nothing is added."""
    deadline = time.monotonic() + EVENTS_SECONDS
    before: Mapping[str, Logged] = {}
    while True:
        logs = {name: logged(stack.log_messages(group)) for name, group in FUNCTIONS.items()}
        if logs == before and logs["publish_events"].lines["event published"] >= events:
            return logs
        if time.monotonic() > deadline:
            raise RuntimeError("the last events were not published in time")
        before = logs
        time.sleep(by_form(short=1.0, usual=3.0))


def of_image(images: int) -> Iterator[dict[str, Any]]:
    """What one image takes, as it is counted, beside what `capacity` says."""
    logs, calls = of_stack(images)
    played = sample(images=by_form(short=2, usual=50), seed=_SEED, day="usual")
    counted_values = {
        "write units of an upload": played.upload_writes,
        "write units of a worker": sum(played.writes.values()) - played.upload_writes,
        "S3 PUTs": calls["s3:PutObject"] / images,
        "S3 GETs": calls["s3:GetObject"] / images,
        "messages sent": calls["sqs:SendMessage"] / images,
        "log KB of an upload": logs["submit_image"].sampled / images,
        "log KB of a worker": logs["transcode_image"].sampled / images,
        "log KB of a look": logs["read_image"].sampled / max(1, logs["read_image"].runs),
    }
    says = stated()
    for name, value in counted_values.items():
        yield {"part": "image", "of": name, "counted": round(value, 3), "capacity": round(says[name], 3)}
    metrics = set[tuple[str, ...]]().union(*(log.metrics for log in logs.values()))
    yield {
        "part": "image",
        "of": "metrics",
        "counted": len(metrics) + METRICS_OF_BUSY_LANES,
        "capacity": METRICS_OF_TRAFFIC,
    }


def bills() -> Iterator[dict[str, Any]]:
    """Each line of each load's bill, and the whole, with all that may be asked for and without."""
    for images in LOADS:
        for month in MONTHS:
            for name, kept in CHOICES.items():
                load = Load(images=images, month=month, kept=kept)
                lines = bill(load.demand, kept, month=month)
                yield {
                    "part": "bill",
                    "images": images,
                    "month": month,
                    "parameters": name,
                    "dollars": round(sum(line.dollars for line in lines), 2),
                    "lines": {line.name: round(line.dollars, 4) for line in lines},
                }


def comparison() -> Iterator[dict[str, Any]]:
    """Each way's bill of each load, views included."""
    for name, dollars in WAYS.items():
        for month in MONTHS:
            costs = {str(images): round(dollars(Load(images=images, month=month, kept=Kept())), 2) for images in LOADS}
            yield {"part": "comparison", "way": name, "month": month, "dollars": costs}


def formula() -> dict[str, Any]:
    """A million uploads and their workers."""
    each = formula_dollars(TYPICAL)
    return {
        "part": "formula",
        "dollars": round(sum(each.values()), 2),
        "lines": {name: round(dollars, 3) for name, dollars in each.items()},
    }


def show(rows: Sequence[Mapping[str, Any]]) -> None:
    """Prints the tables."""
    for row in rows:
        match row:
            case {"part": "image"}:
                print(f"{row['of']:<28}{row['counted']:>9g} counted{row['capacity']:>9g} by capacity")
            case {"part": "formula"}:
                print(f"\na million uploads and their workers: ${row['dollars']:.2f}")
                for name, dollars in row["lines"].items():
                    print(f"  {name:<28}{dollars:>9.3f}")
            case {"part": "bill", "parameters": "default", "month": 1}:
                print(f"\n{row['images']:,} images a month: ${row['dollars']:,.2f} in the first")
                for name, dollars in row["lines"].items():
                    print(f"  {name:<60}{dollars:>12,.2f}")
            case {"part": "bill"}:
                print(f"  month {row['month']}, {row['parameters']}: ${row['dollars']:,.2f}")
            case {"part": "comparison"}:
                dollars = "".join(f"{amount:>14,.2f}" for amount in row["dollars"].values())
                print(f"{row['way']:<40}month {row['month']:>2}{dollars}")


def goals(rows: Sequence[Mapping[str, Any]]) -> list[Goal]:
    """What `capacity` says is what is counted, and what may be spent."""
    apart = [abs(row["counted"] - row["capacity"]) / row["capacity"] for row in rows if row["part"] == "image"]
    (million,) = [row["dollars"] for row in rows if row["part"] == "formula"]
    return [
        Goal(name="capacity is off by this share of a count", value=round(max(apart), 3), limit=0.1),
        Goal(name="a million uploads and their workers ($)", value=million, limit=FORMULA_DOLLARS),
        Goal(name="an idle stack ($)", value=round(total_dollars(), 2), limit=LIMIT_DOLLARS),
    ]


def main() -> int:
    """Measures, prints and writes the report; returns the exit status."""
    rows = [*of_image(PHOTOS), formula(), *bills(), *comparison()]
    show(rows)
    print(f"\nlooks at a status: {STATUS_READS} for each image")
    write_report("costs", seed=_SEED, rows=rows, goals=goals(rows), folder=FOLDER)
    return 0


if __name__ == "__main__":
    sys.exit(main())
