"""`darkroom orphans`: what it reports, what it asks, and its exit status."""

from __future__ import annotations

import json
import signal
from typing import Any

import pytest

from darkroom_cli.terminal.interrupts import Interrupts
from darkroom_client.client import ApiError
from tests.support.orphans import DAY, PHOTO, a_world, orphaned
from tests.support.stack import OPTIONS, FakeStack
from tests.unit.cli.conftest import Run


@pytest.fixture
def stack(stack: FakeStack, monkeypatch: pytest.MonkeyPatch) -> FakeStack:
    stack.world = a_world()
    monkeypatch.setattr(Interrupts, "wait", lambda _, seconds: stack.world.advance(seconds))
    return stack


def test_a_bucket_in_order_is_said_in_one_line(run: Run, stack: FakeStack) -> None:
    assert run("orphans", "ls").stdout == "There are no originals.\n"
    stack.world.submit(PHOTO)
    said = "Every original has its row: 1 original checked.\n"
    assert run("orphans", "ls").stdout == said
    result = run("orphans", "remove", "--yes")
    assert (result.exit_code, result.stdout) == (0, f"Nothing to remove. {said}")


def test_orphans_are_listed_with_their_weight_and_age_and_what_to_type_next(run: Run, stack: FakeStack) -> None:
    stack.world.submit(PHOTO)
    (orphan,) = orphaned(stack.world, "a")
    stack.world.originals.add("notes.txt", b"x")
    stack.world.advance(3 * DAY)
    orphaned(stack.world, "b")
    lines = run("orphans", "ls").stdout.splitlines()
    assert lines[0] == f"1 original of 3 has no row: {len(PHOTO)} bytes, the oldest stored 3 d 0 h ago."
    assert lines[1] == "1 more without a row are younger than 2d, and are left alone."
    assert lines[2] == "1 object with keys that no original has, left alone: notes.txt"
    assert lines[5].split() == [orphan, str(len(PHOTO)), "bytes", "1", "2026-11-21T09:00:00.000Z"]
    assert lines[-1] == f"What removing them would do:  ./darkroom orphans remove{OPTIONS}"
    document = json.loads(run("orphans", "ls", "--json").stdout)
    assert document == {
        "originals": 3,
        "without_row": 2,
        "young": 1,
        "orphans": 1,
        "bytes": len(PHOTO),
        "oldest_at": "2026-11-21T09:00:00.000Z",
        "table_seems_lost": False,
        "foreign": 1,
        "foreign_keys": ["notes.txt"],
        "rows": [
            {
                "id": orphan,
                "bytes": len(PHOTO),
                "versions": 1,
                "stored_at": "2026-11-21T09:00:00.000Z",
                "hidden": False,
            }
        ],
    }


def test_nothing_is_changed_without_yes(run: Run, stack: FakeStack) -> None:
    stack.world.submit(PHOTO)
    orphaned(stack.world, *(str(number) for number in range(30)))
    stack.world.advance(3 * DAY)
    result = run("orphans", "remove", "--older-than", "48h")
    assert result.exit_code == 0
    assert "They would be removed. Nothing was changed.\n" in result.stdout
    assert "  … and 10 more.\n" in result.stdout
    assert result.stdout.endswith(f"Do it:  ./darkroom orphans remove --older-than 48h{OPTIONS} --yes\n")
    assert {len(versions) for versions in stack.world.originals.kept.values()} == {1}


def test_they_are_removed_when_told_to(run: Run, stack: FakeStack) -> None:
    stack.world.submit(PHOTO)
    orphaned(stack.world, "a", "b")
    stack.world.advance(3 * DAY)
    result = run("orphans", "remove", "--yes")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == f"Removed 2 originals, {2 * len(PHOTO) / 1000:.1f} KB, with all their versions.\n"
    assert len(stack.world.originals.kept) == 1


@pytest.mark.parametrize("age", ["59m", "0s", "soon", "2"])
def test_an_age_at_which_rows_are_on_their_way_is_refused(run: Run, stack: FakeStack, age: str) -> None:
    for command in ("ls", "remove"):
        assert run("orphans", command, "--older-than", age).exit_code == 2
    assert run("orphans", "ls", "--older-than", "1h").exit_code == 0


def test_what_a_table_seems_to_have_lost_is_not_removed_without_a_word_for_the_table(
    run: Run, stack: FakeStack
) -> None:
    orphaned(stack.world, "a", "b")
    stack.world.advance(3 * DAY)
    again = f"./darkroom orphans remove --table-is-whole{OPTIONS} --yes"
    result = run("orphans", "remove")
    assert (result.exit_code, again in result.stdout, "Do it:" in result.stdout) == (0, True, False)
    refused = run("orphans", "remove", "--yes")
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert "error: 2 of 2 originals have no row" in refused.stderr and again in refused.stderr
    assert f"Do it:  {again}\n" in run("orphans", "remove", "--table-is-whole").stdout
    assert len(stack.world.originals.kept) == 2
    assert run("orphans", "remove", "--table-is-whole", "--yes").exit_code == 0
    assert len(stack.world.originals.kept) == 0


def test_an_interrupted_removal_ends_in_good_order_and_is_typed_again(run: Run, stack: FakeStack) -> None:
    stack.world.submit(PHOTO)
    orphaned(stack.world, "a")
    stack.world.advance(3 * DAY)
    hide = stack.world.originals.hide

    def interrupted(image_ids: Any) -> Any:
        stack.world.originals.hide = hide
        signal.raise_signal(signal.SIGINT)
        return hide(image_ids)

    stack.world.originals.hide = interrupted
    result = run("orphans", "remove", "--yes")
    assert result.exit_code == 130
    assert result.stdout.startswith("Removed 0 originals, 0 bytes")
    assert f"For the rest:  ./darkroom orphans remove{OPTIONS} --yes" in result.stderr
    assert "hidden\n" in run("orphans", "ls").stdout
    assert run("orphans", "remove", "--yes").exit_code == 0
    assert len(stack.world.originals.kept) == 1


def test_a_failure_midway_reports_how_far_it_came(run: Run, stack: FakeStack) -> None:
    stack.world.submit(PHOTO)
    orphaned(stack.world, "a")
    stack.world.advance(3 * DAY)

    def fails(*_: object) -> Any:
        raise ApiError("AWS refuses DeleteObjects (AccessDenied)")

    stack.world.originals.remove = fails
    result = run("orphans", "remove", "--yes")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "so far: waiting, 119 of 120" in result.stderr and "AccessDenied" in result.stderr


def test_what_has_got_a_row_meanwhile_is_reported(run: Run, stack: FakeStack) -> None:
    stack.world.submit(PHOTO)
    orphaned(stack.world, "a", "b")
    stack.world.advance(3 * DAY)
    hide = stack.world.originals.hide

    def after_a_repeated_request(image_ids: Any) -> Any:
        stack.world.submit(PHOTO, idempotency_key="a")
        return hide(image_ids)

    stack.world.originals.hide = after_a_repeated_request
    shown = run("orphans", "remove", "--yes").stdout
    assert shown.startswith("Removed 1 original, ")
    assert "Left alone: 1 that have a row by now.\n" in shown
