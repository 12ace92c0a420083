"""CPU time by rounds: in each, every engine does every job once, and every second round runs in reverse order."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.engine.engines import Engine, Worker
from benchmarks.engine.jobs import Job
from benchmarks.engine.sources import Source


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One job on one source."""

    source: Source
    job: Job

    @property
    def name(self) -> str:
        return f"{self.source.name}:{self.job.name}"


@dataclass(frozen=True, kw_only=True)
class Timed:
    """CPU milliseconds of each round, and the variants' sizes, by cell and engine."""

    cpu_ms: Mapping[tuple[str, str], Sequence[float]]
    sizes: Mapping[tuple[str, str], Mapping[str, int]]


@dataclass(frozen=True, kw_only=True)
class Stage:
    """Rounds of the same cells, each with its engines. Their number is even, so both orders are equally frequent."""

    name: str
    plan: Sequence[tuple[Cell, Sequence[Engine]]]
    rounds: int

    def __post_init__(self) -> None:
        if self.rounds < 2 or self.rounds % 2:
            raise ValueError(f"the number of rounds must be even and at least 2, not {self.rounds}")


class NoSuchCell(Exception):
    """The requested cells do not exist; the message names those that do."""


def cells_of(sources: Sequence[Source], wanted: Sequence[str] = ()) -> tuple[Cell, ...]:
    """Every job of every source; or only the `wanted` ones, by `source` or `source:JOB`. Raises NoSuchCell."""
    cells = tuple(Cell(source=source, job=job) for source in sources for job in source.jobs)
    known = {cell.name for cell in cells} | {cell.source.name for cell in cells}
    if unknown := set(wanted) - known:
        raise NoSuchCell(f"no such cell: {', '.join(sorted(unknown))}; there are {', '.join(sorted(known))}")
    return tuple(cell for cell in cells if not wanted or {cell.name, cell.source.name} & set(wanted))


def plan_of(cells: Sequence[Cell], engines: Sequence[Engine]) -> list[tuple[Cell, Sequence[Engine]]]:
    """Every cell with every engine that makes a difference there."""
    return [(cell, [engine for engine in engines if engine.runs_on(cell.source)]) for cell in cells]


def warm_up(workers: Mapping[str, Worker], plan: Sequence[tuple[Cell, Sequence[Engine]]], folder: Path) -> None:
    """Runs the plan once, uncounted, and writes the variants to `folder`/cell/engine."""
    for cell, engines in plan:
        for engine in engines:
            save = variants_folder(folder, cell, engine)
            save.mkdir(parents=True, exist_ok=True)
            workers[engine.name].run(cell.source, cell.job, save=save)


def variants_folder(folder: Path, cell: Cell, engine: Engine) -> Path:
    """The folder for an engine's variants of a cell."""
    return folder / cell.name.replace(":", "-") / engine.name


def measure(workers: Mapping[str, Worker], stages: Sequence[Stage], *, say: Callable[[str], None]) -> Timed:
    """The times of all stages' rounds, one after another. Odd rounds take the engines in reverse."""
    cpu_ms: dict[tuple[str, str], list[float]] = {}
    sizes: dict[tuple[str, str], Mapping[str, int]] = {}
    for stage in stages:
        for number in range(stage.rounds):
            say(f"{stage.name}: round {number + 1} of {stage.rounds}")
            for cell, engines in stage.plan:
                for engine in engines if number % 2 == 0 else reversed(engines):
                    ran = workers[engine.name].run(cell.source, cell.job)
                    cpu_ms.setdefault((cell.name, engine.name), []).append(ran.cpu_ms)
                    sizes[cell.name, engine.name] = ran.sizes
    return Timed(cpu_ms=cpu_ms, sizes=sizes)
