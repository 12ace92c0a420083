"""The result of a drill."""

from __future__ import annotations

from dataclasses import dataclass, field

from darkroom_cli.drill.drills import Drill


@dataclass(kw_only=True)
class DrillResult:
    """What a drill has shown: when each alarm fired, in minutes of the stack's time, and the rest as its sentences of
    `problems`, none if everything was as expected."""

    drill: Drill
    fired: dict[str, float] = field(default_factory=dict)
    cleared_after: float | None = None
    pages: int = 0
    all_clears: int = 0
    seconds: float = 0.0
    problems: list[str] = field(default_factory=list)
