"""Which dead letters a command is about, as it was typed."""

from __future__ import annotations

import re
from dataclasses import dataclass

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)([smhd])")


@dataclass(frozen=True, kw_only=True)
class Filters:
    """The letters that were asked for: those that fit all that was given."""

    lane: str | None = None
    cause: str | None = None
    tenant: str | None = None
    image: str | None = None
    standing: str | None = None
    older_than: str | None = None
    newer_than: str | None = None

    @property
    def given(self) -> dict[str, str]:
        """What was given, by the names of the options."""
        return {f"--{name.replace('_', '-')}": value for name, value in vars(self).items() if value is not None}


def seconds_of(duration: str | None) -> float | None:
    """How long "90s", "30m", "6h" or "12d" is. Raises ValueError for anything else."""
    if duration is None:
        return None
    match = _DURATION.fullmatch(duration)
    if match is None:
        raise ValueError(f"{duration!r} is no duration like 90s, 30m, 6h or 12d.")
    return float(match[1]) * _UNITS[match[2]]
