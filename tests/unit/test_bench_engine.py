"""The engine benchmark's own arithmetic: ratios, sizes, goals, and what it reports about a file."""

import io
import math
import statistics
import struct
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from PIL import Image, ImageCms

from benchmarks.engine import chart, goals, table
from benchmarks.engine.curve import Curve
from benchmarks.engine.dollars import dollars_of
from benchmarks.engine.engines import (
    DARKROOM,
    ENGINES,
    SHARP_CASCADE,
    Engine,
    EngineFailed,
    Ran,
    Worker,
    darkroom_at,
    install_sharp,
)
from benchmarks.engine.findings import Judged
from benchmarks.engine.jobs import ENCODING, J3, J4, JOBS, PNG, Encoding, Job, fitted_inside, request_of
from benchmarks.engine.kinds import huffman_bytes, kind_of
from benchmarks.engine.ratios import order_effect_percent, ratio_by_order, ratio_of, spread_of
from benchmarks.engine.rows import variant_rows
from benchmarks.engine.sources import Source, display_p3
from benchmarks.engine.timing import Cell, NoSuchCell, Stage, Timed, cells_of, measure, plan_of
from checks.node_packages import NoNode
from tests.support.fakes.pictures import encoded, jpeg, picture

SOURCE = Source(
    name="native", short_title="12 MP JPEG", note="", path=Path("a.jpg"), width=4000, height=3000, jobs=(J3, J4)
)


def test_a_ratio_is_taken_round_by_round() -> None:
    # The machine was three times slower in the second round: a ratio of medians would miss that it is always 2.
    assert ratio_of([20, 60, 22], [10, 30, 11]) == 2


def test_a_ratio_uses_the_rounds_that_both_have() -> None:
    assert ratio_of([20, 60], [10, 30, 1000, 1000]) == 2


def test_even_rounds_are_forward_and_odd_ones_reversed() -> None:
    assert ratio_by_order([20, 33, 20, 33], [10, 11, 10, 11]) == (2, 3)


@pytest.mark.parametrize(("forward", "reversed_", "percent"), [(1.03, 1.0, 3), (1.0, 1.0, 0), (0.9, 1.0, 10)])
def test_the_order_effect_is_how_far_a_ratio_moves(forward: float, reversed_: float, percent: float) -> None:
    assert order_effect_percent(forward, reversed_) == pytest.approx(percent)


def test_a_spread_is_median_and_quartiles() -> None:
    spread = spread_of([5, 1, 3, 2, 4])
    assert (spread.lower, spread.median, spread.upper) == (2, 3, 4)
    assert spread_of([7]).upper == 7


@pytest.mark.parametrize(
    ("size", "side", "expected"),
    [
        ((3984, 2988), 1920, (1920, 1440)),
        ((6000, 4000), 800, (800, 533)),
        ((2988, 3984), 256, (192, 256)),
        ((100, 50), 256, (100, 50)),
        ((10_000, 1), 256, (256, 1)),
        ((1, 10_000), 256, (1, 256)),
    ],
)
def test_a_variant_fits_its_square_and_is_never_enlarged(
    size: tuple[int, int], side: int, expected: tuple[int, int]
) -> None:
    assert fitted_inside(*size, side) == expected


@pytest.mark.parametrize("job", JOBS.values(), ids=lambda job: job.name)
def test_variants_come_largest_first_and_differ_in_name(job: Job) -> None:
    first, *others = job.variants
    assert all(variant.side <= first.side for variant in others)
    assert len({variant.name for variant in job.variants}) == len(job.variants)


def test_a_request_carries_every_setting() -> None:
    request = request_of(J4, "a.jpg")
    assert request["encoding"]["jpeg_optimize"] is ENCODING.jpeg_optimize
    assert [variant["format"] for variant in request["variants"]] == ["jpeg", "jpeg", "jpeg", "webp"]


def test_settings_are_said_in_words() -> None:
    assert ENCODING.of_job(J4) == ["JPEG q80 4:2:0 baseline, standard Huffman tables", "WebP q80 method 4"]
    assert Encoding(png_adaptive_filter=True).of_job(PNG)[0].startswith("PNG level 6, adaptive filters")


# ── Rounds ────────────────────────────────────────────────────────────────────────────────────────────────────────


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


def test_what_differs_in_colours_alone_runs_where_there_are_some() -> None:
    assert not any("colours-last" in line for line in measured(ENGINES, SOURCE, rounds=2)[0])


@pytest.mark.parametrize("rounds", [0, 1, 3])
def test_both_orders_have_as_many_rounds(rounds: int) -> None:
    with pytest.raises(ValueError, match="even"):
        Stage(name="test", plan=(), rounds=rounds)


def test_cells_are_chosen_by_original_or_by_job() -> None:
    assert [cell.name for cell in cells_of([SOURCE], ["native"])] == ["native:J3", "native:J4"]
    assert [cell.name for cell in cells_of([SOURCE], ["native:J4"])] == ["native:J4"]
    with pytest.raises(NoSuchCell, match="native:J4"):
        cells_of([SOURCE], ["native:J5"])


def test_only_the_set_has_goals_and_only_the_rivals_are_measured_for_them() -> None:
    photo = replace(SOURCE, name="photo", is_in_set=True)
    plan = goals.plan_of_set(cells_of([SOURCE, photo]), ENGINES)
    assert [cell.name for cell, _ in plan] == ["photo:J3", "photo:J4"]
    assert {engine.name for _, engines in plan for engine in engines} == {"sharp-cascade", "darkroom", "least"}


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


def test_one_slow_photo_misses_the_goal_of_the_worst() -> None:
    assert not goals.ratio_goal(WORST, *measured_set(city=125, sea=109, dog=190)).holds


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


def test_without_node_the_reader_is_told_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NoNode, match=r"install Node\.js"):
        install_sharp()


# ── Files ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, "JPEG 4:2:0 baseline, standard Huffman tables"),
        ({"optimize": True}, "JPEG 4:2:0 baseline, optimised Huffman tables"),
        ({"subsampling": "4:4:4"}, "JPEG 4:4:4 baseline, standard Huffman tables"),
        ({"progressive": True}, "JPEG 4:2:0 progressive, optimised Huffman tables"),
    ],
)
def test_a_jpeg_tells_its_settings(options: dict[str, Any], expected: str) -> None:
    body = jpeg(**options)
    assert kind_of(Image.open(io.BytesIO(body)), body) == expected


@pytest.mark.parametrize(
    ("file_format", "options", "expected"),
    [
        ("PNG", {}, "PNG RGB, lossless"),
        ("WEBP", {}, "WEBP RGB, lossy"),
        ("WEBP", {"lossless": True}, "WEBP RGB, lossless"),
    ],
)
def test_other_files_tell_whether_they_are_lossless(file_format: str, options: dict[str, Any], expected: str) -> None:
    body = encoded(picture(), file_format, **options)
    assert kind_of(Image.open(io.BytesIO(body)), body) == expected


def test_huffman_tables_are_counted_before_the_first_scan() -> None:
    table_segment = b"\xff\xc4" + struct.pack(">H", 22) + bytes(20)
    assert huffman_bytes(b"\xff\xd8" + table_segment * 2 + b"\xff\xda" + table_segment) == 40


def test_the_display_p3_profile_means_what_its_name_says() -> None:
    to_p3 = ImageCms.buildTransform(
        ImageCms.createProfile("sRGB"), ImageCms.ImageCmsProfile(io.BytesIO(display_p3())), "RGB", "RGB"
    )
    image = Image.new("RGB", (1, 1), (255, 0, 0))
    converted = ImageCms.applyTransform(image, to_p3)
    assert converted is not None
    red = converted.getpixel((0, 0))
    # sRGB's red in Display P3 (CSS Color 4, section 10.3): color(display-p3 0.9175 0.2003 0.1386).
    assert isinstance(red, tuple)
    assert all(abs(a - b) <= 1 for a, b in zip(red, (234, 51, 35), strict=True))


# ── What is read ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_columns_are_aligned() -> None:
    assert (
        table.aligned([("engine", "ms"), ("a", "1.0"), ("bc", "100.0")])
        == "engine     ms\na         1.0\nbc      100.0"
    )


def test_the_chart_is_the_same_for_the_same_figures() -> None:
    bars = {"sharp": chart.Bar(least=0.5, median=0.8, most=1.1), "Darkroom": chart.Bar(least=1, median=1, most=1)}
    panels = [chart.Panel(title="a < b", bars=bars, own="Darkroom")]
    first, second = (chart.drawn(panels, title="t", subtitle="s", footnote="f") for _ in range(2))
    assert first == second
    assert "a &lt; b" in first
    widths = {line.split('class="')[1].split('"')[0]: line for line in first.splitlines() if 'height="14"' in line}
    assert widths.keys() == {"bar", "own"}
    assert first.count('class="line"') == 1  # what does not vary has no spread


def test_an_earlier_commit_is_a_goal_of_each_job_over_the_set_and_other_bytes_are_marked(tmp_path: Path) -> None:
    earlier = darkroom_at(tmp_path / "1a2b3c")
    cells = cells_of([SOURCE, replace(SOURCE, name="other"), replace(SOURCE, name="third")])
    now = {"native": [103.0, 103.0], "other": [101.0, 101.0], "third": [150.0, 150.0]}
    timed = Timed(
        cpu_ms={(cell.name, earlier.name): [100.0, 100.0] for cell in cells}
        | {(cell.name, DARKROOM.name): now[cell.source.name] for cell in cells},
        sizes={(cell.name, engine.name): {"thumb": 7} for cell in cells for engine in (earlier, DARKROOM)}
        | {("third:J4", DARKROOM.name): {"thumb": 8}},
    )
    reached = goals.goals_beside_earlier(cells, earlier, timed)
    assert [(goal.name[:2], round(goal.value, 3), goal.holds) for goal in reached] == [
        ("J3", 1.03, False),
        ("J4", 1.03, False),
    ]
    different = [line for line in table.of_earlier(cells, earlier, timed).splitlines() if "different" in line]
    assert [line.split()[0] for line in different] == ["third:J4"]


def test_the_code_of_an_earlier_commit_is_its_own(tmp_path: Path) -> None:
    module = tmp_path / "layers" / "core" / "darkroom" / "imaging.py"
    module.parent.mkdir(parents=True)
    module.write_text("raise SystemExit(f'this is {__file__}')")
    with pytest.raises(EngineFailed, match="Darkroom at"):
        Worker(darkroom_at(tmp_path), core=0)
