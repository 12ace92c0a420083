from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console

from console.terminal import display
from tests.unit.console.fake_api import FakeApi, image_id_of


def paper() -> tuple[Console, io.StringIO]:
    text = io.StringIO()
    return Console(file=text, width=20), text


@pytest.mark.parametrize(
    ("size_bytes", "expected"),
    [(0, "0 B"), (999, "999 B"), (1_500, "1.5 kB"), (999_999, "1.0 MB"), (1_485_159, "1.5 MB"), (2e9, "2.0 GB")],
)
def test_sizes_are_told_in_decimal_units(size_bytes: float, expected: str) -> None:
    assert display.size(size_bytes) == expected


@pytest.mark.parametrize(("duration", "expected"), [(0.04, "0.0 s"), (59.94, "59.9 s"), (125, "2 min 5 s")])
def test_durations_are_told_in_seconds_and_minutes(duration: float, expected: str) -> None:
    assert display.seconds(duration) == expected


def test_the_usual_counts_are_always_told_and_unusual_ones_when_there_are_any() -> None:
    assert display.counts({"done": 2, "cancelled": 1}) == "0 pending, 0 processing, 2 done, 0 failed, 1 cancelled"


def test_texts_from_elsewhere_stay_on_one_line_and_cannot_move_the_cursor() -> None:
    assert display.printable("a\x1b[2J\nb\udce9é") == "a\ufffd[2J\ufffdb\ufffdé"


def test_a_line_is_never_broken_nor_read_as_markup() -> None:
    out, text = paper()
    display.line(out, "[bold]a line of much more than twenty characters[/bold]")
    assert text.getvalue() == "[bold]a line of much more than twenty characters[/bold]\n"


def test_columns_are_aligned_and_never_cut() -> None:
    out, text = paper()
    rows = [("thumb", "9,120", "a/very/long/path/to/thumb.jpg"), ("x", "1", "b")]
    display.table(out, ("name", "bytes", "file"), rows, right=frozenset({"bytes"}))
    assert text.getvalue().splitlines() == [
        "  name   bytes  file",
        "  thumb  9,120  a/very/long/path/to/thumb.jpg",
        "  x          1  b",
    ]


def document(**changes: Any) -> Any:
    with FakeApi() as api:
        return api.document(image_id_of("x"), "done") | changes


def test_the_dominant_colour_is_shown_as_it_looks_where_there_are_colours() -> None:
    shown = io.StringIO()
    terminal = Console(file=shown, force_terminal=True, color_system="truecolor", width=100)
    # A colour of this test's own: rich remembers a style as the first terminal that showed it could.
    display.findings(terminal, document(placeholder={"thumbhash": "", "color": "#13579b"}))
    assert "colour     #13579b" in shown.getvalue()
    assert "48;2;19;87;155m    " in shown.getvalue(), "four cells with that background"


@pytest.mark.parametrize(
    ("placeholder", "lines"),
    [
        ({"thumbhash": "", "color": "#7a8b5c"}, ["  colour     #7a8b5c"]),
        ({"thumbhash": "", "color": "red on blue"}, []),
        ({}, []),
        (None, []),
    ],
)
def test_where_there_are_no_colours_the_dominant_one_is_told(placeholder: Any, lines: list[str]) -> None:
    out, text = paper()
    display.findings(out, document(placeholder=placeholder))
    assert text.getvalue().splitlines() == lines


def test_notices_are_shown_and_cannot_move_the_cursor() -> None:
    out, text = paper()
    display.findings(out, document(placeholder=None, notices=["one", "\x1b[2Jtwo"]))
    assert text.getvalue().splitlines() == ["  notice     one", "  notice     \ufffd[2Jtwo"]


def test_where_nobody_watches_progress_is_a_plain_line_now_and_then() -> None:
    out, text = paper()
    notes, noted = paper()
    now = 0.0
    with display.Report(out, notes=notes, clock=lambda: now) as report:
        for second in range(12):
            now = float(second)
            report.show("developing", completed=second, total=12, detail=f"{second} done")
        report.say("result")
        report.complain("trouble")
    assert noted.getvalue().splitlines() == [
        "developing: 5 done",
        "developing: 10 done",
        "trouble",
    ]
    assert text.getvalue() == "result\n"
