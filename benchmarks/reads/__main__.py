"""What an hour of the dearest reads costs that a free key may send.

    make bench-reads

A tenant with a free tier's allowance reads as fast as it is let, in each way that the API has, and comes back when it
is told to. Its images' rows are as large as a client can make them. Counted are requests, what the function called (its
log line `timing`), its time, its log, and read units by the rows' sizes; the dollars are list prices for an hour.
Prints a table and writes build/reports/reads.json.
"""

from __future__ import annotations

import hashlib
import http.client
import json
import sys
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

from benchmarks.forms import FOLDER, by_form
from benchmarks.stage import stack_of
from darkroom.aws.images.images_table import ImagesTable, to_item
from darkroom.aws.images.objects import OutputsBucket
from darkroom.domain.images.image import Image, Status, Variant
from darkroom.domain.images.listing import INDEX_UNITS, LOOKS, MAX_PAGE_IMAGES
from darkroom.domain.kernel.tenants import Tier
from darkroom.domain.recipes.recipes import Recipe
from darkroom_cli.capacity.plan import API_GB
from darkroom_cli.capacity.prices import cost
from repository.report import ROOT, Goal, write_report
from tests.support.fakes.rows import accepted_image
from tests.support.running.stack import Stack

STATE = ROOT / "build" / "bench-reads" / "stack"
TENANT = "reader"

MOST_DOLLARS_AN_HOUR = 0.20

BODY = b"a variant"
SHA256 = hashlib.sha256(BODY).hexdigest()

IMAGES = by_form(short=1, usual=LOOKS) * MAX_PAGE_IMAGES + 20
SECONDS = by_form(short=0.5, usual=15.0)
"""How long is read in each way."""

_CLIENTS = 8
_SETTLE_SECONDS = by_form(short=0.5, usual=2.0)
_BURST_SECONDS = by_form(short=0.3, usual=3.0)
_UNIT_BYTES = 4096
_ACCESS_LOG_KILOBYTES = 0.4
"""One line of the gateway's log."""


@dataclass(frozen=True, kw_only=True)
class Way:
    """One way to read: its path, and how many rows a request reads, besides `index_units`."""

    name: str
    path: str
    rows: int
    index_units: int = 0


def ways(image_id: str) -> tuple[Way, ...]:
    """Every way to read that costs."""
    return (
        Way(name="a status", path=f"/images/{image_id}/status", rows=1),
        Way(name="an image", path=f"/images/{image_id}", rows=1),
        Way(name="a variant", path=f"/images/{image_id}/variants/variant-00", rows=1),
        Way(name="a page of 1", path="/images?limit=1", rows=1, index_units=INDEX_UNITS),
        Way(name="a page of 20", path="/images", rows=20, index_units=INDEX_UNITS),
        Way(name="a page of 100", path="/images?limit=100", rows=100, index_units=INDEX_UNITS),
        Way(
            name="a filtered page",
            path="/images?limit=100&status=failed",
            rows=LOOKS * MAX_PAGE_IMAGES,
            index_units=LOOKS * INDEX_UNITS,
        ),
    )


def large_image(number: int, now: int) -> Image:
    """A done image with as many variants as a recipe may have, and as long names."""
    names = [f"variant-{index:02d}" for index in range(16)]
    recipe = Recipe.model_validate({"variants": [{"name": name, "width": 16} for name in names]})
    image_id = f"{number:026d}"
    return replace(
        accepted_image(now=now, image_id=image_id, tenant_id=TENANT, preset=None, recipe=recipe, fingerprint="f" * 64),
        status=Status.DONE,
        created_at=now + number,
        completed_at=now + number,
        waiting_since=None,
        due_at=None,
        variants=tuple(
            Variant(
                name=name,
                width=16,
                height=12,
                format="webp",
                size_bytes=len(BODY),
                sha256=SHA256,
                key=f"outputs/{image_id}/1/{name}.webp",
            )
            for name in names
        ),
        placeholder={"thumbhash": "1QcSHQRnh493V4dIh4eXh1h4kJUI", "color": "#7a8b5c"},
        attention={"x": 6251, "y": 4000},
    )


def units_of(image: Image) -> int:
    """The read units of a consistent read of the row; an item's size is about that of its JSON."""
    return -(-len(json.dumps(to_item(image))) // _UNIT_BYTES)


class Reader:
    """One connection that reads until a deadline, as fast as it is let."""

    def __init__(self, api_url: str, key: str) -> None:
        self._connection = http.client.HTTPConnection(urlsplit(api_url).netloc, timeout=60)
        self._headers = {"Authorization": f"Bearer {key}"}

    def read(self, path: str, *, until: float) -> Counter[int]:
        """How often it was answered with which status."""
        answers: Counter[int] = Counter()
        while time.monotonic() < until:
            self._connection.request("GET", path, headers=self._headers)
            answer = self._connection.getresponse()
            answer.read()
            answers[answer.status] += 1
            if answer.status == HTTPStatus.TOO_MANY_REQUESTS:
                time.sleep(max(0.0, min(float(answer.headers["Retry-After"]), until - time.monotonic())))
        return answers


def together(readers: Sequence[Reader], path: str, *, seconds: float) -> Counter[int]:
    """What all of them were answered."""
    until = time.monotonic() + seconds
    with ThreadPoolExecutor(len(readers)) as pool:
        return sum(pool.map(lambda reader: reader.read(path, until=until), readers), Counter[int]())


def logged(stack: Stack) -> tuple[Counter[str], float, float]:
    """What the function has called until now, its milliseconds, and the kilobytes of its log."""
    calls: Counter[str] = Counter()
    milliseconds = kilobytes = 0.0
    for line in stack.log_lines("ReadImageLogs"):
        kilobytes += len(json.dumps(line)) / 1000
        if line.get("message") == "timing":
            calls.update(
                {operation: operation_calls["count"] for operation, operation_calls in line["aws_calls"].items()}
            )
            milliseconds += line["milliseconds"]
    return calls, milliseconds, kilobytes


def hour_of(stack: Stack, readers: Sequence[Reader], way: Way, *, row_units: int, seconds: float) -> dict[str, Any]:
    """What the reads of one way cost in an hour, after the burst is used up."""
    together(readers, way.path, seconds=_BURST_SECONDS)
    time.sleep(_SETTLE_SECONDS)
    calls_before, milliseconds_before, kilobytes_before = logged(stack)
    began = time.monotonic()
    answers = together(readers, way.path, seconds=seconds)
    took = time.monotonic() - began
    time.sleep(_SETTLE_SECONDS)
    calls, milliseconds, kilobytes = logged(stack)
    calls -= calls_before
    refused = answers.pop(int(HTTPStatus.TOO_MANY_REQUESTS), 0)
    served = answers.total()
    if set(answers) - {HTTPStatus.OK, HTTPStatus.TEMPORARY_REDIRECT}:
        raise RuntimeError(f"{way.name} was answered {dict(answers)}")
    units = way.rows * row_units + way.index_units
    billed = {
        "API requests": served,
        "Lambda requests": served + refused,
        "Lambda GB-milliseconds": API_GB * (milliseconds - milliseconds_before),
        "DynamoDB read units": served * units,
        "DynamoDB write units": calls["dynamodb:UpdateItem"],
        "S3 gets": calls["s3:HeadObject"],
        "Log kilobytes": kilobytes - kilobytes_before + served * _ACCESS_LOG_KILOBYTES,
    }
    return {
        "way": way.name,
        "served_per_hour": round(served / took * 3600),
        "refused_per_hour": round(refused / took * 3600),
        "read_units_each": units,
        "dollars_per_hour": round(cost(billed) / took * 3600, 4),
    }


def main() -> int:
    """Measures, prints and writes the report; returns the exit status."""
    free = Tier.FREE.allowance
    with stack_of(STATE, "--access", "keys") as stack:
        key = stack.key_of_tenant(TENANT, tier="free", requests_per_second=free.requests_per_second, burst=free.burst)
        table = ImagesTable(stack.client("dynamodb"), stack.output("ImagesTableName"))
        now = time.time_ns() // 1_000_000 - 60_000
        images = [table.create(large_image(number, now)) for number in range(IMAGES)]
        outputs = OutputsBucket(stack.client("s3"), stack.output("OutputsBucketName"))
        outputs.put_if_absent(images[0].variants[0].key, BODY, sha256=SHA256, media_type="image/webp")
        row_units = max(map(units_of, images))
        readers = [Reader(stack.api_url, key) for _ in range(_CLIENTS)]
        rows = []
        for way in ways(images[0].image_id):
            rows.append(hour_of(stack, readers, way, row_units=row_units, seconds=SECONDS))
            last = rows[-1]
            print(
                f"{last['way']:<16}{last['served_per_hour']:>9,} served{last['refused_per_hour']:>9,} refused"
                f"{last['read_units_each']:>7,} read units each{last['dollars_per_hour']:>9.4f} $ an hour",
                flush=True,
            )
    worst = max(row["dollars_per_hour"] for row in rows)
    goals = [Goal(name="dollars for an hour of the dearest reads", value=worst, limit=MOST_DOLLARS_AN_HOUR)]
    write_report("reads", seed=None, rows=rows, goals=goals, folder=FOLDER)
    return 0


if __name__ == "__main__":
    sys.exit(main())
