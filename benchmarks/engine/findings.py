"""The results of one run, from which the goals, the tables, the rows and the chart are made."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.engine.engines import DARKROOM, Engine
from benchmarks.engine.memory import Asked, Held
from benchmarks.engine.ratios import Spread, ratio_by_order, ratio_of, spread_of
from benchmarks.engine.timing import Cell, Timed


@dataclass(frozen=True, kw_only=True)
class Judged:
    """One variant's ssimulacra2 score and bytes. `kind` is what its own header says about the encoding."""

    score: float
    size: int
    kind: str


@dataclass(frozen=True, kw_only=True)
class Findings:
    """`judged` is by cell and engine, `full_decodes` (Darkroom's own) by cell, `held` by source and engine.

    `above_curve` is Darkroom's score less what as many bytes of the usual encoder have, by cell of the set and variant.
    """

    engines: Sequence[Engine]
    versions: Mapping[str, Mapping[str, str]]
    core: int
    cells: Sequence[Cell]
    timed: Timed
    judged: Mapping[tuple[str, str], Mapping[str, Judged]]
    full_decodes: Mapping[str, Mapping[str, Judged]]
    asked: Sequence[Asked]
    held: Mapping[tuple[str, str], Held]
    above_curve: Mapping[tuple[str, str], float]


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """One engine's times in one cell, and their ratio to Darkroom's: in all rounds, and by the order of engines."""

    engine: Engine
    spread: Spread
    rounds: int
    ratio: float
    forward_ratio: float
    reversed_ratio: float


def verdicts(cell: Cell, engines: Sequence[Engine], timed: Timed) -> Iterator[Verdict]:
    """The engines that ran in the cell."""
    own = timed.cpu_ms[cell.name, DARKROOM.name]
    for engine in engines:
        times = timed.cpu_ms.get((cell.name, engine.name))
        if times is not None:
            forward, reversed_ = ratio_by_order(times, own)
            yield Verdict(
                engine=engine,
                spread=spread_of(times),
                rounds=len(times),
                ratio=ratio_of(times, own),
                forward_ratio=forward,
                reversed_ratio=reversed_,
            )
