"""`darkroom trace`: the life of one image, drawn in the width that there is."""

from __future__ import annotations

import json

import pytest
from rich.cells import cell_len

from darkroom.domain.images.image import Image
from darkroom_cli.operator.domain.trace import LogLine, Step
from darkroom_cli.trace.axis import LONGEST_PART, axis_for
from tests.support.images import NOW, pending
from tests.support.stack import FakeStack
from tests.support.traces import DONE, LATER, PUBLISHED, REQUEST, accepted, done, line, run_line
from tests.unit.cli.conftest import Run

ID = "0" * 26
RETRIED = run_line(1, "put_back", cause="KeyError", enqueued=30, received=80, claimed=90, decoded=150, finished=210)


def hold(stack: FakeStack, image: Image, *lines: LogLine) -> None:
    stack.images.create(image)
    stack.log_lines.lines += lines
    stack.world.now = LATER


def test_a_life_is_drawn_in_time(run: Run, stack: FakeStack) -> None:
    hold(stack, done(), REQUEST, PUBLISHED, DONE)
    shown = run("trace", ID)
    assert shown.exit_code == 0, shown.output
    assert shown.stdout.splitlines()[:3] == [
        f"{ID}  done after 500 ms",
        "slow lane  tenant default  preset standard",
        "accepted 2026-11-21T09:00:00.000Z by the request c",
    ]
    lines = [text.rstrip() for text in shown.stdout.splitlines()]
    (attempt,) = [text for text in lines if "attempt 1  done" in text]
    assert attempt.startswith("   +90 ms  330 ms  attempt 1  done")
    drawn = attempt.replace(" ", "")[-20:]
    assert drawn.index("░") < drawn.index("▒") < drawn.index("█")
    assert any("decode 110 ms, develop 200 ms, store 10 ms, finish 10 ms" in text for text in lines)
    assert lines[-1].startswith("  1 request, 1 attempt, 2 events, 0 delivery attempts, from 3 log lines.")


def test_no_line_is_wider_than_the_terminal_and_a_narrow_one_has_no_drawing(
    run: Run, stack: FakeStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    why = line("message not sent", 50, "submit_image", level="WARNING", cause="the queue does not answer " * 9)
    hold(stack, done(), REQUEST, PUBLISHED, RETRIED, why)
    for width in (200, 100, 80, 60):
        monkeypatch.setenv("COLUMNS", str(width))
        rows = run("trace", ID).stdout.splitlines()[4:-2]
        assert max(map(cell_len, rows)) <= width
        assert any("░" in row for row in rows) is (width > 60)
        assert all(word in " ".join(rows) for word in ("POST /images", "failed: KeyError", "message not sent"))


def test_what_is_not_over_is_drawn_until_now(run: Run, stack: FakeStack) -> None:
    hold(stack, accepted(), REQUEST, PUBLISHED)
    stack.world.now = NOW + 4000
    (waiting,) = [text for text in run("trace", ID).stdout.splitlines() if "slow lane " in text and "┄" in text]
    assert "4.0 s…" in waiting and waiting.rstrip().endswith("▸")


def test_without_lines_it_says_that_only_the_row_is_left(run: Run, stack: FakeStack) -> None:
    hold(stack, done())
    assert "No line about it was found in the logs, which keep 30 days" in run("trace", ID).stdout


def test_an_unknown_image_is_an_error_that_says_what_to_do(run: Run, stack: FakeStack) -> None:
    shown = run("trace", ID)
    assert (shown.exit_code, shown.stdout) == (1, "")
    assert f"There is no image {ID} in shop" in shown.stderr
    assert "./darkroom ls --stack shop --region eu-west-1" in shown.stderr


def test_a_document_holds_every_step(run: Run, stack: FakeStack) -> None:
    hold(stack, done(), REQUEST, PUBLISHED, DONE)
    document = json.loads(run("trace", ID, "--json").stdout)
    assert (document["image_id"], document["requests"], document["log_lines"]) == (ID, ["c"], 3)
    assert [step["kind"] for step in document["steps"]] == ["request", "wait", "event", "attempt", "event"]
    attempt = document["steps"][3]
    assert (attempt["at"], attempt["until"]) == ("2026-11-21T09:00:00.090Z", "2026-11-21T09:00:00.420Z")
    assert [phase["name"] for phase in attempt["phases"]] == ["decode", "develop", "store", "finish"]


def test_what_others_have_written_cannot_move_the_cursor(run: Run, stack: FakeStack) -> None:
    why = line("message not sent", 50, "submit_image", level="WARNING", cause="\x1b[2J\nbye")
    hold(stack, pending(tenant_id="a\x1b[2J"), why)
    assert "\x1b" not in run("trace", ID).stdout


# ── The axis ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def step(at: int, until: int | None) -> Step:
    return Step(kind="wait", at=at, until=until, title="")


@pytest.mark.guards("trace-axis-long-wait-capped")
def test_a_wait_of_days_leaves_room_for_what_took_milliseconds() -> None:
    day = 86_400_000
    steps = [step(0, 50), step(50, day), *(step(day + number * 40, day + number * 40 + 40) for number in range(9))]
    axis = axis_for(steps, now=2 * day, width=101)
    assert axis.is_cut
    assert axis.column(day) - axis.column(50) <= round(LONGEST_PART * 101) + 1
    columns = [axis.column(instant) for step in steps for instant in (step.at, step.until or 0)]
    assert columns == sorted(columns) and (columns[0], columns[-1]) == (0, 100)
    assert axis.column(50) >= 5


@pytest.mark.parametrize("steps", [[], [step(5, 5)], [step(5, 5), step(5, 5)], [step(0, 1), step(1, 10**9)]])
def test_every_instant_has_a_column(steps: list[Step]) -> None:
    axis = axis_for(steps, now=10, width=20)
    assert all(0 <= axis.column(step.at) < 20 for step in steps)
