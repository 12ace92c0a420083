from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console

from darkroom_cli.images import pages
from tests.unit.cli.fake_api import FakeApi, image_id_of


def paper() -> tuple[Console, io.StringIO]:
    text = io.StringIO()
    return Console(file=text, width=20), text


def test_the_usual_counts_are_always_told_and_unusual_ones_when_there_are_any() -> None:
    assert pages.counts({"done": 2, "expired": 1}) == "0 pending, 0 processing, 2 done, 0 failed, 1 expired"


def document(**changes: Any) -> Any:
    with FakeApi() as api:
        return api.document(image_id_of("x"), "done") | changes


def test_the_dominant_colour_is_shown_as_it_looks_where_there_are_colours() -> None:
    shown = io.StringIO()
    terminal = Console(file=shown, force_terminal=True, color_system="truecolor", width=100)
    # A colour that only this test uses: rich remembers a style as the first terminal that showed it could.
    pages.show_findings(terminal, document(placeholder={"thumbhash": "", "color": "#13579b"}))
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
    pages.show_findings(out, document(placeholder=placeholder))
    assert text.getvalue().splitlines() == lines


def test_the_point_that_crops_by_attention_keep_is_told() -> None:
    out, text = paper()
    pages.show_findings(out, document(placeholder=None, attention={"x": 0.6251, "y": 0}))
    assert "".join(text.getvalue().splitlines()) == "  attention  63% from the left, 0% from the top"


def test_notices_are_shown_and_cannot_move_the_cursor() -> None:
    out, text = paper()
    pages.show_findings(out, document(placeholder=None, notices=["one", "\x1b[2Jtwo"]))
    assert text.getvalue().splitlines() == ["  notice     one", "  notice     \ufffd[2Jtwo"]
