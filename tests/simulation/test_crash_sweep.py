"""Every fault strikes every call that the handlers make to AWS, and those that histories have in common once; `make
prove` strikes pairs of them too."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import forkserver, get_context

import pytest

import darkroom.operations.images.transcode_image as operation
from tests.simulation.crashes.__main__ import main
from tests.simulation.crashes.exploration import Findings, explore, own_points, strikes_at, undisturbed
from tests.simulation.crashes.histories import HISTORIES, check_promises
from tests.simulation.crashes.scale import Scale
from tests.simulation.crashes.wire import MODES, READS, Point
from tests.simulation.crashes.world import World
from tests.support.faults import Mode

pytestmark = pytest.mark.promise("fault-at-any-call")

FORKS = get_context("forkserver")
FORKS.set_forkserver_preload(["pytest", "tests.simulation.crashes.prepared"])

SMALL = Scale(shards=1, attempts=2)
SINGLES = Scale(shards=2, attempts=3) if os.environ.get("LONG") == "1" else SMALL
"""Two attempts are a first and a last one, and all shards are alike; `make prove` strikes as many as are deployed."""


@pytest.fixture(scope="module", autouse=True)
def forks_have_ended() -> Iterator[None]:
    """Nothing is left running, and whoever waits for this process gets its children's time too."""
    yield
    vars(forkserver)["_forkserver"]._stop()


def apart[**Given, Result](work: Callable[Given, Result], *given: Given.args, **options: Given.kwargs) -> Result:
    """The result of work in a process without threads, as histories need that branch by fork."""
    with ProcessPoolExecutor(1, FORKS) as pool:
        return pool.submit(work, *given, **options).result()


def explored(name: str) -> tuple[tuple[Point, ...], Findings]:
    """The points of a history that none before it has, and what single faults at them do."""
    plain = undisturbed(HISTORIES[name], SINGLES)
    points = own_points(HISTORIES[name], SINGLES, plain.points)
    return points, explore(name, SINGLES, faults=1, first=points[0].number, plain=plain)


NOTHING_IS_READ = (
    "deleted",
    "deleted with variants to come",
    "cancelled",
    "never uploaded",
    "uploaded when withdrawn",
    "never found",
    "withdrawn while fetched",
)


@pytest.mark.parametrize(
    "history",
    [
        pytest.param(history, marks=[] if history == "good" else [pytest.mark.long])
        for history in HISTORIES
        if history != "never found"
    ],
)
def test_every_promise_holds_whatever_fault_strikes_any_one_call(history: str) -> None:
    points, found = apart(explored, history)
    assert [str(violation) for violation in found.violations] == []
    assert found.struck[1] == found.offered[1] == strikes_at(points) > 0, "each point, by every fault"
    assert bool(found.modes["1 read damaged"]) == (history not in NOTHING_IS_READ), "what is read arrives damaged once"


def test_the_program_strikes_each_call_of_a_history_with_every_fault() -> None:
    scale = ("--shards", str(SINGLES.shards), "--attempts", str(SINGLES.attempts), "--jobs", "1")
    assert apart(main, ["--faults", "1", "--history", "never found", *scale]) == 0


def points_after_one_more_call() -> tuple[int, int]:
    """How many points more there are in a history when a worker looks again before it claims, and how many strikes at
    the first that is new."""
    before = undisturbed(HISTORIES["refused"], SMALL)
    claim = vars(operation)["_claim"]

    def claims_after_another_look(ports, delivery, **others):  # type: ignore[no-untyped-def]
        ports.images.get(delivery.message.image_id)
        return claim(ports, delivery, **others)

    vars(operation)["_claim"] = claims_after_another_look
    plain = undisturbed(HISTORIES["refused"], SMALL)
    new = next(point.number for point, old in zip(plain.points, before.points, strict=False) if point != old)
    after = explore("refused", SMALL, faults=1, first=new, every=len(plain.points), plain=plain)
    return len(after.points) - len(before.points), after.struck[1]


def test_a_call_that_is_new_is_struck_too_without_being_named() -> None:
    assert apart(points_after_one_more_call) == (1, len(MODES) - 2), "it is neither of an object nor a write"


class LostReads:
    """The answer of each read is lost once."""

    def __init__(self) -> None:
        self.lost: list[int] = []

    def before(self, point: Point) -> None:
        """Nothing happens."""

    def after(self, point: Point) -> Mode | None:
        """Loses the answer, unless that of the attempt before was lost, which this one may repeat."""
        if point.operation not in READS or point.number - 1 in self.lost:
            return None
        self.lost.append(point.number)
        return "answer lost"


def lost_reads(history: str) -> int:
    """How many reads lost their answers in a history. Raises AssertionError if it ends otherwise."""
    plain = undisturbed(HISTORIES[history], SMALL)
    faults = LostReads()
    with World(scale=SMALL, faults=faults) as world:
        ending = check_promises(world, HISTORIES[history], HISTORIES[history].play(world), plain.ending)
    assert ending == plain.ending
    return len(faults.lost)


def test_a_read_whose_answer_is_lost_makes_no_history_of_its_own() -> None:
    assert apart(lost_reads, "fetched") > 20


def more_calls(history: str) -> int:
    """How many calls more a history has with a sweep in every minute. Raises AssertionError if it ends otherwise."""
    one, other = (undisturbed(HISTORIES[history], SMALL, every_minute=every) for every in (False, True))
    assert other.ending == one.ending, history
    return len(other.points) - len(one.points)


def test_a_sweep_in_a_minute_when_nothing_is_due_changes_nothing() -> None:
    assert [apart(more_calls, history) > 0 for history in ("good", "cancelled", "deleted")][-1]
