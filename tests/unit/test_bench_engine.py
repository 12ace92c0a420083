"""The engine benchmark's own arithmetic: ratios, sizes, goals, and what it reports about a file."""

import math
import statistics
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from benchmarks.engine import goals
from benchmarks.engine.curve import Curve
from benchmarks.engine.dollars import dollars_of
from benchmarks.engine.engines import (
    DARKROOM,
    SHARP_CASCADE,
    Engine,
    EngineFailed,
    Ran,
    Worker,
    darkroom_at,
)
from benchmarks.engine.findings import Judged
from benchmarks.engine.jobs import J3, J4, Job
from benchmarks.engine.ratios import ratio_of
from benchmarks.engine.rows import variant_rows
from benchmarks.engine.sources import Source
from benchmarks.engine.timing import Cell, Stage, Timed, measure, plan_of

SOURCE = Source(
    name="native", short_title="12 MP JPEG", note="", path=Path("a.jpg"), width=4000, height=3000, jobs=(J3, J4)
)


def test_a_ratio_is_taken_round_by_round() -> None:
    # The machine was three times slower in the second round: a ratio of medians would miss that it is always 2.
    assert ratio_of([20, 60, 22], [10, 30, 11]) == 2


class RecordingWorker:
    """Records who was asked for what."""

    def __init__(self, engine: Engine, asked: list[str]) -> None:
        self._engine, self._asked = engine, asked

    def run(self, source: Source, job: Job) -> Ran:
        self._asked.append(f"{source.name}:{job.name} {self._engine.name}")
        return Ran(cpu_ms=float(len(self._asked)), sizes={"large": 1}, peak_mb=0)


def measured(engines: tuple[Engine, ...], source: Source, rounds: int) -> tuple[list[str], Timed]:
    asked: list[str] = []
    workers = {engine.name: cast(Worker, RecordingWorker(engine, asked)) for engine in engines}
    stage = Stage(name="test", plan=plan_of([Cell(source=source, job=J3)], engines), rounds=rounds)
    return asked, measure(workers, [stage], say=lambda _: None)


def test_every_other_round_goes_backwards() -> None:
    asked, timed = measured((SHARP_CASCADE, DARKROOM), SOURCE, rounds=2)
    assert [line.split()[1] for line in asked] == ["sharp-cascade", "darkroom", "darkroom", "sharp-cascade"]
    assert timed.cpu_ms["native:J3", "sharp-cascade"] == [1, 4]


# ── Goals ─────────────────────────────────────────────────────────────────────────────────────────────────────────

MEDIAN = goals.RatioGoal(job="J4", other=SHARP_CASCADE, of_set=statistics.median, limit=1.25)
WORST = goals.RatioGoal(job="J4", other=SHARP_CASCADE, of_set=min, limit=1.1)


def measured_set(**sharp_ms: float) -> tuple[list[Cell], Timed]:
    """A photo for each time of sharp's, and Darkroom's 100 ms."""
    cells = [Cell(source=replace(SOURCE, name=name, is_in_set=True), job=J4) for name in sharp_ms]
    cpu_ms = {(cell.name, "darkroom"): [100.0] * 2 for cell in cells}
    for cell, spent in zip(cells, sharp_ms.values(), strict=True):
        if not math.isnan(spent):
            cpu_ms[cell.name, "sharp-cascade"] = [spent] * 2
    return cells, Timed(cpu_ms=cpu_ms, sizes={})


def test_a_goal_is_over_the_set_the_median_or_the_worst() -> None:
    cells, timed = measured_set(city=125, sea=110, dog=190)
    median, worst = goals.ratio_goal(MEDIAN, cells, timed), goals.ratio_goal(WORST, cells, timed)
    assert (median.value, median.holds) == (1.25, True)
    assert (worst.value, worst.holds) == (1.1, True)
    assert worst.name == "J4, worst: sharp, cascade ÷ Darkroom"


def test_what_is_not_in_the_set_does_not_count() -> None:
    cells, timed = measured_set(city=125, sea=50)
    cells[1] = replace(cells[1], source=replace(cells[1].source, is_in_set=False))
    assert goals.ratio_goal(WORST, cells, timed).value == 1.25


@pytest.mark.parametrize("wanted", [MEDIAN, WORST])
def test_without_sharp_or_without_photos_a_goal_is_missed(wanted: goals.RatioGoal) -> None:
    for cells, timed in (measured_set(city=math.nan, sea=150), measured_set()):
        goal = goals.ratio_goal(wanted, cells, timed)
        assert math.isnan(goal.value) and not goal.holds


def test_the_worst_variant_decides_over_quality_and_all_of_them_over_bytes() -> None:
    full = {"large": Judged(score=80, size=1000, kind="JPEG"), "thumb": Judged(score=80, size=100, kind="JPEG")}
    judged = {"large": Judged(score=78.5, size=1000, kind="JPEG"), "thumb": Judged(score=81, size=155, kind="JPEG")}
    score, size = goals.quality_goals({"native:J4": judged}, {"native:J4": full})
    assert (score.value, score.holds) == (-1.5, False)
    assert (size.value, size.holds) == (1.05, False)
    assert [row["bytes_of_full_decode"] for row in variant_rows(judged, full)] == [1.0, 1.55]


def test_lossless_files_do_not_hide_the_bytes_of_the_others() -> None:
    full = {"png": Judged(score=80, size=9000, kind="PNG RGB, lossless"), "jpeg": Judged(score=80, size=100, kind="")}
    judged = full | {"jpeg": Judged(score=80, size=103, kind="")}
    assert goals.quality_goals({"native:J4": judged}, {"native:J4": full})[1].value == 1.03


def test_a_curve_gives_the_score_of_any_size() -> None:
    curve = Curve(points=((100, 60.0), (400, 80.0), (800, 90.0)))
    assert curve.score_at(200) == pytest.approx(70)
    assert (curve.score_at(50), curve.score_at(9000)) == (60, 90)


def test_a_million_images_are_priced_by_the_list() -> None:
    million = dollars_of(100, 1_000_000, 250_000)
    assert million.cpu == pytest.approx(0.1 * 1769 / 1024 * 0.0000133334 * 1e6)
    assert million.storage == pytest.approx(1000 * 12 * 0.023)
    assert million.transfer == pytest.approx(10 * 250 * 0.09)
    assert million.total == pytest.approx(million.cpu + million.storage + million.transfer)


def test_the_code_of_an_earlier_commit_is_its_own(tmp_path: Path) -> None:
    module = tmp_path / "layers" / "core" / "darkroom" / "imaging.py"
    module.parent.mkdir(parents=True)
    module.write_text("raise SystemExit(f'this is {__file__}')")
    with pytest.raises(EngineFailed, match="Darkroom at"):
        Worker(darkroom_at(tmp_path), core=0)
