"""The page of the benchmarks: its counted figures are those of the programs' reports."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchmarks import documented
from benchmarks.calls.__main__ import priced
from benchmarks.delay.plane import Load, Plane
from benchmarks.documented import FIGURES, PAGE, refreshed, row_with, stale
from benchmarks.reads.__main__ import large_image, units_of, ways
from darkroom.domain.schedules.schedule import MAX_DELAY_SECONDS


@pytest.mark.parametrize("program", FIGURES)
def test_the_page_has_each_counted_figure_once(program: str) -> None:
    page = PAGE.read_text()
    assert all(figure.place(page)[1] > 0 for figure in FIGURES[program])


def test_the_page_says_how_many_units_each_read_takes() -> None:
    row_units = units_of(large_image(0, 1_795_251_600_000))
    rows = [{"way": way.name, "read_units_each": way.rows * row_units + way.index_units} for way in ways("0" * 26)]
    assert stale("reads", rows, short=True) == []


def test_a_figure_that_has_changed_is_named_and_put_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    page = tmp_path / "benchmarks.md"
    page.write_text(PAGE.read_text())
    monkeypatch.setattr(documented, "PAGE", page)
    sweep: dict[str, Any] = {"of": "an idle sweep", "calls": 66.0, "dollars_a_million": 8.5}
    sweep |= {"dynamodb:Query": 54.0, "sqs:GetQueueAttributes": 7.0}
    prices: list[dict[str, Any]] = [
        {"of": of, "way": "one after another", "calls": 1.0, "dollars_a_million": priced(of, {})}
        for of in ("POST /images", "a status", "transcode")
    ]
    rows = [sweep, *prices, {**row_with(prices, of="POST /images"), "way": "eight at once"}]
    rows.append({**row_with(prices, of="transcode"), "way": "eight at once"})
    named = stale("calls", rows, short=True)
    assert [sentence.split(",")[0] for sentence in named] == ["74 is 66 now", "67 is 54 now", "6.99 is 8.50 now"]
    page.write_text(refreshed(page.read_text(), "calls", rows, short=False))
    assert stale("calls", rows, short=False) == []
    assert "| a sweep with nothing to do | 66: 54 looks" in page.read_text()


def test_the_furthest_load_of_the_delays_can_be_scheduled() -> None:
    furthest = Load(name="furthest", days=MAX_DELAY_SECONDS / 86_400, aligned=True)
    assert Plane(load=furthest, images=10, seed=1).run()["released"] == 10
