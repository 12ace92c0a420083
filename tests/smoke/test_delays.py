"""`darkroom delay` on the local stack: waiting images show at once; rescheduled by id and by day, and withdrawn."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from tests.local.local_stack import LocalStack
from tests.support.fakes.pictures import jpeg

DAY = datetime.now(UTC).date() + timedelta(days=200)
"""Far from anything else that the tests of this stack schedule."""


def delay(stack: LocalStack, *arguments: str) -> str:
    done = stack.darkroom("delay", *arguments)
    assert done.returncode == 0, done.stdout
    return done.stdout


def listed(stack: LocalStack, day: object) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(delay(stack, "ls", "--day", str(day), "--images", "--json"))
    return document


def test_what_waits_is_listed_moved_and_withdrawn(stack: LocalStack, tmp_path: Path) -> None:
    (tmp_path / "photo.jpg").write_bytes(jpeg(64, 48))
    ids = []
    for hour in (8, 8, 20):
        sent = stack.darkroom("upload", tmp_path / "photo.jpg", "--process-at", f"{DAY}T{hour:02d}:00:00Z")
        assert sent.returncode == 0, sent.stdout
        ids.append(sent.stdout.split()[0])
    document = listed(stack, DAY)
    assert [(hour["starts_at"][11:16], hour["images"]) for hour in document["hours"]] == [("08:00", 2), ("20:00", 1)]
    assert {row["id"] for row in document["rows"]} == set(ids)
    assert f"{DAY}" in delay(stack, "ls", "--from", str(DAY))

    moved_to = f"{DAY}T23:30:00.000Z"
    assert delay(stack, "reschedule", ids[0], "--to", moved_to) == f"{ids[0]}  waits until {moved_to}\n"
    printed = delay(stack, "reschedule", "--day", str(DAY), "--hour", "8", "--by", "1d")
    assert "1 image of" in printed and "Nothing was changed." in printed
    assert "Rescheduled 1 image of" in delay(
        stack, "reschedule", "--day", str(DAY), "--hour", "8", "--by", "1d", "--yes"
    )
    assert {(row["id"], row["schedule"]) for row in listed(stack, DAY)["rows"]} == {(ids[0], 1), (ids[2], 0)}
    (next_day,) = listed(stack, DAY + timedelta(days=1))["rows"]
    assert (next_day["id"], next_day["schedule"]) == (ids[1], 1)

    assert "Deleted 2 images of" in delay(stack, "cancel", "--day", str(DAY), "--yes")
    assert delay(stack, "cancel", ids[1]) == f"{ids[1]}  deleted\n"
    for day in (DAY, DAY + timedelta(days=1)):
        assert listed(stack, day)["images"] == 0
    assert stack.darkroom("delay", "reschedule", ids[0], "--delay", "P1D").returncode == 1
