"""Every call that the handlers make to AWS is struck by every fault; `make prove` strikes every pair of them too."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def python(*arguments: str) -> str:
    """What a process of its own prints: histories branch by fork, which a process with threads must not."""
    path = os.pathsep.join(str(ROOT / part) for part in ("layers/core", "tools", "."))
    ran = subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, f"{ran.stdout}\n{ran.stderr}"
    return ran.stdout


def strike(*histories: str) -> None:
    """Plays the histories with every single fault: no promise may break, and no point may be left out."""
    chosen = [argument for history in histories for argument in ("--history", history)]
    told = python("-m", "benchmarks.prove.crashes", "--faults", "1", "--shards", "1", "--jobs", "1", *chosen)
    print(told)
    rows = [line for line in told.splitlines() if line.startswith(histories) and not line.endswith(" s")]
    assert len(rows) == len(histories)
    for row in rows:
        faults, points, struck, _, percent, *_, broken = row.split()[-9:]
        assert (faults, percent, broken) == ("1", "100", "0")
        assert int(struck.replace(",", "")) == 4 * int(points), "every fault, at each point that there is"


def test_a_poison_image_keeps_every_promise_whatever_befalls_any_one_call() -> None:
    strike("poison, mended and replayed")


ONE_MORE_CALL = """
import darkroom.operations.transcode_image as operation
from benchmarks.prove.crashing.exploration import undisturbed
from benchmarks.prove.crashing.histories import HISTORIES
from benchmarks.prove.crashing.scale import Scale

def points():
    return len(undisturbed(HISTORIES["refused"], Scale(shards=1, attempts=2)).points)

before, claim = points(), operation._claim

def claims_after_another_look(delivery, *, images, clock):
    images.get(delivery.message.image_id)
    return claim(delivery, images=images, clock=clock)

operation._claim = claims_after_another_look
print("points more:", points() - before)
"""


def test_a_call_that_is_new_is_a_point_without_being_named() -> None:
    assert "points more: 1\n" in python("-c", ONE_MORE_CALL)


def test_an_image_keeps_every_promise_whatever_befalls_any_one_call() -> None:
    strike("cancelled", "deleted while developed", "deleted", "good", "refused")


EVERY_MINUTE = """
from benchmarks.prove.crashing.exploration import undisturbed
from benchmarks.prove.crashing.histories import HISTORIES
from benchmarks.prove.crashing.scale import Scale

for name in ("cancelled", "deleted"):
    with_due, with_all = (
        undisturbed(HISTORIES[name], Scale(shards=1, attempts=2), every_minute=every) for every in (False, True)
    )
    assert with_all.ending == with_due.ending, name
    assert len(with_all.points) > len(with_due.points), name
"""


def test_a_sweep_in_a_minute_when_nothing_is_due_changes_nothing() -> None:
    python("-c", EVERY_MINUTE)
