"""The functions of `stats`, which work on all rows of a group.

https://docs.aws.amazon.com/AmazonCloudWatch/latest/logs/CWL_QuerySyntax-Stats.html
"""

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from local_aws.logs_insights.rows import Row
from local_aws.logs_insights.values import Value, compare, number, sort_key, text

type Evaluate = Callable[[Row], Value]

_DECIMALS = 4


@dataclass(frozen=True, kw_only=True)
class Aggregate:
    """A function of `stats` with its arguments; `of` is None for count(*)."""

    function: str
    of: Evaluate | None
    percent: float = 0

    def result(self, rows: Sequence[Row]) -> Value:
        """The result over the rows of a group; None if no row has a value for it."""
        if self.of is None:
            return len(rows)
        present = [(row, value) for row in rows if (value := self.of(row)) is not None]
        return _FUNCTIONS[self.function](present, self.percent)


type _Present = Sequence[tuple[Row, Value]]


def _numbers(present: _Present) -> list[float]:
    return [known for _, value in present if (known := number(value)) is not None]


def _calculated(calculate: Callable[[list[float]], float], least: int = 1) -> Callable[[_Present, float], Value]:
    def result(present: _Present, _: float) -> Value:
        numbers = _numbers(present)
        return round(calculate(numbers), _DECIMALS) if len(numbers) >= least else None

    return result


def _percentile(present: _Present, percent: float) -> Value:
    numbers = sorted(_numbers(present))
    return numbers[max(math.ceil(percent / 100 * len(numbers)), 1) - 1] if numbers else None


def _extreme(sign: int) -> Callable[[_Present, float], Value]:
    def result(present: _Present, _: float) -> Value:
        extreme: Value = None
        for _row, value in present:
            if extreme is None or (compare(value, extreme) or 0) * sign > 0:
                extreme = value
        return extreme

    return result


def _in_order(place: int, key: Callable[[tuple[Row, Value]], object]) -> Callable[[_Present, float], Value]:
    return lambda present, _: sorted(present, key=key)[place][1] if present else None  # type: ignore[arg-type]


def _at(item: tuple[Row, Value]) -> object:
    return sort_key(item[0].get("@timestamp"))


_FUNCTIONS: Mapping[str, Callable[[_Present, float], Value]] = {
    "count": lambda present, _: len(present),
    "count_distinct": lambda present, _: len({text(value) for _row, value in present}),
    "sum": _calculated(math.fsum),
    "avg": _calculated(statistics.fmean),
    "stddev": _calculated(statistics.stdev, least=2),
    "pct": _percentile,
    "min": _extreme(-1),
    "max": _extreme(1),
    "earliest": _in_order(0, _at),
    "latest": _in_order(-1, _at),
    "sortsfirst": _in_order(0, lambda item: sort_key(item[1])),
    "sortslast": _in_order(-1, lambda item: sort_key(item[1])),
}

AGGREGATES = frozenset(_FUNCTIONS)
"""Their names in lower case."""
