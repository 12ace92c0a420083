"""A local stack that requires keys, with two workers per lane and tenants whose allowances the benchmark sets."""

from __future__ import annotations

import io
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from PIL import Image as Picture

from benchmarks.forms import by_form
from darkroom.domain.images.image import Image
from darkroom.domain.recipes.presets import DEFAULT_PRESET
from repository.report import ROOT
from tests.support.running.conditions import ACCEPTOR, FUNCTIONS, configuration, configure, have_workers
from tests.support.running.stack import Stack

STATE = ROOT / "build" / "load_shedding" / "stack"
WORKERS = 2

_INJECTED = Path(__file__).with_name("injected")


@dataclass(frozen=True, kw_only=True)
class Work:
    """What is uploaded, and the parameters that say what to make of it."""

    body: bytes
    parameters: Mapping[str, str]


def _crop(width: int, height: int) -> bytes:
    file = io.BytesIO()
    with Picture.open(ROOT / "tests" / "photos" / "seeding-16mp.jpg") as photo:
        photo.crop((1000, 800, 1000 + 2 * width, 800 + 2 * height)).resize((width, height)).save(
            file, "JPEG", quality=85
        )
    return file.getvalue()


def heavy_work() -> Work:
    """A part of a real photo that takes a worker about five seconds.

    Two workers then drain so little that ten times as much costs the API only a small part of the machine's processors:
    on AWS the workers have their own.
    """
    variants = ", ".join(
        f'{{"name": "avif{width}", "width": {width}, "height": {width * 3 // 4}, "format": "avif"}}'
        for width in range(960, by_form(short=880, usual=660), -40)
    )
    return Work(body=_crop(960, 720), parameters={"recipe": f'{{"variants": [{variants}]}}'})


def usual_work() -> Work:
    """A website's photo, with all the usual variants."""
    return Work(body=_crop(1600, 1200), parameters={"preset": DEFAULT_PRESET})


def light_work() -> Work:
    """A small part of a real photo, of which a worker develops many per second."""
    recipe = '{"variants": [{"name": "webp", "width": 320, "format": "webp"}]}'
    return Work(body=_crop(320, 240), parameters={"recipe": recipe})


def have_two_workers_a_lane(stack: Stack, *, slow_sla_seconds: int | None) -> None:
    """Give each lane two workers, as a deployment with `FastConcurrency=2 SlowConcurrency=2` does, and optionally the
    slow lane a service level other than the product's."""
    have_workers(stack, WORKERS)
    for function in FUNCTIONS:
        changed = configuration(stack, function)
        variables = {**changed["Environment"]["Variables"]}
        variables |= {"FAST_CONCURRENCY": str(WORKERS), "SLOW_CONCURRENCY": str(WORKERS)}
        if function == ACCEPTOR and slow_sla_seconds is not None:
            variables |= {"PYTHONPATH": str(_INJECTED), "BENCH_SLOW_SLA_SECONDS": str(slow_sla_seconds)}
            changed["Handler"] = "shortened.handler"
        configure(stack, function, changed | {"Environment": {"Variables": variables}})


def rows_of(stack: Stack, tenant: str, *, since: int) -> dict[str, Image]:
    """The tenant's images that were accepted since that instant."""
    return {row.image_id: row for row in stack.rows() if row.tenant_id == tenant and row.created_at >= since}


def settled_rows(stack: Stack, tenant: str, *, since: int, patience_seconds: float) -> dict[str, Image]:
    """The same, once all of them have ended. Raises TimeoutError if they have not within that time."""
    deadline = time.monotonic() + patience_seconds
    while True:
        rows = rows_of(stack, tenant, since=since)
        left = sum(not row.status.is_terminal for row in rows.values())
        if not left:
            return rows
        if time.monotonic() > deadline:
            raise TimeoutError(f"{left} of {len(rows)} images of {tenant} have not come to their end")
        time.sleep(1)


def now() -> int:
    """The current instant, by the clock of the functions on this machine."""
    return time.time_ns() // 1_000_000
