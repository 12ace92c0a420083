"""An encoder's quality by bytes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, kw_only=True)
class Curve:
    """Scores by bytes, ascending."""

    points: Sequence[tuple[int, float]]

    def score_at(self, size: int) -> float:
        """The score of that many bytes, by a straight line over their logarithm; at the ends, of the nearest point."""
        sizes, scores = zip(*self.points, strict=True)
        return float(np.interp(math.log(size), np.log(sizes), scores))
