"""What it takes to read a manifest of a million rows, and how often an image that it makes calls AWS.

    make bench-imports

The real looks read the manifest from a file, in this process, whose stores are in memory. Measured are the processor's
time for each row and how much memory the looks add; seconds are those of the function's share of a processor. Counted
are the calls for each image. Prints a table and writes build/reports/imports.json.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.forms import FOLDER, by_form
from darkroom.domain.bulk.imports import ImportState
from darkroom.domain.bulk.manifests import ManifestFormat
from darkroom.domain.imports.fetch import MAX_SOURCE_URL_LENGTH
from darkroom.egress import PUBLIC_ONLY, read_url
from darkroom.ports.bulk import StoredManifest
from repository.report import Goal, write_report
from tests.support.fakes.batches import BatchesWorld
from tests.support.fakes.imports import FakeManifests
from tests.support.faults import Faults

ROWS = by_form(short=2_000, usual=1_000_000)
CREATED = 500

_SHARE = 512 / 1769
"""Of a processor: Lambda gives a whole one at 1,769 MB
(https://docs.aws.amazon.com/lambda/latest/dg/configuration-memory.html)."""

MOST_MINUTES, MOST_MEGABYTES = 10, 256
"""The other half of the function's memory is taken before it begins."""


@dataclass
class ManifestFile(FakeManifests):
    """A manifest on disk, and the parts of the report beside it."""

    file: Path = Path()

    def find(self, batch_id: str) -> StoredManifest | None:
        return StoredManifest('"1"', self.file.stat().st_size)

    def read(self, batch_id: str, etag: str, *, offset: int, size_bytes: int) -> bytes | None:
        with self.file.open("rb") as opened:
            opened.seek(offset)
            return opened.read(size_bytes)

    def put_report(self, batch_id: str, name: str, body: bytes) -> None:
        self.file.with_name(name).write_bytes(body)

    def report(self, batch_id: str, name: str) -> bytes | None:
        return self.file.with_name(name).read_bytes()

    def remove(self, batch_id: str, name: str | None = None) -> None:
        self.file.with_name(name or "none").unlink(missing_ok=True)


def _plain(number: int) -> bytes:
    return b"https://photos.example.com/catalogue/2026/spring/%09d.jpg,catalogue-2026-%09d\n" % (number, number)


def _full(number: int) -> bytes:
    url = b"https://photos.example.com/2026/%09d.jpg" % number
    return url + b',k-%09d,avatar,shoes|new,"{""sku"": %d}"\n' % (number, number)


def _json(number: int) -> bytes:
    row = {"url": f"https://photos.example.com/2026/{number:09}.jpg", "key": f"k-{number:09}", "tags": ["shoes"]}
    return json.dumps(row).encode() + b"\n"


def _bad(number: int) -> bytes:
    return b"s3://photos/catalogue/2026/spring/%09d.jpg,catalogue-2026-%09d\n" % (number, number)


MANIFESTS: dict[str, tuple[ManifestFormat, bytes, Any]] = {
    "CSV: URLs and keys": (ManifestFormat.CSV, b"url,key\n", _plain),
    "CSV: with tags and metadata": (ManifestFormat.CSV, b"url,key,preset,tags,metadata\n", _full),
    "JSON Lines": (ManifestFormat.JSONL, b"", _json),
    "every row rejected": (ManifestFormat.CSV, b"url,key\n", _bad),
}


def _check_url(url: str) -> None:
    read_url(url, PUBLIC_ONLY, max_length=MAX_SOURCE_URL_LENGTH)


def _world(file: Path) -> BatchesWorld:
    world = BatchesWorld(check_url=_check_url)
    world.manifests = world.batches.manifests = ManifestFile(file=file)
    world.clock = lambda: time.time_ns() // 1_000_000  # type: ignore[method-assign]
    return world


def validate(folder: Path, name: str) -> dict[str, Any]:
    """Reads a manifest until its rows are known."""
    kind, head, row_of = MANIFESTS[name]
    file = folder / "manifest"
    with file.open("wb") as opened:
        opened.write(head)
        opened.writelines(map(row_of, range(ROWS)))
    world = _world(file)
    row = world.begin_import(b"x", kind)
    peak_kilobytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began, looks = time.process_time(), 0
    while world.imported(row).state in (ImportState.AWAITING_MANIFEST, ImportState.VALIDATING):
        world.look_at_import(row.batch_id)
        looks += 1
    seconds = time.process_time() - began
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak_kilobytes
    ended = world.imported(row)
    if (ended.state, ended.rows, ended.valid + ended.rejected) != (ImportState.CREATING, ROWS, ROWS):
        raise RuntimeError(f"{name}: {ended}")
    return {
        "manifest": name,
        "rows": ROWS,
        "megabytes": round(file.stat().st_size / 1e6, 1),
        "looks": looks,
        "microseconds_each": round(seconds / ROWS * 1e6, 1),
        "minutes_of_a_million": round(seconds / ROWS * 1e6 / _SHARE / 60, 2),
        "memory_megabytes": round(grown / 1024, 1),
        "report_megabytes": round(sum(part.size_bytes for part in ended.report) / 1e6, 1),
    }


def calls_of_images(folder: Path) -> Iterator[dict[str, Any]]:
    """How often each image that is made calls AWS."""
    file = folder / "manifest"
    file.write_bytes(b"url,key\n" + b"".join(map(_plain, range(CREATED))))
    world, faults = _world(file), Faults()
    row = world.begin_import(b"x")
    while world.imported(row).state is not ImportState.CREATING:
        world.look_at_import(row.batch_id)
    for name in ("images", "batches", "imports", "manifests", "fetch_queue", "tenants"):
        setattr(world, name, faults.around(name, getattr(world, name)))
    world.look_at_import(row.batch_id)
    if world.imported(row).created != CREATED:
        raise RuntimeError(f"{world.imported(row)}")
    for name, count in Counter(faults.calls).most_common():
        yield {"call": name, "an_image": round(count / CREATED, 2)}


def main() -> int:
    """Measures, prints and writes the report; returns the exit status."""
    rows: list[dict[str, Any]] = []
    with TemporaryDirectory() as named:
        folder = Path(named)
        for name in MANIFESTS:
            rows.append(validate(folder, name))
            last = rows[-1]
            print(
                f"{name:<28}{last['megabytes']:>8.1f} MB{last['microseconds_each']:>8.1f} µs a row"
                f"{last['minutes_of_a_million']:>8.2f} min a million{last['memory_megabytes']:>8.1f} MB more"
                f"{last['report_megabytes']:>8.1f} MB of report",
                flush=True,
            )
        calls = list(calls_of_images(folder))
    for call in calls:
        print(f"{call['call']:<28}{call['an_image']:>8.2f} an image")
    goals = [
        Goal(
            name="minutes to validate a million rows",
            value=max(row["minutes_of_a_million"] for row in rows),
            limit=MOST_MINUTES,
        ),
        Goal(
            name="megabytes that a look adds", value=max(row["memory_megabytes"] for row in rows), limit=MOST_MEGABYTES
        ),
    ]
    write_report("imports", seed=None, rows=[*rows, *calls], goals=goals, folder=FOLDER)
    return 0


if __name__ == "__main__":
    sys.exit(main())
