"""Runs a function's handler warm in this process, as Lambda's runtime client does, and times each request's parts.

    python -m benchmarks.api.probe FUNCTION < job.json

The job is a JSON document: `events`, JSON texts of events that are each handled once, and `warm`, the number of them
that come before the measurement. Writes one JSON line for each of the others: `status`, `total`, `reading`, `sdk`,
`waiting`,
`own` and `own_cpu`, in milliseconds, and `calls`, the milliseconds of each call to AWS by its name.

The times are wall-clock times between two marks in botocore: its client's call and, within it, the HTTP request. The
time between them is the SDK's work (parameters, signature, parsing the answer), the time outside is our own. `own_cpu`
is the processor time of our own part: what another process on the machine does only lengthens the wall-clock time.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import botocore.client
import botocore.httpsession

ROOT = Path(__file__).parents[2]

REST_SECONDS = 0.02
"""The pause between two requests: what the embedded stack does after its answer uses this machine's processors too."""


@dataclass
class Marks:
    """The time that the calls of one request have taken so far, in seconds."""

    calling: float = 0.0
    calling_cpu: float = 0.0
    waiting: float = 0.0
    calls: list[tuple[str, float]] = field(default_factory=list)


marks = Marks()


class Context:
    """A Lambda context with the attributes that the handlers read."""

    function_name = "bench"
    memory_limit_in_mb = 512
    aws_request_id = "1b7b0f0e-0000-4000-8000-000000000001"
    invoked_function_arn = "arn:aws:lambda:us-east-1:123456789012:function:bench"

    @staticmethod
    def get_remaining_time_in_millis() -> int:
        """The function's whole timeout."""
        return 29_000


def mark_calls() -> None:
    """Make botocore report to `marks` how long its calls take, and how long they wait for an answer."""
    client: Any = botocore.client.BaseClient
    session: Any = botocore.httpsession.URLLib3Session
    make_call, send = client._make_api_call, session.send

    def timed_call(self: Any, operation: str, parameters: Any) -> Any:
        started, started_cpu = time.perf_counter(), time.thread_time()
        try:
            return make_call(self, operation, parameters)
        finally:
            took = time.perf_counter() - started
            marks.calling += took
            marks.calling_cpu += time.thread_time() - started_cpu
            marks.calls.append((operation, took))

    def timed_send(self: Any, request: Any) -> Any:
        started = time.perf_counter()
        try:
            return send(self, request)
        finally:
            marks.waiting += time.perf_counter() - started

    client._make_api_call, session.send = timed_call, timed_send


def load(function: str) -> Any:
    """functions/<function>/app.py as Lambda imports it."""
    sys.path.insert(0, str(ROOT / "functions" / function))
    return importlib.import_module("app")


def handle(handler: Callable[[Any, Any], Any], text: str) -> dict[str, Any]:
    """One request: what the runtime client reads, and the handler's answer to it."""
    marks.calling, marks.calling_cpu, marks.waiting, marks.calls = 0.0, 0.0, 0.0, []
    started = time.perf_counter()
    event = json.loads(text)
    read, read_cpu = time.perf_counter(), time.thread_time()
    answer = handler(event, Context())
    ended, ended_cpu = time.perf_counter(), time.thread_time()
    return {
        "status": answer["statusCode"],
        "total": 1000 * (ended - started),
        "reading": 1000 * (read - started),
        "sdk": 1000 * (marks.calling - marks.waiting),
        "waiting": 1000 * marks.waiting,
        "own": 1000 * (ended - read - marks.calling),
        "own_cpu": 1000 * (ended_cpu - read_cpu - marks.calling_cpu),
        "calls": [(name, 1000 * took) for name, took in marks.calls],
    }


def main() -> int:
    """Handles the job's events; returns the exit status."""
    job = json.load(sys.stdin)
    out = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # the function's own log goes there
    mark_calls()
    app = load(sys.argv[1])
    for number, text in enumerate(job["events"]):
        time.sleep(REST_SECONDS)
        answer = handle(app.handler, text)
        if number >= job["warm"]:
            print(json.dumps(answer), file=out, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
