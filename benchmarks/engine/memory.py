"""Peak memory, of a fresh process for each engine and original."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.engine.engines import Engine, Worker, bare_interpreter_megabytes
from benchmarks.engine.jobs import Job
from benchmarks.engine.sources import Source

LATER = 20
"""How many jobs a process has done when its peak is read again: a function's process runs thousands."""


@dataclass(frozen=True, kw_only=True)
class Asked:
    """One job whose memory is measured; `again` if the peak after `LATER` jobs is wanted, too."""

    source: Source
    job: Job
    again: bool = False


@dataclass(frozen=True, kw_only=True)
class Held:
    """Megabytes: of the interpreter alone, with the engine imported, and the peaks after one job and after `LATER`."""

    bare_mb: float
    imported_mb: float
    first_mb: float
    later_mb: float | None

    @property
    def above_interpreter_mb(self) -> float:
        """The first peak above that of an idle interpreter: the engine's libraries count."""
        return self.first_mb - self.bare_mb

    @property
    def above_imported_mb(self) -> float:
        """The first peak above that of the same process before its first job."""
        return self.first_mb - self.imported_mb


def measure(
    engines: Sequence[Engine], wanted: Sequence[Asked], *, core: int, say: Callable[[str], None]
) -> Mapping[tuple[str, str], Held]:
    """What each engine used, by source and engine."""
    held = {}
    for engine in engines:
        if engine.only_wide_gamut:
            continue
        say(f"memory: {engine.title}")
        bare = bare_interpreter_megabytes(engine)
        for asked in wanted:
            with Worker(engine, core=core) as worker:
                first = worker.run(asked.source, asked.job)
                later = [worker.run(asked.source, asked.job).peak_mb for _ in range(LATER - 1)] if asked.again else []
            held[asked.source.name, engine.name] = Held(
                bare_mb=bare,
                imported_mb=worker.imported_mb,
                first_mb=first.peak_mb,
                later_mb=max(later) if later else None,
            )
    return held
