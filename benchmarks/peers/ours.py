"""Darkroom's local stack at the peers' job: the same photo, two workers, and SIGKILL to its workers.

The embedded AWS is no AWS: what is said of it is what is lost or made twice, when an image comes back, and the
processor's time of the worker's process.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from statistics import median
from typing import Any

from benchmarks.api.__main__ import lanes_paused, measured, quantile
from benchmarks.forms import by_form
from benchmarks.local.client import Client
from benchmarks.peers.measures import DRAINED, KILLED_JOBS, KILLS
from benchmarks.peers.peers import PHOTO
from benchmarks.stage import unlimited_key
from darkroom.domain.images.image import Image, Status
from tests.chaos.machinery import Clock, struck
from tests.chaos.plan import Strike
from tests.support.running.conditions import TRANSCODER
from tests.support.running.kills import ticks
from tests.support.running.outcome import ends_of
from tests.support.running.stack import Stack

POSTS = by_form(short=2, usual=100)
WORKERS = 2
"""AWS scales a queue's workers to two at least."""

_VARIANTS = 4
_AMID = Strike(function=TRANSCODER, call=1, operation="PutObject")
_AFTER_THE_WORK = Strike(function=TRANSCODER, call=_VARIANTS, operation="PutObject", after=True)
"""Where a worker dies: before its first variant is written, and when its last one is and the row does not say so."""

_PATIENCE_SECONDS, _LOOK_SECONDS = 300, 0.2
_STEP_SECONDS = by_form(short=180, usual=30)
_TICKS_PER_SECOND = 100


def posted(stack: Stack) -> dict[str, Any]:
    """The milliseconds of POST /images with a body of the photo's size: all, of which the embedded stack's are no
    measure for AWS, and our own processor's time. It leaves images behind."""
    with lanes_paused(stack):
        rows = measured(stack, PHOTO.stat().st_size, POSTS)
    own, all_of_it = [row["own_cpu"] for row in rows], [row["total"] for row in rows]
    return {"peer": "Darkroom, POST /images", "fsync": "S3, DynamoDB, SQS", "own_p50_ms": quantile(own, 0.5),
            "own_p99_ms": quantile(own, 0.99), "p50_ms": quantile(all_of_it, 0.5),
            "p99_ms": quantile(all_of_it, 0.99)}  # fmt: skip


def drained(stack: Stack) -> dict[str, Any]:
    """As the peers' of that name; the processor's time is that of the worker's processes, its calls to AWS included."""
    _finish(stack, _send(stack, by_form(short=1, usual=2 * WORKERS)))
    with lanes_paused(stack):
        ids = _send(stack, DRAINED)
        before = _busy_ticks(stack)
    rows = _finish(stack, ids)
    spent = _busy_ticks(stack) - before
    begun = min(row.attempts[0].started_at for row in rows)
    ended = max(row.completed_at or 0 for row in rows)
    return {"peer": "Darkroom, local stack", "cores": WORKERS, "per_second": DRAINED / (ended - begun) * 1000,
            "cpu_ms": 1000 * spent / _TICKS_PER_SECOND / DRAINED,
            "bytes": sum(variant.size_bytes for variant in rows[0].variants)}  # fmt: skip


def workers_killed(stack: Stack) -> dict[str, Any]:
    """As the peers' of that name: the first images' workers are killed, in turns at the two places. The stack's clock
    is moved on while nothing happens, so the times are those of a stack that nobody hurries."""
    clock = Clock(stack)
    with struck(stack, stack.state / "strikes") as strikes:
        with lanes_paused(stack):
            ids = _send(stack, KILLED_JOBS)
            for number, image_id in enumerate(ids[:KILLS]):
                strikes.lay(_AFTER_THE_WORK if number % 2 else _AMID, image_id)
        rows = _finish(stack, ids, on_rest=lambda: clock.go_to(clock.now() + _STEP_SECONDS * 1000))
        deaths = len(strikes.deaths())
    ends = ends_of(stack)
    again = [row for row in rows if len(row.attempts) > 1]
    recovered = [((row.completed_at or 0) - row.attempts[0].started_at) / 1000 for row in again]
    return {"peer": "Darkroom, local stack", "kills": deaths, "jobs": len(ids),
            "lost": sum(row.status is not Status.DONE for row in rows) + len(ids) - len(rows),
            "made_twice": sum(row.image_id in ids[1:KILLS:2] for row in again),
            "ended_twice": sum(sum(ends.get(image_id, {}).values()) > 1 for image_id in ids),
            "recovered_s_p50": median(recovered) if recovered else None,
            "recovered_s_worst": max(recovered, default=None)}  # fmt: skip


@contextmanager
def one_by_one(stack: Stack) -> Iterator[None]:
    """Two workers a lane, each of which takes one image at a time, as the peers do."""
    client, name = stack.client("lambda"), stack.physical_id(TRANSCODER)
    mappings = client.list_event_source_mappings(FunctionName=name)["EventSourceMappings"]
    for mapping in mappings:
        one = {"BatchSize": 1, "ScalingConfig": {"MaximumConcurrency": WORKERS}}
        client.update_event_source_mapping(UUID=mapping["UUID"], **one)
    yield
    for mapping in mappings:
        shipped = {field: mapping.get(field, {}) for field in ("BatchSize", "ScalingConfig")}
        client.update_event_source_mapping(UUID=mapping["UUID"], **shipped)


def _send(stack: Stack, count: int) -> list[str]:
    client, body = Client(stack.api_url, api_key=unlimited_key(stack, "peers")), PHOTO.read_bytes()
    return [client.send(body).image_id for _ in range(count)]


def _finish(stack: Stack, ids: Sequence[str], on_rest: Callable[[], None] | None = None) -> list[Image]:
    """Waits until these images have ended, or for five minutes, and calls `on_rest` while nobody works; their rows."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while True:
        rows = [row for image_id in ids if (row := stack.row(image_id))]
        if all(row.status.is_terminal for row in rows) or time.monotonic() > deadline:
            return rows
        time.sleep(_LOOK_SECONDS)
        if on_rest is not None and stack.messages("SlowQueueUrl", "") == 0 and _is_resting(stack):
            on_rest()


def _is_resting(stack: Stack) -> bool:
    before = ticks(stack.state, frozenset({TRANSCODER}))
    time.sleep(_LOOK_SECONDS * 5)
    return before is not None and before == ticks(stack.state, frozenset({TRANSCODER}))


def _busy_ticks(stack: Stack) -> int:
    while (spent := ticks(stack.state, frozenset({TRANSCODER}))) is None:
        time.sleep(_LOOK_SECONDS)
    return spent
