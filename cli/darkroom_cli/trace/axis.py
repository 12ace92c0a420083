"""The axis of a waterfall: where an instant is drawn, if long waits are drawn shorter than they were."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from darkroom.domain.kernel.instants import Milliseconds
from darkroom_cli.operator.domain.trace import Step

LONGEST_PART = 0.25
"""A wait takes at most this part of the width; how long it really was is in the table."""


@dataclass(frozen=True, kw_only=True)
class Axis:
    """Puts instants into `width` columns, in their order. Between two neighbouring instants of `ticks` time is drawn
    evenly; `columns` says where each of them is, and `is_cut` whether a long time is drawn shorter than it was."""

    ticks: Sequence[Milliseconds]
    columns: Sequence[float]
    width: int
    is_cut: bool

    def column(self, instant: Milliseconds) -> int:
        """The column of an instant, from 0."""
        place = max(bisect_right(self.ticks, instant) - 1, 0)
        column = self.columns[place]
        if place + 1 < len(self.ticks) and instant > self.ticks[place]:
            part = (instant - self.ticks[place]) / (self.ticks[place + 1] - self.ticks[place])
            column += part * (self.columns[place + 1] - column)
        return min(int(column), self.width - 1)


def axis_for(steps: Sequence[Step], *, now: Milliseconds, width: int) -> Axis:
    """The axis on which all steps fit. Of the times between two neighbouring instants, those that are far longer than
    the others are cut down."""
    ticks = sorted({instant for step in steps for instant in (step.at, end_of(step, now))})
    lengths = [later - earlier for earlier, later in pairwise(ticks)]
    most = _longest_drawn(lengths)
    drawn = [min(length, most) for length in lengths]  # guard: trace-axis-long-wait-capped
    scale = (width - 1) / sum(drawn) if drawn else 0.0
    columns = [0.0]
    for length in drawn:
        columns.append(columns[-1] + length * scale)
    return Axis(ticks=ticks, columns=columns, width=width, is_cut=any(length > most for length in lengths))


def end_of(step: Step, now: Milliseconds) -> Milliseconds:
    """Where a step ends, if it has to end now."""
    return max(step.at, now if step.until is None else step.until)


def _longest_drawn(lengths: Sequence[Milliseconds]) -> float:
    """How long a time may be drawn. The longest ones are all cut to what is then LONGEST_PART of the whole."""
    ordered = sorted(lengths, reverse=True)
    for cut, longest_uncut in enumerate(ordered):
        share = 1 - LONGEST_PART * cut
        if share <= 0:
            return float(longest_uncut)
        most = LONGEST_PART * sum(ordered[cut:]) / share
        if longest_uncut <= most:
            return most
    return min(4.0 * ordered[-1], float(ordered[0])) if ordered else 0.0  # too few for that
