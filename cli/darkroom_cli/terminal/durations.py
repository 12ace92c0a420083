"""Reads durations as people type them."""

from __future__ import annotations

import re

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)([smhd])")


def seconds_of(duration: str | None) -> float | None:
    """How long "90s", "30m", "6h" or "12d" is. Raises ValueError for anything else."""
    if duration is None:
        return None
    match = _DURATION.fullmatch(duration)
    if match is None:
        raise ValueError(f"{duration!r} is not a duration like 90s, 30m, 6h or 12d.")
    return float(match[1]) * _UNITS[match[2]]
