"""A million images of the set in dollars: their CPU time, a year of storage, and ten views of each.

A view transfers one variant of average size. Requests, which do not depend on the engine, do not count.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import dataclass

from benchmarks.engine.engines import DARKROOM, SHARP_CASCADE, Engine
from benchmarks.engine.findings import Findings
from benchmarks.engine.goals import cells_in_set
from darkroom_cli.capacity.prices import STORED_GB, TRANSFERRED_GB, cost

WORKER_GB = 1769 / 1024
"""The memory with which Lambda gives a function one processor, and which `transcode_image` has."""

STORED_GB_YEAR = 12 * STORED_GB["S3 standard"]

VIEWS = 10
_MILLION, _GB = 1_000_000, 1_000_000_000


@dataclass(frozen=True, kw_only=True)
class Dollars:
    """Of a million images."""

    cpu: float
    storage: float
    transfer: float

    @property
    def total(self) -> float:
        return self.cpu + self.storage + self.transfer


def dollars_of(cpu_ms: float, stored_bytes: float, bytes_per_view: float) -> Dollars:
    """From the averages of one image."""
    return Dollars(
        cpu=_MILLION * cost({"Lambda GB-milliseconds": cpu_ms * WORKER_GB}),
        storage=_MILLION * stored_bytes / _GB * STORED_GB_YEAR,
        transfer=_MILLION * VIEWS * bytes_per_view / _GB * TRANSFERRED_GB,
    )


def of_set(findings: Findings, job: str) -> Mapping[Engine, Dollars]:
    """Darkroom's and its rival's, on average over the set."""
    dollars = {}
    cells = cells_in_set(findings.cells, job)
    for engine in (DARKROOM, SHARP_CASCADE):
        judged = [
            findings.judged[cell.name, engine.name] for cell in cells if (cell.name, engine.name) in findings.judged
        ]
        if judged:
            sizes = [[variant.size for variant in variants.values()] for variants in judged]
            dollars[engine] = dollars_of(
                statistics.mean(statistics.median(findings.timed.cpu_ms[cell.name, engine.name]) for cell in cells),
                statistics.mean(map(sum, sizes)),
                statistics.mean(map(statistics.mean, sizes)),
            )
    return dollars
