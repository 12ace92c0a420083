from __future__ import annotations

import io
import json
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from rich.console import Console

from darkroom_cli.terminal import display


def paper() -> tuple[Console, io.StringIO]:
    text = io.StringIO()
    return Console(file=text, width=20), text


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


def test_where_nobody_watches_progress_is_a_plain_line_now_and_then() -> None:
    out, text = paper()
    notes, noted = paper()
    now = 0.0
    with display.ProgressReport(out, notes=notes, clock=lambda: now) as report:
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


def test_a_document_for_programs_is_ascii(capsys: pytest.CaptureFixture[str]) -> None:
    display.print_json({"message": "a\x1b[2J\x9b\u202eé"})
    shown = capsys.readouterr().out
    assert shown.isascii() and "\x1b" not in shown
    assert json.loads(shown) == {"message": "a\x1b[2J\x9b\u202eé"}


@pytest.mark.guards("operate-listener-per-thread")
def test_who_listens_gets_what_its_own_thread_shows_and_the_terminal_nothing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")

    all_listen = Barrier(4)

    def show(number: int) -> display.Shown:
        with display.listening() as shown:
            all_listen.wait()
            for _ in range(50):
                display.line(display.output(), f"line {number} " + "x" * 300, style="bold")
                display.complain(f"trouble {number}")
                display.print_json({"number": number})
        return shown

    with ThreadPoolExecutor(4) as pool:
        for number, shown in enumerate(pool.map(show, range(4))):
            assert set(shown.lines) == {f"line {number} " + "x" * 300}
            assert set(shown.complaints) == {f"error: trouble {number}"}
            assert shown.documents == [{"number": number}] * 50
    assert capsys.readouterr() == ("", "")
    display.line(display.output(), "afterwards")
    assert "afterwards" in capsys.readouterr().out
