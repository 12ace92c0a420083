"""The arithmetic of an interleaved comparison: medians, quartiles, and ratios taken round by round."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Spread:
    """The middle half of what was measured."""

    lower: float
    median: float
    upper: float


def spread_of(values: Sequence[float]) -> Spread:
    """Median and quartiles of at least one value."""
    if len(values) == 1:
        return Spread(lower=values[0], median=values[0], upper=values[0])
    lower, median, upper = statistics.quantiles(values, n=4, method="inclusive")
    return Spread(lower=lower, median=median, upper=upper)


def ratio_of(numerators: Sequence[float], denominators: Sequence[float]) -> float:
    """The median of the per-round ratios; if one has more rounds than the other, only of the rounds that both have.

    Both times of a round are measured within a second of each other, so a slowdown that lasts longer cancels out.
    """
    return statistics.median(a / b for a, b in zip(numerators, denominators, strict=False))


def ratio_by_order(numerators: Sequence[float], denominators: Sequence[float]) -> tuple[float, float]:
    """The ratio in the forward rounds (the even ones) and in the reversed rounds (the odd ones)."""
    return ratio_of(numerators[::2], denominators[::2]), ratio_of(numerators[1::2], denominators[1::2])


def order_effect_percent(forward: float, reversed_: float) -> float:
    """By how many percent a ratio changes when the order of the engines is reversed."""
    return abs(forward / reversed_ - 1) * 100
