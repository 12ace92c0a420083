"""Backfills amid faults: whatever call dies, is refused or loses its answer, and whoever decides, looks or works at the
same time, each image is made again once and counted once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, get_args

import pytest

from darkroom.domain.bulk.backfills import LOOK_SECONDS, Backfill, BackfillCounts, BackfillState, Page, work_of
from darkroom.domain.images.image import Status, WorkKind, message_for
from darkroom.domain.images.transitions import begin_work, delete
from darkroom.domain.kernel.errors import Retryable
from darkroom.operations.bulk import feed_backfill as looks
from darkroom.ports.kernel import Fenced
from tests.support.fakes.backfills import BackfillsWorld
from tests.support.fakes.batch_rows import FakeBackfills
from tests.support.faults import Call, Faults, Mode, ProcessDied, at

pytestmark = pytest.mark.promise("backfill-faults")

MODES: tuple[Mode, ...] = tuple(
    mode for mode in get_args(Mode.__value__) if mode not in ("applied late", "read damaged")
)
IMAGES = 5
SOME, MOST = 2, 3
"""How many images a page has, and at how many begun ones no other page is found."""


class WatchedBackfills(FakeBackfills):
    """The backfills: one that has ended stays as it is."""

    def change(self, before: Backfill, after: Backfill) -> Backfill:
        self._check(before)
        return super().change(before, after)

    def put_page(self, before: Backfill, after: Backfill, page: Page) -> Backfill:
        self._check(before)
        return super().put_page(before, after, page)

    def _check(self, before: Backfill) -> None:
        row = self.rows[before.backfill_id]
        assert not row.has_ended or before.version < row.version, "a backfill ends once"


@dataclass
class StruckWorld(BackfillsWorld):
    """The same, whose looks and operators may be struck. What workers do is struck elsewhere."""

    def __post_init__(self) -> None:
        self.backfills = WatchedBackfills()
        super().__post_init__()
        self.done(IMAGES)
        self.done(preset="avatar")
        self.faults = faults = Faults()
        self.unstruck = {name: getattr(self, name) for name in ("images", "backfills", "scan")}
        for name, store in self.unstruck.items():
            setattr(self, name, faults.around(name, store))
        self.lanes.send = faults.around("lanes.send", self.lanes.send)
        self.redone, self.removed = list[str](), list[str]()
        self.process(self.start)

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
        assert any(self.process(work) for _ in range(5)), "an operator is answered in the end"

    def unfailing(self, work: Callable[[], Any]) -> Any:
        plan, self.faults.plan, self.faults.is_dead = self.faults.plan, lambda call: None, False
        struck = {name: getattr(self, name) for name in self.unstruck}
        vars(self).update(self.unstruck)
        try:
            return work()
        finally:
            vars(self).update(struck)
            self.faults.plan = plan

    def look(self) -> None:
        self.now += LOOK_SECONDS * 1000
        self.process(self.sweep_bulk)

    def take(self, **how: Any) -> None:
        """Workers get all messages, the latest first, and one of them twice."""
        self.lanes.sent = [*reversed(self.lanes.sent), *self.lanes.sent[:1]]
        self.unfailing(partial(self.work, **how))

    @property
    def ids(self) -> list[str]:
        return list(self.unstruck["images"].rows)

    def redo(self, number: int) -> None:
        image = self.unstruck["images"].rows[self.ids[number]]
        if image.status is Status.DONE and not image.is_deleted:
            redone = self.unstruck["images"].change(image, begin_work(image, WorkKind.REDO, now=self.now))
            self.lanes.sent.append(message_for(redone))
            self.redone.append(image.image_id)

    def remove(self, number: int) -> None:
        image = self.unstruck["images"].rows[self.ids[number]]
        if not image.is_deleted:
            self.unstruck["images"].change(image, delete(image, now=self.now))
            self.removed.append(image.image_id)

    def check(self) -> None:
        rows = self.unstruck["images"].rows.values()
        assert all(row.is_deleted for row in rows if row.image_id in self.removed), "what is deleted stays deleted"
        redone = [row.image_id for row in rows for work in row.works if work.kind is WorkKind.REDO]
        assert Counter(redone) == Counter(self.redone), "other work stays"
        assert all(row.is_deleted or row.outcome is Status.DONE for row in rows), "what is done stays done"
        works = [[work for work in row.works if work.backfill is not None] for row in rows]
        assert max(map(len, works)) <= 1, "no image is made again twice"
        assert sum(work.ended_at is None for each in works for work in each) < MOST + SOME, "no more are begun"

    def settle(self) -> None:
        """Time passes without faults, until the backfill has ended."""
        self.faults.plan = lambda call: None
        self.unfailing(self.start)
        for _ in range(30):
            self.take()
            self.process(self.sweep_bulk)
            self.process(self.sweep)
            if self.backfill.has_ended and not self.lanes.sent:
                return self.check_at_rest()
            self.now += 20 * 60_000
        raise AssertionError(f"it does not end: {self.backfill}")

    def check_at_rest(self) -> None:
        rows, row = self.unstruck["images"].rows.values(), self.backfill
        assert all(image.status.is_terminal for image in rows), "no image is stuck"
        works = [work for image in rows if (work := work_of(image, row.backfill_id)) and work.ended_at is not None]
        assert Counter(bool(work.failed) for work in works) == +Counter(
            {False: row.counts.done, True: row.counts.failed}
        )
        assert row.found == row.counts.images and row.counts.unreadable == 0
        assert not self.unstruck["backfills"].kept, "nothing is left of its pages"
        if row.state is BackfillState.COMPLETED:
            left = [image for image in rows if row.selection.covers(image) and work_of(image, row.backfill_id) is None]
            assert not left, "no image is forgotten"


def plain(world: StruckWorld) -> None:
    for _ in range(4):
        world.look()
        world.take()


def failing(world: StruckWorld) -> None:
    world.look()
    world.take(fails=True)
    world.look()


def busy(world: StruckWorld) -> None:
    """One image has other work, one is deleted before its turn and one after it."""
    world.redo(0)
    world.remove(3)
    world.look()
    world.remove(1)
    world.take()
    world.look()


def paused(world: StruckWorld) -> None:
    world.look()
    world.insist(partial(world.decide, BackfillState.PAUSED))
    world.look()
    world.take()
    world.insist(partial(world.decide, BackfillState.RUNNING))
    world.look()


def cancelled(world: StruckWorld) -> None:
    world.look()
    world.insist(partial(world.decide, BackfillState.CANCELLED))
    world.look()
    world.take()
    world.look()


def unheard(world: StruckWorld) -> None:
    """All messages are lost, and each look rests after each page."""
    for _ in range(3):
        world.look()
        world.lanes.sent.clear()
    world.now += 3 * 3_600_000
    world.process(world.sweep)


HISTORIES: dict[str, tuple[Callable[[StruckWorld], None], BackfillCounts | None]] = {
    "plain": (plain, BackfillCounts(done=IMAGES)),
    "failing": (failing, None),
    "busy": (busy, None),
    "paused": (paused, BackfillCounts(done=IMAGES)),
    "cancelled": (cancelled, None),
    "unheard": (unheard, BackfillCounts(done=IMAGES)),
}
"""Each with what must have been counted, if faults may not change that."""


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(looks, "PAGE_IMAGES", SOME)
    monkeypatch.setattr(looks, "_AT_ONCE", SOME)
    monkeypatch.setattr(looks, "most_in_work", lambda _: MOST)


def play(history: str, plan: Callable[[Call], Any]) -> StruckWorld:
    world = StruckWorld()
    world.faults.plan = plan
    script, counts = HISTORIES[history]
    script(world)
    world.settle()
    assert counts in (None, world.backfill.counts), world.backfill.counts
    return world


def calls_of(world: StruckWorld, first: int) -> list[int]:
    """The numbers of the calls from that one on; of those that read one shard after another, the first."""
    names, alike = world.faults.calls, ("images.oldest_waiting", "images.due")
    numbers = [each for each in range(first, len(names)) if names[each] not in alike or names[each] != names[each - 1]]
    assert len(numbers) > 10
    return numbers


@pytest.mark.guards("bulk-backfill-made-once", case="failing")
@pytest.mark.parametrize("history", list(HISTORIES))
def test_each_image_is_made_again_and_counted_once_whatever_strikes_any_one_call(history: str) -> None:
    calm = StruckWorld()
    before = calm.faults.number
    HISTORIES[history][0](calm)
    for number in calls_of(calm, before):
        for mode in MODES:
            try:
                played = play(history, at(number, mode))
            except AssertionError as broken:
                raise AssertionError(f"{mode} at {number} ({calm.faults.calls[number]}): {broken}") from broken
            assert sum(played.faults.struck.values()) == 1


def look_too(world: StruckWorld) -> None:
    world.feed()


def work_too(world: StruckWorld) -> None:
    world.take()


def redo_too(world: StruckWorld) -> None:
    world.redo(0)
    world.redo(2)


def delete_too(world: StruckWorld) -> None:
    world.remove(0)
    world.remove(2)


def pause_too(world: StruckWorld) -> None:
    world.decide(BackfillState.PAUSED)
    world.feed()
    world.decide(BackfillState.RUNNING)


def cancel_too(world: StruckWorld) -> None:
    world.decide(BackfillState.CANCELLED)
    world.feed()


@pytest.mark.guards("bulk-backfill-version-fence", case="redo_too")
@pytest.mark.parametrize("beside", [look_too, work_too, redo_too, delete_too, pause_too, cancel_too])
def test_whoever_acts_just_before_any_call_of_a_look_changes_nothing_of_that(
    beside: Callable[[StruckWorld], None],
) -> None:
    calm = StruckWorld()
    before = calm.faults.number
    plain(calm)
    for number in calls_of(calm, before):
        world = StruckWorld()

        def just_before(call: Call, world: StruckWorld = world, number: int = number) -> None:
            if call.number == number:
                with suppress(Fenced):
                    world.unfailing(partial(beside, world))

        world.faults.plan = just_before
        try:
            plain(world)
            world.settle()
        except AssertionError as broken:
            raise AssertionError(f"before {number} ({calm.faults.calls[number]}): {broken}") from broken
