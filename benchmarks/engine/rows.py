"""The results as rows of a report, each with its settings and versions."""

from __future__ import annotations

import platform
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.engine import dollars
from benchmarks.engine.engines import Engine
from benchmarks.engine.findings import Findings, Judged, verdicts
from benchmarks.engine.jobs import ENCODING, J4
from benchmarks.engine.memory import LATER
from benchmarks.engine.timing import Cell, Timed


def machine() -> str:
    """The processor and the system, as far as Linux reports them."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    processor = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "")
    return f"{processor or 'unnamed processor'}, {platform.system()} {platform.machine()}"


def time_rows(findings: Findings) -> Iterator[dict[str, Any]]:
    """A row for each cell and engine, with the engine's variants next to its time."""
    for cell in findings.cells:
        for verdict in verdicts(cell, findings.engines, findings.timed):
            engine, spread = verdict.engine.name, verdict.spread
            yield {
                "measured": "time",
                "source": cell.source.name,
                "source_title": cell.source.title,
                "megapixels": round(cell.source.megapixels, 1),
                "job": cell.job.name,
                "job_title": cell.job.title,
                "engine": engine,
                "cpu_ms": round(spread.median, 2),
                "cpu_ms_lower_quartile": round(spread.lower, 2),
                "cpu_ms_upper_quartile": round(spread.upper, 2),
                "images_per_cpu_second": round(1000 / spread.median, 2),
                "times_darkroom": round(verdict.ratio, 3),
                "times_darkroom_forward": round(verdict.forward_ratio, 3),
                "times_darkroom_reversed": round(verdict.reversed_ratio, 3),
                "rounds": verdict.rounds,
                "variants": (
                    variant_rows(findings.judged[cell.name, engine], findings.full_decodes[cell.name])
                    if (cell.name, engine) in findings.judged
                    else []
                ),
                "settings": ENCODING.of_job(cell.job),
                "versions": dict(findings.versions[engine]),
                "threads": 1,
                "core": findings.core,
                "machine": machine(),
            }


def earlier_rows(cells: Sequence[Cell], engines: Sequence[Engine], timed: Timed) -> Iterator[dict[str, Any]]:
    """A row for each cell and commit."""
    for cell in cells:
        for verdict in verdicts(cell, engines, timed):
            yield {
                "measured": "time",
                "source": cell.source.name,
                "job": cell.job.name,
                "engine": verdict.engine.title,
                "cpu_ms": round(verdict.spread.median, 2),
                "times_darkroom": round(verdict.ratio, 3),
                "bytes": dict(timed.sizes[cell.name, verdict.engine.name]),
                "rounds": verdict.rounds,
                "machine": machine(),
            }


def variant_rows(judged: Mapping[str, Judged], full_decode: Mapping[str, Judged]) -> list[dict[str, Any]]:
    """The variants' figures, and their ratio to Darkroom's own full decode at the same settings."""
    return [
        {
            "name": name,
            "bytes": variant.size,
            "ssimulacra2": round(variant.score, 2),
            "bytes_of_full_decode": round(variant.size / full_decode[name].size, 4),
            "ssimulacra2_less_full_decode": round(variant.score - full_decode[name].score, 2),
            "file": variant.kind,
        }
        for name, variant in judged.items()
    ]


def dollar_rows(findings: Findings) -> Iterator[dict[str, Any]]:
    """A row for each engine that is priced."""
    for engine, million in dollars.of_set(findings, J4.name).items():
        yield {
            "measured": "dollars for a million images",
            "job": J4.name,
            "engine": engine.name,
            "cpu": round(million.cpu, 2),
            "a_year_of_storage": round(million.storage, 2),
            f"transfer_of_{dollars.VIEWS}_views": round(million.transfer, 2),
        }


def memory_rows(findings: Findings) -> Iterator[dict[str, Any]]:
    """A row for each original and engine."""
    for asked in findings.asked:
        for engine in findings.engines:
            held = findings.held.get((asked.source.name, engine.name))
            if held is not None:
                yield {
                    "measured": "memory",
                    "source": asked.source.name,
                    "source_title": asked.source.title,
                    "megapixels": round(asked.source.megapixels, 1),
                    "job": asked.job.name,
                    "job_title": asked.job.title,
                    "engine": engine.name,
                    "bare_interpreter_mb": round(held.bare_mb, 1),
                    "imported_mb": round(held.imported_mb, 1),
                    "peak_mb": round(held.first_mb, 1),
                    "above_interpreter_mb": round(held.above_interpreter_mb, 1),
                    "above_imported_mb": round(held.above_imported_mb, 1),
                    **({} if held.later_mb is None else {f"peak_mb_after_{LATER}_jobs": round(held.later_mb, 1)}),
                    "settings": ENCODING.of_job(asked.job),
                    "versions": dict(findings.versions[engine.name]),
                    "threads": 1,
                    "machine": machine(),
                }
