"""Every fault strikes every call that the handlers make to AWS; `make prove` strikes pairs of them too."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.simulation.crashes.wire import MODES

pytestmark = pytest.mark.promise("fault-at-any-call")

ROOT = Path(__file__).parents[2]


def python(*arguments: str) -> str:
    """The output of a separate process: histories branch by fork, which a process with threads must not do."""
    path = os.pathsep.join(str(ROOT / part) for part in ("layers/core", "cli", "scripts", "."))
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


NOTHING_IS_READ = ("cancelled", "never uploaded", "uploaded when withdrawn", "never found", "withdrawn while fetched")


def struck(history: str, *scale: str) -> None:
    """Strikes each call of the history with every fault."""
    output = python(*("-m", "tests.simulation.crashes", "--faults", "1", "--history", history), "--jobs", "1", *scale)
    print(output)
    row = re.search(rf"^{history} +1 +([\d,]+) +([\d,]+) +[\d,]+ +100 ", output, re.MULTILINE)
    assert row is not None, "each point, by every fault"
    points, strikes = (int(number.replace(",", "")) for number in row.groups())
    damaged = strikes - (len(MODES) - 1) * points
    assert (damaged > 0) == (history not in NOTHING_IS_READ), "and each object that is read arrives damaged once"


@pytest.mark.parametrize("history", ["good", "uploaded", "never found"])
def test_every_promise_holds_whatever_fault_strikes_any_one_call_of_a_small_history(history: str) -> None:
    struck(history, "--shards", "1", "--attempts", "2")


@pytest.mark.long
@pytest.mark.parametrize(
    "history",
    [
        *("poison, mended and replayed", "deleted", "deleted while developed", "cancelled", "refused", "good"),
        *("output lost and redone", "amid trouble", "without its original"),
        *("uploaded", "uploaded without notification", "uploaded when withdrawn", "never uploaded"),
        *("fetched", "never found", "withdrawn while fetched"),
    ],
)
def test_every_promise_holds_whatever_fault_strikes_any_one_call(history: str) -> None:
    # Three attempts have a first, a last and one between; more are like that one, and `make prove` strikes those too.
    struck(history, "--shards", "2", "--attempts", "3")


ONE_MORE_CALL = """
import darkroom.operations.images.transcode_image as operation
from tests.simulation.crashes.exploration import explore, prepare
from tests.simulation.crashes.scale import Scale

small = Scale(shards=1, attempts=2)
prepare()
before = explore("refused", small, faults=1)
claim = operation._claim

def claims_after_another_look(ports, delivery, **others):
    ports.images.get(delivery.message.image_id)
    return claim(ports, delivery, **others)

operation._claim = claims_after_another_look
after = explore("refused", small, faults=1)
print("points", len(after.points) - len(before.points), "struck", after.struck[1] - before.struck[1])
"""


def test_a_call_that_is_new_is_struck_too_without_being_named() -> None:
    assert f"points 1 struck {len(MODES) - 1}" in python("-c", ONE_MORE_CALL)


EVERY_MINUTE = """
from tests.simulation.crashes.exploration import undisturbed
from tests.simulation.crashes.histories import HISTORIES
from tests.simulation.crashes.scale import Scale

small = Scale(shards=1, attempts=2)
for history in (HISTORIES["good"], HISTORIES["cancelled"], HISTORIES["deleted"]):
    one, other = (undisturbed(history, small, every_minute=every) for every in (False, True))
    assert other.ending == one.ending, history.name
    print(history.name, len(other.points) - len(one.points), "calls more")
"""


def test_a_sweep_in_a_minute_when_nothing_is_due_changes_nothing() -> None:
    output = python("-c", EVERY_MINUTE)
    assert re.search(r"^deleted [1-9]\d* calls more", output, re.MULTILINE)
