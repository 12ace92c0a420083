"""Batches amid faults: whatever call dies, is refused or loses its answer, every batch ends once, with true counts."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import batched, count
from random import Random
from threading import Event
from typing import Any, get_args
from unittest.mock import patch

import pytest

from darkroom.domain.bulk.batches import RESERVED_SECONDS, Batch, BatchState, Counts, OnFailure, close
from darkroom.domain.bulk.imports import Import, ImportState
from darkroom.domain.bulk.members import Member, MemberState, of_row
from darkroom.domain.images.image import Image, message_for
from darkroom.domain.images.transitions import TURN_SECONDS
from darkroom.domain.kernel.errors import Rejected, Retryable, UnknownImage
from darkroom.operations.bulk import run_import, settle_batch
from darkroom.operations.images.add_variants import NotDone
from darkroom.ports.kernel import Fenced
from tests.support.fakes.batch_rows import FakeBatches
from tests.support.fakes.batches import BatchesWorld
from tests.support.fakes.pictures import jpeg
from tests.support.faults import Call, Faults, Mode, Plan, ProcessDied, at, meanwhile

BODY = jpeg()
MOST_IMAGES = 100_000 if os.environ.get("LONG") == "1" else 10_000
MODES: tuple[Mode, ...] = tuple(
    mode for mode in get_args(Mode.__value__) if mode not in ("applied late", "read damaged")
)

URL = "https://photos.example/{}.jpg"
MANIFEST = (
    f"url,key\n{URL.format(1)},a\ns3://bucket/key,b\n{URL.format(3)},c\n{URL.format(4)},\n{URL.format(5)},a\n".encode()
)
"""Of its rows the second names a bucket, and the last uses the first one's key for something else."""

MINUTES = 9 * 24 * 60
"""How long everything may take once nothing fails any more: a batch that nobody could close closes after a week."""


@dataclass
class WatchedBatches(FakeBatches):
    """The batches, how often each has ended, and those of their writes that the stream hands to whoever counts."""

    ends: Counter[str] = field(default_factory=Counter)
    written: list[Batch] = field(default_factory=list)

    def change(self, before: Batch, after: Batch) -> Batch:
        was = self.rows.get(before.batch_id)
        written = super().change(before, after)
        if written != was and written.state.has_ended:
            assert was is not None and not was.state.has_ended, "a batch ends once"
            self.ends[written.batch_id] += 1
        elif was is not None and (was.state, was.stops) != (written.state, written.stops):
            self.written.append(written)
        return written


class Play:
    """A history whose processes may be struck, and what must hold after it."""

    def __init__(self, faults: Faults) -> None:
        self.faults = faults
        self.world = BatchesWorld(batches=WatchedBatches())
        self.images, self.batches = self.world.images, self.world.batches
        self.world.images, self.world.batches = (
            faults.around("images", self.images),
            faults.around("batches", self.batches),
        )
        self.world.lanes = faults.around("lanes", self.lanes)
        self.imports, self.fetches = self.world.imports, self.world.fetch_queue
        self.world.imports = faults.around("imports", self.imports)
        self.world.manifests = faults.around("manifests", self.world.manifests)
        self.world.fetch_queue = faults.around("fetch_queue", self.fetches)
        self.unheard: list[Image | Batch] = []
        self.heard: list[Image | Batch] = []
        self.batch: Batch | None = None

    @property
    def lanes(self) -> Any:
        return self.__dict__.setdefault("_lanes", self.world.lanes)

    def process(self, work: Callable[[], Any]) -> bool:
        """Runs a process of its own; returns whether it came to its end."""
        self.faults.is_dead = False
        try:
            work()
        except (ProcessDied, Retryable, PermissionError):
            return False
        finally:
            self.check()
        return True

    def insist(self, work: Callable[[], Any]) -> None:
        """A client asks until it is answered."""
        assert any(self.process(work) for _ in range(5)), "a client is answered in the end"

    def open(self, **wanted: Any) -> None:
        def work() -> None:
            self.batch = self.world.open(key="batch", **wanted)

        self.insist(work)

    def begin_import(self, **wanted: Any) -> None:
        def work() -> None:
            row = self.world.begin_import(MANIFEST, key=f"import {len(self.imports.rows)}", **wanted)
            self.batch = self.batches.rows[row.batch_id]

        self.insist(work)

    def fetch(self) -> None:
        """Workers fetch what is to be fetched."""
        asked, self.fetches.asked = self.fetches.asked, []
        for message in asked:
            self.images_only(lambda message=message: self.world.fetch(message))  # type: ignore[misc]

    def look_at_imports(self) -> None:
        self.world.advance(60)
        self.sweep()
        self.fetch()
        self.hear()

    def post(self, number: int) -> None:
        assert self.batch is not None
        batch_id = self.batch.batch_id
        with suppress(Rejected):  # it came too late
            self.insist(lambda: self.world.submit(BODY, batch=batch_id, idempotency_key=f"image {number}"))

    def done(self, number: int) -> None:
        """An image that was done before."""
        self.insist(lambda: self.world.submit(BODY, idempotency_key=f"image {number}"))
        self.lanes.sent.clear()
        row = list(self.images.rows.values())[number]
        self.images_only(lambda: self.world.develop(message_for(row)))

    def add(self, number: int) -> None:
        """Somebody asks for more variants of one of the images, in the batch."""
        image, batch = list(self.images.rows.values())[number], self.batch
        assert batch is not None
        with suppress(Rejected, UnknownImage, NotDone):  # it came too late
            self.insist(lambda: self.world.add(image, key=f"variants {number}", batch=batch.batch_id))

    def close(self) -> None:
        self.insist(lambda: self.world.close(self.batch))  # type: ignore[arg-type]

    def cancel(self) -> None:
        self.insist(lambda: self.world.cancel(self.batch))  # type: ignore[arg-type]

    def hear(self) -> None:
        """The stream's worker gets everything new, the latest first, and the first once more; what fails comes back."""
        told = [*self.images.written, *self.batches.written]
        self.images.written, self.batches.written = [], []
        writes = [*self.unheard, *told]
        self.unheard = []
        if not writes:
            return
        heard = [*reversed(writes), writes[0]]
        self.heard += told
        failed: list[Image | Batch] = []

        def work() -> None:
            counting = self.world.count(heard)
            failed.extend(heard[place] for place in counting.failures)

        self.unheard = failed if self.process(work) else writes

    def work(self, *, fails: bool = False) -> None:
        sent, self.lanes.sent = self.lanes.sent, []
        for message in sent:
            with suppress(Fenced):
                self.images_only(lambda message=message: self.world.develop(message, fails=fails))  # type: ignore[misc]

    def images_only(self, work: Callable[[], Any]) -> None:
        """What workers do is struck elsewhere."""
        self.world.images, struck = self.images, self.world.images
        self.world.fetch_queue, struck_queue = self.fetches, self.world.fetch_queue
        work()
        self.world.images, self.world.fetch_queue = struck, struck_queue

    def sweep(self) -> None:
        self.process(self.world.sweep_bulk)

    def settle(self, *, hears_late: bool = True) -> None:
        """Time passes without faults, until the batch has ended; before what was written meanwhile is heard, if it
        `hears_late`."""
        self.faults.plan = lambda call: None
        for _ in range(MINUTES):
            self.fetch()
            self.hear()
            self.work()
            self.sweep()
            self.images_only(self.world.sweep)
            row, imports = self.batches.get(self.batch.batch_id), self.imports.rows.values()  # type: ignore[union-attr]
            has_ended = row.state.has_ended and all(each.state.has_ended for each in imports)
            if has_ended and not self.unheard and not self.images.written and not self.lanes.sent:
                break
            if not hears_late and (self.unheard or self.images.written or self.batches.written or self.lanes.sent):
                continue
            rows = (row, *self.images.rows.values(), *imports)
            due = [each.due_at for each in rows if each.due_at is not None]
            self.world.now = max(self.world.now + 60_000, min(due, default=0))
        self.check_at_rest()

    def check(self) -> None:
        batch = None if self.batch is None else self.batches.rows[self.batch.batch_id]
        if batch is not None and batch.parallelism is not None:
            begun = [row for row in self.images.rows.values() if not row.awaits_turn and not row.status.is_terminal]
            assert len(begun) <= batch.parallelism, "no more images are begun than the batch allows"

    def check_at_rest(self) -> None:
        batch = self.batches.rows[self.batch.batch_id]  # type: ignore[union-attr]
        rows = self.images.rows.values()
        assert batch.state.has_ended and self.batches.ends[batch.batch_id] == 1
        assert all(row.status.is_terminal for row in rows), "no image is stuck"
        known = Member(batch_id=batch.batch_id, image_id="", joined_at=0)
        truth = Counter(of_row(known, row).state.value for row in rows if row.batch == batch.batch_id)
        truth += Counter(
            of_row(replace(known, run=work.run), row).state.value
            for row in rows
            for work in row.works
            if work.batch == batch.batch_id
        )
        assert batch.counts == Counts(**truth), "the counts are those of the rows"
        listed = Counter(member.state for member in self.batches.images.get(batch.batch_id, {}).values())
        assert listed == truth, "and so are the notes, when all has been heard"
        assert replace(self.batches.sums(batch.batch_id).counts) == Counts(**truth)
        assert MemberState.JOINED not in listed
        self.batch = batch
        for row in self.imports.rows.values():
            self.check_import(row)

    def check_import(self, row: Import) -> None:
        """Each row of an import that is completed became one image or is in the report, once."""
        parts = (self.batches.manifests.report(row.batch_id, part.name) for part in row.report)
        reported = [json.loads(line)["row"] for part in parts for line in part.splitlines()]
        assert len(reported) == len(set(reported)) == row.rejected, "each rejected row is reported once"
        made = [image for image in self.images.rows.values() if image.batch == row.batch_id]
        assert len(made) >= row.created, "what it says to have made is there"
        keys = [image.correlation_id for image in made]
        assert len(keys) == len(set(keys)), "no row has two images"
        assert self.batches.manifests.find(row.batch_id) is None or self.faults.struck, "its manifest is gone"
        if row.state is ImportState.COMPLETED:
            assert (row.rows, row.created + row.existing + row.rejected) == (5, 5), "no row is lost"
            assert len(made) == row.created
            assert reported == [2, 5]


def plain(play: Play) -> None:
    play.open()
    for number in range(3):
        play.post(number)
    play.hear()
    play.work()
    play.close()
    play.hear()


def empty(play: Play) -> None:
    play.open()
    play.close()
    play.sweep()


def in_turns(play: Play) -> None:
    play.open(parallelism=1)
    for number in range(3):
        play.post(number)
        play.hear()
    play.work()
    play.close()
    play.hear()
    play.work()
    play.hear()


def stopped(play: Play) -> None:
    play.open(parallelism=1, on_failure=OnFailure.STOP)
    for number in range(3):
        play.post(number)
    play.hear()
    play.work(fails=True)
    play.hear()
    play.post(3)
    play.sweep()


def cancelled(play: Play) -> None:
    play.open()
    play.post(0)
    play.post(1)
    play.hear()
    play.cancel()
    play.sweep()
    play.hear()


def deleted(play: Play) -> None:
    play.open(parallelism=1)
    play.post(0)
    play.post(1)
    for image_id in list(play.images.rows)[:1]:
        play.images_only(lambda image_id=image_id: play.world.delete(image_id))  # type: ignore[misc]
    play.hear()
    play.close()
    play.hear()


def too_late(play: Play) -> None:
    """The batch closes between a request's look at it and its note."""
    play.open()
    play.post(0)
    row = play.batches.rows[play.batch.batch_id]  # type: ignore[union-attr]
    meanwhile(play.batches, "join", lambda _: play.batches.change(row, close(row, now=play.world.now)), times=1)
    play.post(1)
    play.hear()


def late_turns(play: Play) -> None:
    """No turn is given for hours, until the sweeper of images asks whose it is."""
    play.open(parallelism=1)
    play.post(0)
    play.post(1)
    play.images.written.clear()
    play.world.advance(TURN_SECONDS)
    play.process(play.world.sweep)
    play.close()


def unheard(play: Play) -> None:
    """Every event is lost, one request has died, and each look rests after each image."""
    with patch.multiple(settle_batch, _SOME=1, _MOST=1, SHARE_SECONDS=0):
        play.open(parallelism=2)
        for number in range(3):
            play.post(number)
        batch_id = play.batch.batch_id  # type: ignore[union-attr]
        play.batches.join(Member(batch_id=batch_id, image_id="0" * 26, joined_at=play.world.now))
        for _ in range(2):
            play.images.written.clear()
            play.world.advance(600)
            play.sweep()
            play.work()
            play.close()


def variants(play: Play) -> None:
    """More variants of images that are done wait for their turns beside a new image."""
    for number in range(2):
        play.done(number)
    play.open(parallelism=1)
    for number in range(2):
        play.add(number)
    play.post(2)
    play.hear()
    play.work()
    play.hear()
    play.images_only(lambda: play.world.delete(list(play.images.rows)[1]))
    play.close()
    play.hear()


def variants_stopped(play: Play) -> None:
    for number in range(3):
        play.done(number)
    play.open(parallelism=1, on_failure=OnFailure.STOP)
    for number in range(3):
        play.add(number)
    play.hear()
    play.work(fails=True)
    play.hear()
    play.sweep()


def imported(play: Play) -> None:
    """A look rests after each row."""
    with patch.multiple(run_import, SHARE_SECONDS=0, _ROWS_BETWEEN=1):
        play.begin_import(parallelism=2)
        for _ in range(2):
            play.look_at_imports()
        play.work()
        play.hear()


def imported_again(play: Play) -> None:
    """A request has made one of the images, and another import asks for all of them."""
    play.insist(lambda: play.world.ask(URL.format(3), idempotency_key="c"))
    play.begin_import()
    play.look_at_imports()
    play.begin_import()
    play.look_at_imports()
    assert play.batch is not None


def import_cancelled(play: Play) -> None:
    with patch.multiple(run_import, FETCH_BACKLOG=2):
        play.begin_import()
        play.look_at_imports()
    play.cancel()
    play.look_at_imports()


HISTORIES: dict[str, tuple[Callable[[Play], None], frozenset[BatchState]]] = {
    "plain": (plain, frozenset({BatchState.COMPLETED})),
    "empty": (empty, frozenset({BatchState.COMPLETED})),
    "in turns": (in_turns, frozenset({BatchState.COMPLETED})),
    "stopped": (stopped, frozenset({BatchState.FAILED, BatchState.COMPLETED})),
    "cancelled": (cancelled, frozenset({BatchState.CANCELLED})),
    "deleted": (deleted, frozenset({BatchState.COMPLETED})),
    "too late": (too_late, frozenset({BatchState.COMPLETED})),
    "late turns": (late_turns, frozenset({BatchState.COMPLETED})),
    "unheard": (unheard, frozenset({BatchState.COMPLETED})),
    "variants": (variants, frozenset({BatchState.COMPLETED})),
    "variants stopped": (variants_stopped, frozenset({BatchState.FAILED, BatchState.COMPLETED})),
    "imported": (imported, frozenset({BatchState.COMPLETED})),
    "imported again": (imported_again, frozenset({BatchState.COMPLETED})),
    "import cancelled": (import_cancelled, frozenset({BatchState.CANCELLED, BatchState.COMPLETED})),
}


def play(history: str, faults: Faults) -> Play:
    played = Play(faults)
    script, states = HISTORIES[history]
    script(played)
    played.settle()
    assert played.batch is not None and played.batch.state in states
    return played


def strikes(calls: int) -> Iterator[tuple[int, Mode]]:
    yield from ((number, mode) for number in range(calls) for mode in MODES)


@pytest.mark.promise("batch-faults")
@pytest.mark.parametrize("history", list(HISTORIES))
def test_every_batch_ends_once_with_true_counts_whatever_strikes_any_one_call(history: str) -> None:
    calm = Faults(is_one_process=True)
    script, _ = HISTORIES[history]
    script(Play(calm))
    assert calm.number > 5
    play(history, Faults())
    for number, mode in strikes(calm.number):
        faults = Faults(at(number, mode))
        try:
            play(history, faults)
        except AssertionError as broken:
            raise AssertionError(f"{history}: {mode} at {number} ({calm.calls[number]}): {broken}") from broken
        assert sum(faults.struck.values()) == 1


@pytest.mark.promise("batch-faults")
def test_two_looks_at_one_import_make_each_image_once_and_report_each_row_once() -> None:
    def begun() -> Play:
        played = Play(Faults())
        played.begin_import()
        played.world.advance(60)
        return played

    calm = begun()
    before = calm.faults.number
    with patch.multiple(run_import, SHARE_SECONDS=0, _ROWS_BETWEEN=1):
        calm.sweep()
        for number in range(before, calm.faults.number):
            played = begun()

            def just_before(call: Call, played: Play = played, number: int = number) -> None:
                if call.number == number:
                    played.faults.plan = lambda call: None
                    played.world.sweep_bulk()

            played.faults.plan = just_before
            played.sweep()
            played.settle()


# ── Two at once: one does all that it does just before a call of the other ───────────────────────────────────────────


def post(play: Play) -> None:
    play.post(9)


def add(play: Play) -> None:
    play.add(0)


def close_and_look(play: Play) -> None:
    play.close()
    play.sweep()


def cancel_and_look(play: Play) -> None:
    play.cancel()
    play.sweep()


def look_late(play: Play) -> None:
    play.world.advance(600)
    play.sweep()


def hear(play: Play) -> None:
    play.hear()


def hear_again(play: Play) -> None:
    play.unheard += play.heard
    play.hear()


def work_and_hear(play: Play) -> None:
    play.work()
    play.hear()


def delete_all(play: Play) -> None:
    for image_id in list(play.images.rows):
        play.images_only(lambda image_id=image_id: play.world.delete(image_id))  # type: ignore[misc]


BESIDE = (close_and_look, cancel_and_look, look_late, hear, hear_again, work_and_hear, delete_all, post, add)


@pytest.mark.promise("batch-faults")
@pytest.mark.parametrize("parallelism", [None, 2])
@pytest.mark.parametrize("first", [post, add, close_and_look, cancel_and_look, look_late, hear, work_and_hear])
def test_two_at_once_leave_every_batch_with_true_counts(first: Callable[[Play], None], parallelism: int | None) -> None:
    def begun() -> Play:
        played = Play(Faults())
        played.done(0)
        played.open(parallelism=parallelism)
        for number in range(1, 3):
            played.post(number)
        played.hear()
        played.post(3)
        return played

    calm = begun()
    before = calm.faults.number
    first(calm)
    for beside in BESIDE:
        for number in range(before, calm.faults.number):
            played = begun()
            plan = at(number, "throttled")

            def just_before(call: Call, played: Play = played, plan: Plan = plan, beside: Any = beside) -> None:
                if plan(call) is not None:
                    played.faults.plan = lambda call: None
                    beside(played)

            played.faults.plan = just_before
            try:
                first(played)
                played.close()
                closed_at = played.world.now
                played.settle(hears_late=False)
                # Only of what is joined, and has no row, nobody hears.
                wait = RESERVED_SECONDS if (first, beside) == (add, delete_all) else 0
                assert played.world.now <= closed_at + wait * 1000, "it ends at its last image"
            except AssertionError as broken:
                name = calm.faults.calls[number]
                raise AssertionError(f"{beside.__name__} before call {number} ({name}): {broken}") from broken


@pytest.mark.promise("batch-faults")
@pytest.mark.guards("bulk-ends-although-postponed", case="hear-look_late")
@pytest.mark.parametrize("first", [look_late, cancel_and_look])
@pytest.mark.parametrize("second", [hear, look_late, cancel_and_look])
def test_two_looks_that_cross_end_a_batch_at_its_last_image(
    first: Callable[[Play], None], second: Callable[[Play], None]
) -> None:
    """One stops before a call, the other one begins and stops before one of its own; they go on in this order."""

    def begun() -> Play:
        played = Play(Faults())
        played.open()
        for number in range(2):
            played.post(number)
        played.hear()
        played.work()
        played.close()
        return played

    calm = begun()
    before = calm.faults.number
    first(calm)
    for number in range(before, calm.faults.number):
        for calls in count():
            played = begun()
            is_over = crossed(played, number, calls, first, second)
            now = played.world.now
            played.settle(hears_late=False)
            assert played.world.now == now, f"{calls} calls before {calm.faults.calls[number]}: it ends late"
            if is_over:
                break


def crossed(play: Play, number: int, calls: int, first: Callable[[Play], None], second: Callable[[Play], None]) -> bool:
    """Just before the call with that number of the first, the second makes so many calls, and what is left of it after
    the first; returns whether nothing was left. Its thread runs only while the first one waits."""
    left, may_go_on, has_stopped = calls, Event(), Event()

    def stop(_: Call) -> None:
        nonlocal left
        if left == 0:
            has_stopped.set()
            may_go_on.wait()
        left -= 1

    def run() -> None:
        play.faults.plan = stop
        second(play)

    with ThreadPoolExecutor(1) as pool:

        def begin(call: Call) -> None:
            if call.number == number:
                running.append(pool.submit(run))
                running[0].add_done_callback(lambda _: has_stopped.set())
                has_stopped.wait()
                play.faults.plan = lambda call: None

        running: list[Future[None]] = []
        play.faults.plan = begin
        first(play)
        is_over = running[0].done()
        may_go_on.set()
        running[0].result()
    return is_over


# ── Many at once ─────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.promise("batch-faults")
@pytest.mark.parametrize("images", [2_000, pytest.param(MOST_IMAGES, marks=pytest.mark.long)])
def test_thousands_of_images_in_batches_are_counted_exactly_with_killed_processes_and_duplicates(images: int) -> None:
    """One process in a hundred dies, and one event in twenty comes twice."""
    random, faults = Random(48), Faults(records=False)
    world = BatchesWorld(batches=WatchedBatches())
    rows, known, lanes = world.images, world.batches, world.lanes
    world.images, world.batches = faults.around("images", rows), faults.around("batches", known)
    # 500 images a second, and as many ends: a consumer takes a hundred events.
    batches = [world.open(parallelism=parallelism) for parallelism in (None, None, 50, 400)]
    unheard: list[Image | Batch] = []

    def process(work: Callable[[], Any]) -> Any:
        faults.is_dead = False
        dies = at(faults.number + random.randrange(12), "dies after") if random.random() < 0.01 else None
        faults.plan = dies or (lambda call: None)
        with suppress(ProcessDied, Retryable):
            return work()

    def post(number: int) -> None:
        batch_id = batches[number % len(batches)].batch_id
        while process(lambda: world.submit(BODY, batch=batch_id, idempotency_key=f"image {number}")) is None:
            pass

    def hear() -> None:
        told: list[Image | Batch] = [*unheard, *rows.written, *known.written]
        rows.written, known.written = [], []
        unheard.clear()
        told += random.sample(told, len(told) // 20)
        random.shuffle(told)
        for some in batched(told, 100, strict=False):
            counting = process(lambda some=some: world.count(some))  # type: ignore[misc]
            unheard.extend(some if counting is None else (some[place] for place in counting.failures))

    def work() -> None:
        sent, lanes.sent = lanes.sent, []
        faults.plan, faults.is_dead = (lambda call: None), False
        for message in sent:
            world.develop(message, fails=random.random() < 0.02)

    for first in range(0, images, 500):
        for number in range(first, first + 500):
            post(number)
        hear()
        work()
        world.now += 1000
    for batch in batches:
        while process(lambda batch=batch: world.close(batch)) is None:  # type: ignore[misc]
            pass
    while not all(known.rows[batch.batch_id].state.has_ended for batch in batches):
        hear()
        work()
        process(world.sweep_bulk)
        # A process that died between a turn's row and its message owes it to the sweeper of images.
        if not lanes.sent and any(row.due_at is not None and row.due_at <= world.now for row in rows.rows.values()):
            faults.plan, faults.is_dead = (lambda call: None), False
            world.sweep()
        world.now += 20_000
        assert world.now < 1_795_251_600_000 + 24 * 3_600_000, "everything ends within a day"
    for batch in batches:
        ended = known.rows[batch.batch_id]
        truth = Counter(row.status.value for row in rows.rows.values() if row.batch == batch.batch_id)
        assert ended.counts == Counts(**truth) and ended.counts.images == images // len(batches)
    assert known.ends == dict.fromkeys((batch.batch_id for batch in batches), 1)
