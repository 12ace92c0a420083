"""The engine's goals, computed from one run's figures: over the set of photos, the median and the worst."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.engine.engines import DARKROOM, LEAST, PILLOW, PYVIPS, SHARP_CASCADE, SHARP_PER_VARIANT, Engine
from benchmarks.engine.findings import Findings, Judged
from benchmarks.engine.jobs import J1
from benchmarks.engine.ratios import order_effect_percent, ratio_by_order, ratio_of
from benchmarks.engine.timing import Cell, Timed
from repository.report import Goal


@dataclass(frozen=True, kw_only=True)
class RatioGoal:
    """A limit, from below, on the ratios of another engine's CPU time to Darkroom's, of one job on the set."""

    job: str
    other: Engine
    of_set: Callable[[Iterable[float]], float]
    limit: float

    @property
    def name(self) -> str:
        which = "median" if self.of_set is statistics.median else "worst"
        return f"{self.job}, {which}: {self.other.title} ÷ Darkroom"


RATIOS = (
    RatioGoal(job="J4", other=SHARP_CASCADE, of_set=statistics.median, limit=1.13),
    RatioGoal(job="J4", other=SHARP_CASCADE, of_set=min, limit=1.07),
    RatioGoal(job="J3", other=SHARP_CASCADE, of_set=statistics.median, limit=1.15),
    RatioGoal(job="J3", other=SHARP_CASCADE, of_set=min, limit=1.05),
    RatioGoal(job="J1", other=SHARP_CASCADE, of_set=statistics.median, limit=1.1),
    RatioGoal(job="J1", other=SHARP_CASCADE, of_set=min, limit=1),
    RatioGoal(job="J1", other=PILLOW, of_set=min, limit=1),
    RatioGoal(job="PNG", other=SHARP_CASCADE, of_set=min, limit=1),
    RatioGoal(job="J4", other=SHARP_PER_VARIANT, of_set=statistics.median, limit=1.6),
    RatioGoal(job="J3", other=SHARP_PER_VARIANT, of_set=statistics.median, limit=1.8),
)

CELL_RATIOS = (("p3:J3", SHARP_CASCADE, 2.0), ("phone:J4", SHARP_CASCADE, 1.05), ("native:AVIF", PYVIPS, 1.0))
"""Single cells, their rivals and limits. Display P3 on J3: in J4 the WebP, which costs all engines the same, hides what
the colours cost."""

MEMORY_SOURCE = "native"
MOST_ORDER_EFFECT_PERCENT = 3.0
MOST_ABOVE_INTERPRETER_MB = 80.0
LEAST_SCORE_DIFFERENCE = -0.5
MOST_BYTES = 1.02
MOST_BESIDE_EARLIER = 1.02
LEAST_ABOVE_CURVE = -0.3


def cells_in_set(cells: Iterable[Cell], job: str) -> list[Cell]:
    """The cells of the set with that job."""
    return [cell for cell in cells if cell.source.is_in_set and cell.job.name == job]


def plan_of_set(cells: Sequence[Cell], engines: Sequence[Engine]) -> list[tuple[Cell, Sequence[Engine]]]:
    """The cells of the set, each with Darkroom, sharp's cascade, the least work and, for J1 alone, Pillow."""
    compared = [engine for engine in (*engines, LEAST) if engine in (DARKROOM, SHARP_CASCADE, LEAST, PILLOW)]
    return [
        (cell, [engine for engine in compared if engine.runs_on(cell.source) and (engine != PILLOW or cell.job == J1)])
        for cell in cells
        if cell.source.is_in_set
    ]


def goals_of(findings: Findings) -> list[Goal]:
    """All goals. If sharp could not run, its ratios are not numbers, so they are never met."""
    own = {
        cell.name: findings.judged[cell.name, DARKROOM.name]
        for cell in findings.cells
        if (cell.name, DARKROOM.name) in findings.judged
    }
    above_curve = findings.above_curve.values()
    return [
        *(ratio_goal(wanted, findings.cells, findings.timed) for wanted in RATIOS),
        *(
            Goal(
                name=f"{cell}: {other.title} ÷ Darkroom",
                value=ratio(cell, other, findings.timed),
                limit=limit,
                at_least=True,
            )
            for cell, other, limit in CELL_RATIOS
        ),
        Goal(
            name="the order of the engines moves a median by at most (%)",
            value=order_effect(findings.cells, findings.timed),
            limit=MOST_ORDER_EFFECT_PERCENT,
            at_least=False,
        ),
        *quality_goals(own, findings.full_decodes),
        Goal(
            name="ssimulacra2 less that of the usual encoder at as many bytes, worst variant of the set",
            value=min(above_curve, default=math.nan),
            limit=LEAST_ABOVE_CURVE,
            at_least=True,
        ),
        Goal(
            name=f"{MEMORY_SOURCE}:J4: peak memory above an interpreter that does nothing (MB)",
            value=findings.held[MEMORY_SOURCE, DARKROOM.name].above_interpreter_mb,
            limit=MOST_ABOVE_INTERPRETER_MB,
            at_least=False,
        ),
    ]


def ratio(cell: str, other: Engine, timed: Timed) -> float:
    """The other engine's time divided by Darkroom's; not a number if it did not run."""
    sides = _sides(cell, other, timed)
    return math.nan if sides is None else ratio_of(*sides)


def _sides(cell: str, other: Engine, timed: Timed) -> tuple[Sequence[float], Sequence[float]] | None:
    own, others = timed.cpu_ms.get((cell, DARKROOM.name)), timed.cpu_ms.get((cell, other.name))
    return None if own is None or others is None else (others, own)


def ratio_goal(wanted: RatioGoal, cells: Iterable[Cell], timed: Timed) -> Goal:
    """The goal with its measured value."""
    ratios = [ratio(cell.name, wanted.other, timed) for cell in cells_in_set(cells, wanted.job)]
    known = bool(ratios) and not any(map(math.isnan, ratios))
    return Goal(name=wanted.name, value=wanted.of_set(ratios) if known else math.nan, limit=wanted.limit, at_least=True)


def goals_beside_earlier(cells: Sequence[Cell], earlier: Engine, timed: Timed) -> list[Goal]:
    """By how much the code has become slower since an earlier commit, over the set."""
    by_job: dict[str, list[float]] = {}
    for cell in cells:
        by_job.setdefault(cell.job.name, []).append(1 / ratio(cell.name, earlier, timed))
    return [
        Goal(
            name=f"{job}, median: Darkroom ÷ {earlier.title}",
            value=statistics.median(values),
            limit=MOST_BESIDE_EARLIER,
            at_least=False,
        )
        for job, values in by_job.items()
    ]


def order_effect(cells: Iterable[Cell], timed: Timed) -> float:
    """By how many percent the medians of sharp's cascade differ between the forward rounds and the reversed ones."""
    listed, effects = list(cells), []
    for job in ("J3", "J4"):
        sides = [_sides(cell.name, SHARP_CASCADE, timed) for cell in cells_in_set(listed, job)]
        orders = [ratio_by_order(*both) for both in sides if both is not None]
        if orders:
            forward, reversed_ = (statistics.median(values) for values in zip(*orders, strict=True))
            effects.append(order_effect_percent(forward, reversed_))
    return max(effects, default=math.nan)


def quality_goals(
    judged: Mapping[str, Mapping[str, Judged]], full_decodes: Mapping[str, Mapping[str, Judged]]
) -> list[Goal]:
    """The worst variant's score, and all variants' bytes, each against our own full decode at the requested quality."""
    pairs = [
        (variant, full_decodes[cell][name]) for cell, variants in judged.items() for name, variant in variants.items()
    ]
    lossy = [(variant, full_decode) for variant, full_decode in pairs if "lossless" not in variant.kind]
    return [
        Goal(
            name="ssimulacra2 less that of the own full decode, worst variant of all",
            value=min(variant.score - full_decode.score for variant, full_decode in pairs),
            limit=LEAST_SCORE_DIFFERENCE,
            at_least=True,
        ),
        Goal(
            name="bytes ÷ those of the own full decode, all JPEGs and WebPs together",
            value=sum(variant.size for variant, _ in lossy) / sum(full_decode.size for _, full_decode in lossy),
            limit=MOST_BYTES,
            at_least=False,
        ),
    ]
