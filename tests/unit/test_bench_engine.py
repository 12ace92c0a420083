"""The engine benchmark's own arithmetic: ratios, sizes, goals, and what it reports about a file."""

import io
import math
import struct
from pathlib import Path
from typing import Any, cast

import pytest
from PIL import Image, ImageCms

from benchmarks.engine import chart, goals, table
from benchmarks.engine.engines import DARKROOM, ENGINES, SHARP_CASCADE, Engine, NoSharp, Ran, Worker, install_sharp
from benchmarks.engine.findings import Judged
from benchmarks.engine.jobs import ENCODING, J3, J4, JOBS, PNG, Encoding, Job, fitted_inside, request_of
from benchmarks.engine.kinds import huffman_bytes, kind_of
from benchmarks.engine.ratios import order_effect_percent, ratio_by_order, ratio_of, spread_of
from benchmarks.engine.rows import variant_rows
from benchmarks.engine.sources import Source, display_p3
from benchmarks.engine.timing import Cell, NoSuchCell, Stage, Timed, cells_of, measure, plan_of
from proof.fakes.pictures import encoded, jpeg, picture

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


def test_the_goals_look_at_sharp_and_darkroom_alone() -> None:
    plan = goals.plan_of_ratios(cells_of([SOURCE]), ENGINES)
    assert [cell.name for cell, _ in plan] == ["native:J3", "native:J4"]
    assert {engine.name for _, engines in plan for engine in engines} == {
        "sharp-per-variant",
        "sharp-cascade",
        "darkroom",
    }


# ── Goals ─────────────────────────────────────────────────────────────────────────────────────────────────────────

RATIO = goals.RatioGoal(cell="native:J4", sharp=SHARP_CASCADE, limit=1.25)
MOST = goals.RatioGoal(cell="native:J4", sharp=SHARP_CASCADE, limit=1.2, at_most=True)


def times(**cpu_ms: list[float]) -> Timed:
    by_engine = {("native:J4", name.replace("_", "-")): values for name, values in cpu_ms.items()}
    return Timed(cpu_ms=by_engine, sizes={})


@pytest.mark.parametrize(("sharp_ms", "holds"), [(125.0, True), (124.0, False)])
def test_a_ratio_goal_holds_from_its_limit_on(sharp_ms: float, holds: bool) -> None:
    goal = goals.ratio_goal(RATIO, times(sharp_cascade=[sharp_ms] * 2, darkroom=[100.0] * 2))
    assert (goal.value, goal.holds) == (sharp_ms / 100, holds)


@pytest.mark.parametrize(("own_ms", "holds"), [(120.0, True), (121.0, False)])
def test_a_goal_with_a_ceiling_divides_the_other_way_round(own_ms: float, holds: bool) -> None:
    goal = goals.ratio_goal(MOST, times(sharp_cascade=[100.0] * 2, darkroom=[own_ms] * 2))
    assert (goal.value, goal.holds) == (own_ms / 100, holds)


@pytest.mark.parametrize("wanted", [RATIO, MOST])
def test_without_sharp_a_goal_about_it_is_missed(wanted: goals.RatioGoal) -> None:
    goal = goals.ratio_goal(wanted, times(darkroom=[100.0] * 2))
    assert math.isnan(goal.value) and not goal.holds


def test_the_worst_variant_decides_over_quality() -> None:
    full = {"large": Judged(score=80, size=1000, kind=""), "thumb": Judged(score=80, size=100, kind="")}
    judged = {"large": Judged(score=78.5, size=1000, kind=""), "thumb": Judged(score=81, size=104, kind="")}
    score, size = goals.quality_goals("native:J4", {"native:J4": judged}, {"native:J4": full})
    assert (score.value, score.holds) == (-1.5, False)
    assert (size.value, size.holds) == (1.04, False)
    assert [row["bytes_of_full_decode"] for row in variant_rows(judged, full)] == [1.0, 1.04]


def test_without_node_the_reader_is_told_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NoSharp, match=r"install Node\.js"):
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
    panels = [chart.Panel(title="a < b", bars={"sharp": 2.0, "Darkroom": 4.0}, own="Darkroom")]
    first, second = (chart.drawn(panels, title="t", subtitle="s", footnote="f") for _ in range(2))
    assert first == second
    assert "a &lt; b" in first
    widths = {line.split('class="')[1].split('"')[0]: line for line in first.splitlines() if 'height="14"' in line}
    assert widths.keys() == {"bar", "own"}


@pytest.mark.parametrize(("value", "expected"), [(0.474, "0.47"), (3.04, "3.0"), (12.34, "12.3")])
def test_figures_are_short(value: float, expected: str) -> None:
    assert chart.figure(value) == expected
