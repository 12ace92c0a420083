"""The calls to AWS and their list prices: for an upload, a look at its status, its worker, and an idle sweep.

    make bench-calls

Sends small photos to the local stack with the API key of one tenant, one after another and then eight at once, and
reads the last log line of each invocation (`timing`), in which every function counts its calls. The dollars are those
of `./darkroom capacity`, for a million of each. Prints a table and writes build/reports/calls.json.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from benchmarks.forms import FOLDER, by_form
from benchmarks.local.__main__ import CONCURRENCY, photo
from benchmarks.local.client import rate
from benchmarks.stage import stack_of
from darkroom_cli.capacity.plan import Demand, requests_of_status, requests_of_upload, requests_of_worker
from darkroom_cli.capacity.prices import cost
from repository.report import ROOT, Goal, write_report
from tests.support.running.stack import Stack

STATE = ROOT / "build" / "bench-calls" / "stack"

MOST_CALLS = {"one after another": 10.25, "eight at once": 10.35}
"""The most calls for an accepted image that is developed into four variants, on average. Each process that accepts
reads now and then what the tenant stores, and eight of them look for themselves."""

TYPICAL = Demand(per_second=10, seconds=0.5)
"""Half a second of a worker with 1769 MB for each image."""

LOGS = {"POST /images": "SubmitImageLogs", "transcode": "TranscodeImageLogs", "a status": "ReadImageLogs"}
SWEEPS = by_form(short=1, usual=5)
_SETTLE_SECONDS = by_form(short=1.0, usual=2.0)

SWEEP_UNITS = {
    "dynamodb:Query": ("DynamoDB read units", 0.5),
    "sqs:GetQueueAttributes": ("SQS requests", 1),
    "sns:ListSubscriptionsByTopic": ("SNS requests", 1),
}
"""What a sweep's calls are billed as."""

_RUNS = "runs"

PHOTOS = by_form(short=16, usual=600)
"""How many are sent each way."""


def counted(stack: Stack, logs: str) -> Counter[str]:
    """How often the function ran until now, and all of its calls by operation."""
    calls: Counter[str] = Counter()
    for line in stack.log_lines(logs):
        if line.get("message") == "timing":
            calls.update(
                {_RUNS: 1}
                | {operation: operation_calls["count"] for operation, operation_calls in line["aws_calls"].items()}
            )
    return calls


def row(name: str, calls: Counter[str], *, runs: int) -> dict[str, Any]:
    """What one of them takes on average."""
    each = {operation: round(count / runs, 3) for operation, count in sorted(calls.items()) if operation != _RUNS}
    return {"of": name, "calls": round(sum(each.values()), 2), "dollars_a_million": priced(name, each)} | each


def priced(name: str, calls: Mapping[str, float]) -> float:
    """Dollars for a million of them."""
    parts: dict[str, Callable[[], Mapping[str, float]]] = {
        "POST /images": requests_of_upload,
        "a status": requests_of_status,
        "transcode": lambda: requests_of_worker(TYPICAL),
    }
    if name in parts:
        return cost(parts[name]()) * 1_000_000
    billed: dict[str, float] = {}
    for operation, count in calls.items():
        requests, units = SWEEP_UNITS[operation]
        billed[requests] = billed.get(requests, 0) + units * count
    return cost(billed) * 1_000_000


def main() -> int:
    """Measures, prints and writes the report; returns the exit status."""
    ways = dict(zip(MOST_CALLS, (1, CONCURRENCY), strict=True))
    with stack_of(STATE, "--access", "keys") as stack:
        key = stack.key_of_tenant("busy", tier="free", requests_per_second=1000, burst=5000)
        swept = counted(stack, "SweepDueImagesLogs")
        for _ in range(SWEEPS):
            stack.sweep()
        time.sleep(_SETTLE_SECONDS)
        # Before the photos, so that there is nothing to sweep.
        sweeps = counted(stack, "SweepDueImagesLogs") - swept
        del sweeps["dynamodb:Scan"]  # of the pauses: one a minute, of which these sweeps remember a part
        rows = [{"way": "idle"} | row("an idle sweep", sweeps, runs=sweeps[_RUNS])]
        for way, concurrency in ways.items():
            before = {name: counted(stack, logs) for name, logs in LOGS.items()}
            rate(stack.api_url, photo(640, 480), count=PHOTOS, concurrency=concurrency, api_key=key)
            time.sleep(_SETTLE_SECONDS)
            for name, logs in LOGS.items():
                calls = counted(stack, logs) - before[name]
                # An invocation of the worker may have several images.
                runs = PHOTOS if name == "transcode" else calls[_RUNS]
                rows.append({"way": way} | row(name, calls, runs=runs))
    for counted_row in rows:
        listed = ", ".join(f"{operation} {count:g}" for operation, count in list(counted_row.items())[4:])
        print(
            f"{counted_row['way']:<18}{counted_row['of']:<16}{counted_row['calls']:>7.2f} calls"
            f"{counted_row['dollars_a_million']:>9.2f} $ a million   {listed}"
        )
    goals = []
    for way in ways:
        image = sum(row["calls"] for row in rows if row["way"] == way and row["of"] in ("POST /images", "transcode"))
        print(f"an accepted and developed image, {way}: {image:.2f} calls")
        name = f"calls for an accepted and developed image, {way}"
        goals.append(Goal(name=name, value=round(image, 2), limit=MOST_CALLS[way]))
    write_report("calls", seed=None, rows=rows, goals=goals, folder=FOLDER)
    return 0


if __name__ == "__main__":
    sys.exit(main())
