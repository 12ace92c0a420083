"""The result of a benchmark: a JSON file under build/reports, and a last line that counts its goals."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isnan
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
REPORTS = ROOT / "build" / "reports"


@dataclass(frozen=True, kw_only=True)
class Goal:
    """A figure and its limit: a lower bound if `at_least`, otherwise an upper bound."""

    name: str
    value: float
    limit: float
    at_least: bool = False

    @property
    def holds(self) -> bool:
        """Whether the figure is within its limit (inclusive). A NaN never is."""
        return self.value >= self.limit if self.at_least else self.value <= self.limit


def write_report(
    name: str,
    *,
    seed: int | None,
    rows: Sequence[Mapping[str, Any]],
    goals: Sequence[Goal],
    folder: Path = REPORTS,
    times_unjudged: str | None = None,
) -> Path:
    """Write `<folder>/<name>.json`, and print each missed goal and then the line `goals: N hold, M miss`.

    With `times_unjudged` the goals are times, which are no failures: they are printed as such, or not judged at all for
    the reason that it gives; "" gives none.
    """
    document = {
        "commit": commit_of(ROOT),
        "seed": seed,
        "rows": list(rows),
        "goals": [
            # JSON has no NaN: a goal that could not be measured has no value.
            {
                "name": goal.name,
                "value": None if isnan(goal.value) else goal.value,
                "limit": goal.limit,
                "holds": None if times_unjudged else goal.holds,
            }
            for goal in goals
        ],
    }
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.json"
    path.write_text(json.dumps(document, indent=2) + "\n")
    if times_unjudged:
        print(f"times: not judged, as {times_unjudged}", flush=True)
        return path
    held = sum(goal.holds for goal in goals)
    kind, hold, miss = ("goals", "hold", "miss") if times_unjudged is None else ("times", "within budget", "over")
    for goal in goals:
        if not goal.holds:
            said = "missed" if times_unjudged is None else "slow"
            print(f"{said}: {goal.name} is {goal.value:g}, not {'≥' if goal.at_least else '≤'} {goal.limit:g}")
    print(f"{kind}: {held} {hold}, {len(goals) - held} {miss}", flush=True)
    return path


def commit_of(folder: Path) -> str | None:
    """The commit that `folder` is at, with `+changes` if files differ from it; None outside a repository."""
    head = _git(folder, "rev-parse", "HEAD")
    if head is None:
        return None
    return f"{head}+changes" if _git(folder, "status", "--porcelain") else head


def _git(folder: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(["git", *arguments], cwd=folder, capture_output=True, text=True, check=True)
    except (subprocess.CalledProcessError, FileNotFoundError):  # not a repository, or no git
        return None
    return done.stdout.strip()
