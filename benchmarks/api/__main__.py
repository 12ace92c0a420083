"""The latency of POST /images, split into our own time, the SDK's and the wait for AWS.

    python -m benchmarks.api [--base COMMIT] [--requests 500]

The handler of submit_image runs warm in a separate process, with the deployed function's environment, against the
embedded stack. Our own time is what remains without the SDK's calls and without parsing the event, which on AWS the
runtime client does before the handler begins. Its limit applies to processor time, because the embedded stack uses the
same machine; the wall-clock time is shown next to it. The wait is the embedded stack's and says nothing about AWS:
there it is the time that S3, DynamoDB and SQS take in the region. The lanes are paused, so that no worker develops the
uploads meanwhile: on AWS other machines do that. With `--base`, an earlier commit's handler is measured in turns with
this one, and the goal is the ratio of our own processor time. Prints a table and writes build/reports/api.json.
"""

from __future__ import annotations

import argparse
import base64
import io
import json
import os
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

from PIL import Image

from benchmarks.earlier import environment_of, tree_of
from benchmarks.forms import FOLDER, by_form
from benchmarks.stage import stack_of
from darkroom.domain.kernel.tenants import MAX_BURST, MAX_REQUESTS_PER_SECOND, Allowance, Caller, Tier, context_of
from darkroom_cli.local.project import PROJECT
from local_aws import environment
from local_aws.paths import State
from local_aws.project import give
from repository.report import ROOT, Goal, write_report
from tests.support.running.stack import Stack

STATE = ROOT / "build" / "bench-api" / "stack"
EVENT = ROOT / "events" / "submit_image.json"

OWN_P99_LIMIT_MILLISECONDS = 10.0
MOST_OF_BASE = 1.05
"""The most of an earlier commit's own processor time that an upload may take: the median over the sizes."""

TURNS = 4
"""How often the two commits take turns, because a machine's speed varies within minutes."""

WARM = by_form(short=1, usual=50)
SIZES = (30_000, 300_000, 1_000_000, 4_000_000)
"""File sizes in bytes: an avatar, a website's picture, a phone's photo, and the largest that fits into a request."""

UPLOADER = Caller(
    tenant_id="bench",
    tier=Tier.PAID,
    allowance=Allowance(requests_per_second=MAX_REQUESTS_PER_SECOND, burst=MAX_BURST),
    key_id="bench",
)
"""A tenant whose allowance is above what this sends."""

PARTS = ("own_cpu", "own", "reading", "sdk", "waiting", "total")


def photo(size: int) -> bytes:
    """A JPEG of about that size: noise, whose size in bytes grows with its area."""
    width = max(16, round((size / 1.1) ** 0.5))
    pixels = Image.frombytes("L", (width, width), os.urandom(width * width))
    file = io.BytesIO()
    pixels.save(file, "JPEG", quality=92)
    return file.getvalue()


def events(size: int, count: int) -> list[str]:
    """Uploads of one photo, each a new image, as the gateway passes them on."""
    event = json.loads(EVENT.read_text())
    body = photo(size)
    event["headers"].pop("idempotency-key")
    event["headers"]["content-length"] = str(len(body))
    event["requestContext"]["authorizer"] = {"lambda": context_of(UPLOADER)}
    event["body"] = base64.b64encode(body).decode()
    return [json.dumps(event)] * count


@contextmanager
def lanes_paused(stack: Stack) -> Iterator[None]:
    """Workers take no messages from the lanes' queues."""
    client = stack.client("lambda")
    mappings = client.list_event_source_mappings(FunctionName=stack.physical_id("TranscodeImageFunction"))
    for is_enabled in (False, True):
        for mapping in mappings["EventSourceMappings"]:
            client.update_event_source_mapping(UUID=mapping["UUID"], Enabled=is_enabled)
        if not is_enabled:
            yield


def deployed_environment(stack: Stack, function: str) -> dict[str, str]:
    """The deployed function's environment, and the way to the stack."""
    name = stack.physical_id(function)
    configuration = stack.client("lambda").get_function_configuration(FunctionName=name)
    return environment.child_environment(
        State(folder=stack.state),
        # The paused lane fills up, but must neither refuse uploads nor be checked as one that may have to.
        **configuration["Environment"]["Variables"] | {"ACCESS": "keys", "FAST_CONCURRENCY": "1000"},
        AWS_LAMBDA_FUNCTION_NAME=name,
    )


def measured(stack: Stack, size: int, requests: int, *, tree: Path = ROOT) -> list[dict[str, Any]]:
    """Each request's parts, in milliseconds, by the handler of that tree; the lane is empty at first."""
    stack.client("sqs").purge_queue(QueueUrl=stack.physical_id("FastQueue"))
    job = {"warm": WARM, "events": events(size, WARM + requests)}
    done = subprocess.run(
        [tree / ".darkroom" / "venvs" / "dev" / "bin" / "python", "-m", "benchmarks.api.probe", "submit_image"],
        cwd=tree,
        env=deployed_environment(stack, "SubmitImageFunction") | {"PYTHONPATH": environment_of(tree)["PYTHONPATH"]},
        input=json.dumps(job),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(f"the handler did not run:\n{done.stderr[-4000:]}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def in_turns(stack: Stack, size: int, requests: int, trees: Mapping[str, Path]) -> dict[str, list[dict[str, Any]]]:
    """The requests of each tree; several trees take turns."""
    turns = TURNS if len(trees) > 1 else 1
    measurements: dict[str, list[dict[str, Any]]] = {name: [] for name in trees}
    for _ in range(turns):
        for name, tree in trees.items():
            measurements[name] += measured(stack, size, requests // turns, tree=tree)
    return measurements


def own_work(rows: Sequence[Mapping[str, Any]]) -> float:
    """Our own processor time for a usual request, in milliseconds."""
    return quantile([row["own_cpu"] for row in rows], 0.5)


def quantile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least that share of the values does not exceed (nearest rank)."""
    ordered = sorted(values)
    return ordered[max(0, -(-round(share * 100) * len(ordered) // 100) - 1)]


def summary(size: int, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The row of one size: p50 and p99 of each part, how often each call was made, and its p50."""
    calls: dict[str, list[float]] = defaultdict(list)
    for row in rows:
        for name, took in row["calls"]:
            calls[name].append(took)
    return {
        "bytes": size,
        "requests": len(rows),
        "statuses": dict(Counter(str(row["status"]) for row in rows)),
        **{f"{part}_p{round(100 * share)}_ms": quantile([row[part] for row in rows], share)
           for part in PARTS for share in (0.5, 0.99)},
        "calls": {
            name: {"each_request": len(took) / len(rows), "p50_ms": quantile(took, 0.5)}
            for name, took in sorted(calls.items())
        },
    }  # fmt: skip


def show(rows: Sequence[Mapping[str, Any]]) -> None:
    """The table of all sizes."""
    print(f"{'POST /images, ms':<20}" + "".join(f"{part:>18}" for part in PARTS))
    print(f"{'bytes':<20}" + f"{'p50':>10}{'p99':>8}" * len(PARTS))
    for row in rows:
        cells = (f"{row[f'{part}_p50_ms']:>10.2f}{row[f'{part}_p99_ms']:>8.2f}" for part in PARTS)
        print(f"{row['bytes']:<20,}" + "".join(cells))
    print(
        "\nown_cpu, own: ours, by the processor's time and the wall's; reading: the event's JSON; sdk: botocore's work;"
    )
    print("waiting: for the embedded stack")
    for name, call in rows[0]["calls"].items():
        print(f"{name:<24}{call['each_request']:>6.2f} a request, {call['p50_ms']:>7.2f} ms p50, sdk and wait")


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures, prints and writes the report; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.api", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--base", metavar="COMMIT", help="an earlier commit to compare with")
    parser.add_argument("--requests", type=int, default=by_form(short=3, usual=500, long=2000))
    options = parser.parse_args(arguments)
    give(PROJECT)
    trees = {"now": ROOT} | ({"base": tree_of(options.base)} if options.base else {})
    with stack_of(STATE) as stack, lanes_paused(stack):
        measurements = {size: in_turns(stack, size, options.requests, trees) for size in SIZES}
    rows = [summary(size, measurements[size]["now"]) for size in SIZES]
    show(rows)
    refused = sum(count for row in rows for status, count in row["statuses"].items() if status != "202")
    goals = [
        *(
            Goal(
                name=f"p99 of our own time for {row['bytes']:,} bytes, ms",
                value=row["own_cpu_p99_ms"],
                limit=OWN_P99_LIMIT_MILLISECONDS,
            )
            for row in rows
        ),
        Goal(name="uploads that were not accepted", value=refused, limit=0),
    ]
    if options.base:
        ratios = {size: own_work(measurements[size]["now"]) / own_work(measurements[size]["base"]) for size in SIZES}
        listed = ", ".join(f"{size:,} bytes {ratio:.3f}" for size, ratio in ratios.items())
        print(f"our own time, of the earlier commit's: {listed}")
        name = "our own time, of the earlier commit's, median over the sizes"
        goals.append(Goal(name=name, value=median(ratios.values()), limit=MOST_OF_BASE))
    write_report("api", seed=None, rows=rows, goals=goals, folder=FOLDER)
    return 1 if refused else 0


if __name__ == "__main__":
    sys.exit(main())
