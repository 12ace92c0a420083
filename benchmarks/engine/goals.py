"""The engine's goals, computed from one run's figures."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from benchmarks.engine.engines import DARKROOM, SHARP_CASCADE, SHARP_PER_VARIANT, Engine
from benchmarks.engine.findings import Findings, Judged
from benchmarks.engine.ratios import order_effect_percent, ratio_by_order, ratio_of
from benchmarks.engine.timing import Cell, Timed
from checks.report import Goal


@dataclass(frozen=True, kw_only=True)
class RatioGoal:
    """A limit on the ratio of sharp's CPU time to Darkroom's, from below; with `at_most`, of the inverse from above."""

    cell: str
    sharp: Engine
    limit: float
    at_most: bool = False

    @property
    def name(self) -> str:
        return f"{self.cell}: {f'Darkroom ÷ {self.sharp.title}' if self.at_most else f'{self.sharp.title} ÷ Darkroom'}"

    def sides(self, timed: Timed) -> tuple[Sequence[float], Sequence[float]] | None:
        """The ratio; None if sharp did not run."""
        own, other = timed.cpu_ms[self.cell, DARKROOM.name], timed.cpu_ms.get((self.cell, self.sharp.name))
        if other is None:
            return None
        return (own, other) if self.at_most else (other, own)


RATIOS = (
    *(
        RatioGoal(cell=f"{source}:{job}", sharp=sharp, limit=limit)
        for source in ("native", "noisy")
        for job, sharp, limit in (
            ("J4", SHARP_CASCADE, 1.25),
            ("J4", SHARP_PER_VARIANT, 1.6),
            ("J3", SHARP_CASCADE, 1.1),
            ("J3", SHARP_PER_VARIANT, 1.8),
        )
    ),
    # On J3: in J4 the WebP, which costs all engines the same, hides what the colours cost.
    RatioGoal(cell="p3:J3", sharp=SHARP_CASCADE, limit=2),
    RatioGoal(cell="png:PNG", sharp=SHARP_CASCADE, limit=1.2, at_most=True),
)

HEADLINE_SOURCE = "native"
HEADLINE = f"{HEADLINE_SOURCE}:J4"
MOST_ORDER_EFFECT_PERCENT = 3.0
MOST_ABOVE_INTERPRETER_MB = 80.0
LEAST_SCORE_DIFFERENCE = -1.0
MOST_BYTES = 1.03


def plan_of_ratios(cells: Sequence[Cell], engines: Sequence[Engine]) -> list[tuple[Cell, Sequence[Engine]]]:
    """The cells and engines whose times the goals use."""
    compared: dict[str, set[Engine]] = {}
    for ratio in RATIOS:
        compared.setdefault(ratio.cell, {DARKROOM}).add(ratio.sharp)
    return [
        (cell, [engine for engine in engines if engine in compared[cell.name]])
        for cell in cells
        if cell.name in compared
    ]


def goals_of(findings: Findings) -> list[Goal]:
    """All goals. If sharp could not run, its ratios are not numbers, so they are never met."""
    own = {cell.name: findings.judged[cell.name, DARKROOM.name] for cell in findings.cells}
    return [
        *(ratio_goal(wanted, findings.timed) for wanted in RATIOS),
        Goal(
            name="the order of the engines moves a ratio by at most (%)",
            value=order_effect(findings.timed),
            limit=MOST_ORDER_EFFECT_PERCENT,
            at_least=False,
        ),
        *quality_goals(HEADLINE, {HEADLINE: own[HEADLINE]}, findings.full_decodes),
        *quality_goals("every original and job", own, findings.full_decodes),
        Goal(
            name=f"{HEADLINE}: peak memory above an interpreter that does nothing (MB)",
            value=findings.held[HEADLINE_SOURCE, DARKROOM.name].above_interpreter_mb,
            limit=MOST_ABOVE_INTERPRETER_MB,
            at_least=False,
        ),
    ]


def ratio_goal(wanted: RatioGoal, timed: Timed) -> Goal:
    """The goal with its measured value."""
    sides = wanted.sides(timed)
    value = math.nan if sides is None else ratio_of(*sides)
    return Goal(name=wanted.name, value=value, limit=wanted.limit, at_least=not wanted.at_most)


def order_effect(timed: Timed) -> float:
    """By how many percent the goals' ratios differ, at most, between the forward rounds and the reversed ones."""
    both = [sides for wanted in RATIOS if (sides := wanted.sides(timed)) is not None]
    return max((order_effect_percent(*ratio_by_order(*sides)) for sides in both), default=math.nan)


def quality_goals(
    what: str, judged: Mapping[str, Mapping[str, Judged]], full_decodes: Mapping[str, Mapping[str, Judged]]
) -> list[Goal]:
    """The worst variant's score and bytes, each against our own full decode at the requested quality."""
    pairs = [
        (variant, full_decodes[cell][name]) for cell, variants in judged.items() for name, variant in variants.items()
    ]
    return [
        Goal(
            name=f"{what}: ssimulacra2 less that of the own full decode, worst variant",
            value=min(variant.score - full_decode.score for variant, full_decode in pairs),
            limit=LEAST_SCORE_DIFFERENCE,
            at_least=True,
        ),
        Goal(
            name=f"{what}: bytes ÷ those of the own full decode, worst variant",
            value=max(variant.size / full_decode.size for variant, full_decode in pairs),
            limit=MOST_BYTES,
            at_least=False,
        ),
    ]
