"""Reports: goals within their limits, the commit that was measured, and the last line."""

import json
import subprocess
from pathlib import Path

import pytest

from repository.report import Goal, commit_of, write_report


@pytest.mark.parametrize(
    ("value", "limit", "at_least", "holds"),
    [
        (1.25, 1.25, True, True),
        (1.24, 1.25, True, False),
        (2.0, 2.0, False, True),
        (2.1, 2.0, False, False),
        (float("nan"), 0, True, False),
        (float("nan"), 0, False, False),
    ],
)
def test_a_goal_holds_up_to_its_limit(value: float, limit: float, at_least: bool, holds: bool) -> None:
    assert Goal(name="speed", value=value, limit=limit, at_least=at_least).holds is holds


def test_a_report_has_all_its_keys_and_ends_with_the_count_of_goals(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    goals = [
        Goal(name="crashes", value=0, limit=0, at_least=False),
        Goal(name="ratio", value=1.5, limit=2, at_least=True),
    ]
    path = write_report("speed", seed=7, rows=[{"engine": "ours"}], goals=goals, folder=tmp_path / "reports")
    assert path == tmp_path / "reports" / "speed.json"
    document = json.loads(path.read_text())
    assert list(document) == ["commit", "seed", "rows", "goals"]
    assert (document["seed"], document["rows"]) == (7, [{"engine": "ours"}])
    assert document["goals"] == [
        {"name": "crashes", "value": 0, "limit": 0, "holds": True},
        {"name": "ratio", "value": 1.5, "limit": 2, "holds": False},
    ]
    assert capsys.readouterr().out.splitlines() == ["missed: ratio is 1.5, not ≥ 2", "goals: 1 hold, 1 miss"]


def test_the_commit_tells_whether_files_were_changed(tmp_path: Path) -> None:
    def git(*arguments: str) -> str:
        identity = ["-c", "user.name=nobody", "-c", "user.email=nobody@example.com", "-c", "commit.gpgsign=false"]
        return subprocess.run(
            ["git", *identity, *arguments], cwd=tmp_path, check=True, capture_output=True, text=True
        ).stdout.strip()

    assert commit_of(tmp_path) is None
    git("init", "--quiet")
    assert commit_of(tmp_path) is None  # nothing is committed yet
    git("commit", "--quiet", "--allow-empty", "--message", "first")
    head = git("rev-parse", "HEAD")
    assert commit_of(tmp_path) == head
    (tmp_path / "new.txt").write_text("changed")
    assert commit_of(tmp_path) == f"{head}+changes"
