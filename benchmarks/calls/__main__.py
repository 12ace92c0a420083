"""The calls to AWS and their list prices: for an upload, a look at its status, its worker, and an idle sweep.

    python -m benchmarks.calls [--images 200]

Sends small photos to the local stack, eight at once, with the API key of one tenant, and reads the last log line of
each invocation (`timing`), in which every function counts its calls. The dollars are those of `./darkroom capacity`,
for a million of each. Prints a table and writes build/reports/calls.json.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from benchmarks.local.__main__ import CONCURRENCY, photo
from benchmarks.local.client import rate
from checks.report import ROOT, Goal, write_report
from console.capacity.plan import Demand, requests_of_status, requests_of_upload, requests_of_worker
from console.capacity.prices import cost
from proof.running.serving import serving
from proof.running.stack import Stack

STATE = ROOT / "build" / "bench-calls" / "stack"

MOST_CALLS = 12.2
"""The most calls for an accepted image that is developed into four variants, on average."""

TYPICAL = Demand(per_second=10, seconds=0.5)
"""Half a second of a worker with 1769 MB for each image."""

LOGS = {
    "POST /images": "SubmitImageLogs",
    "a status": "ReadImageLogs",
    "transcode": "TranscodeImageLogs",
    "an idle sweep": "SweepDueImagesLogs",
}
SWEEPS = 5
_SETTLE_SECONDS = 2.0

_SWEEP_UNITS = {"dynamodb:Query": ("DynamoDB read units", 0.5), "sqs:GetQueueAttributes": ("SQS requests", 1)}
"""What a sweep's calls are billed as."""


def counted(stack: Stack, logs: str) -> tuple[int, Counter[str]]:
    """How often the function ran, and all of its calls by operation."""
    calls: Counter[str] = Counter()
    lines = [line for line in stack.log_lines(logs) if line.get("message") == "timing"]
    for line in lines:
        calls.update({operation: told["count"] for operation, told in line["aws_calls"].items()})
    return len(lines), calls


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
        requests, units = _SWEEP_UNITS[operation]
        billed[requests] = billed.get(requests, 0) + units * count
    return cost(billed) * 1_000_000


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures, prints and writes the report; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.calls", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--images", type=int, default=200, help="photos to send (200)")
    options = parser.parse_args(arguments)
    rows: list[dict[str, Any]] = []
    with serving(STATE, "--access", "keys") as stack:
        key = stack.key_of_tenant("busy", tier="free", requests_per_second=1000, burst=5000)
        for _ in range(SWEEPS):
            stack.sweep()
        time.sleep(_SETTLE_SECONDS)
        # Before the photos, so that there is nothing to sweep.
        sweeps = counted(stack, LOGS["an idle sweep"])
        rate(stack.api_url, photo(640, 480), count=options.images, concurrency=CONCURRENCY, api_key=key)
        time.sleep(_SETTLE_SECONDS)
        for name, logs in LOGS.items():
            runs, calls = sweeps if name == "an idle sweep" else counted(stack, logs)
            runs = options.images if name == "transcode" else runs  # an invocation may have several images
            each = {operation: round(count / runs, 3) for operation, count in sorted(calls.items())}
            rows.append(
                {"of": name, "calls": round(calls.total() / runs, 2), "dollars_a_million": priced(name, each)} | each
            )
    for row in rows:
        told = ", ".join(f"{operation} {count:g}" for operation, count in list(row.items())[3:])
        print(f"{row['of']:<16}{row['calls']:>7.2f} calls{row['dollars_a_million']:>9.2f} $ a million   {told}")
    image = sum(row["calls"] for row in rows if row["of"] in ("POST /images", "transcode"))
    print(f"an accepted and developed image: {image:.2f} calls")
    goal = Goal(name="calls for an accepted and developed image", value=image, limit=MOST_CALLS, at_least=False)
    write_report("calls", seed=None, rows=rows, goals=[goal])
    return 0


if __name__ == "__main__":
    sys.exit(main())
