"""Looks at bulk work: they mend what a crash or a lost event has left, and end a batch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import pytest

from darkroom.domain.bulk.batches import (
    LOOK_SECONDS,
    OPEN_DAYS,
    RESERVED_SECONDS,
    Batch,
    BatchState,
    Counts,
)
from darkroom.domain.bulk.members import Member, MemberState
from darkroom.domain.images.image import Image, message_for
from darkroom.domain.images.transitions import begin_turn
from darkroom.domain.kernel.errors import Retryable
from darkroom.operations.bulk import settle_batch as looks
from darkroom.operations.bulk.feed_backfill import FeedBackfillPorts
from darkroom.operations.bulk.run_schedule import RunSchedulePorts
from darkroom.operations.bulk.settle_batch import SettleBatchPorts, settle_batch
from darkroom.operations.bulk.sweep_due_bulk import POSTPONED_SECONDS, SweepDueBulkPorts, sweep_due_bulk
from darkroom.ports.bulk import DueRow
from darkroom.ports.kernel import Fenced, UnreadableRow
from tests.support.fakes.batches import BODY, BatchesWorld, counts, submitted, work


def lost_acceptance(world: BatchesWorld, batch: Batch) -> None:
    submitted(world, batch, 1)
    world.heard = len(world.images.written)
    world.close(batch)


def lost_end(world: BatchesWorld, batch: Batch) -> None:
    submitted(world, batch, 1)
    world.hear()
    world.close(batch)
    work(world)
    world.heard = len(world.images.written)


def request_died(world: BatchesWorld, batch: Batch) -> None:
    submitted(world, batch, 1)
    world.hear()
    work(world)
    with patch.object(world.images, "create", side_effect=Retryable), pytest.raises(Retryable):
        world.submit(BODY, batch=batch.batch_id)
    world.close(batch)
    world.hear()
    assert world.batch(batch).state is BatchState.CLOSED, "its row may yet come"


def forgotten_tombstone(world: BatchesWorld, batch: Batch) -> None:
    (image,) = submitted(world, batch, 1)
    world.hear()
    del world.images.rows[image.image_id]
    world.lanes.sent.clear()
    world.close(batch)


@pytest.mark.parametrize(
    ("begin", "expected"),
    [
        (lost_acceptance, Counts(done=1)),
        (lost_end, Counts(done=1)),
        (request_died, Counts(done=1)),
        (forgotten_tombstone, Counts(cancelled=1)),
    ],
)
@pytest.mark.parametrize("parallelism", [None, 1])
def test_a_look_mends_what_a_crash_or_a_lost_event_has_left(
    begin: Callable[[BatchesWorld, Batch], None], expected: Counts, parallelism: int | None
) -> None:
    world = BatchesWorld()
    batch = world.open(parallelism=parallelism)
    begin(world, batch)
    for _ in range(30):
        world.advance(60)
        work(world)
        world.sweep_bulk()
    assert (world.batch(batch).state, world.batch(batch).counts) == (BatchState.COMPLETED, expected)


@pytest.mark.guards("bulk-row-may-yet-come")
def test_a_request_has_time_to_write_its_row() -> None:
    world = BatchesWorld()
    batch = world.open()
    note = Member(batch_id=batch.batch_id, image_id="0" * 26, joined_at=world.now + LOOK_SECONDS * 1000)
    world.batches.join(note)
    world.close(batch)
    world.advance(LOOK_SECONDS + RESERVED_SECONDS - 1)
    world.sweep_bulk()
    assert dict(world.batches.all_members(batch.batch_id)) == {note.image_id: note}


@pytest.mark.guards("bulk-absence-seen-twice")
def test_no_single_look_takes_an_image_for_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    world = BatchesWorld()
    batch = world.open()
    submitted(world, batch, 1)
    world.hear()
    world.close(batch)
    world.advance(LOOK_SECONDS)
    monkeypatch.setattr(world.images, "get_all", lambda _: {})
    world.sweep_bulk()
    assert world.batch(batch).state is BatchState.CLOSED and counts(world, batch) == Counts(working=1)


@pytest.mark.guards("bulk-end-seen-twice")
def test_a_batch_whose_list_and_sums_disagree_ends_when_two_looks_saw_the_same_list() -> None:
    world = BatchesWorld()
    batch = world.open()
    submitted(world, batch)
    world.hear()
    world.close(batch)
    work(world)
    world.batches.counted.clear()  # a restore of an earlier time
    assert world.hear().ended == 0
    world.advance(LOOK_SECONDS)
    assert world.sweep_bulk().outcomes == {"later": 1}
    world.advance(60)
    assert world.sweep_bulk().outcomes == {"ended": 1}
    assert world.batch(batch).counts == Counts(done=3)


@pytest.mark.guards("bulk-lost-turn-mended")
@pytest.mark.guards("bulk-turn-begun-once", case="begun meanwhile")
@pytest.mark.parametrize(
    ("meanwhile", "sent"),
    [({"tags": ("new",)}, 1), ({"awaits_turn": False}, 0)],
    ids=["annotated meanwhile", "begun meanwhile"],
)
def test_a_turn_whose_row_could_not_be_written_is_mended_and_none_begins_twice(
    meanwhile: dict[str, Any], sent: int
) -> None:
    world = BatchesWorld()
    batch = world.open(parallelism=1)
    (image,) = submitted(world, batch, 1)
    with patch.object(world.images, "change", side_effect=Retryable):
        assert world.hear().failures
    assert counts(world, batch).working == 1 and world.row(image.image_id).awaits_turn
    world.hear()
    world.advance(LOOK_SECONDS)
    stale, change = world.row(image.image_id), world.images.change

    def changed_meanwhile(before: Image, after: Image, **how: Any) -> Image:
        if before == stale:
            world.images.rows[image.image_id] = replace(stale, version=stale.version + 1, **meanwhile)
        written: Image = change(before, after, **how)
        return written

    with patch.object(world.images, "change", changed_meanwhile):
        world.sweep_bulk()
    row = world.row(image.image_id)
    assert (row.awaits_turn, row.tags, len(world.lanes.sent)) == (False, meanwhile.get("tags", ()), sent)


@pytest.mark.guards("bulk-turns-mended-meanwhile")
def test_a_half_given_turn_is_mended_while_other_images_go_on() -> None:
    world = BatchesWorld()
    batch = world.open(parallelism=2)
    lost, other = submitted(world, batch, 2)
    with patch.object(world.images, "change", side_effect=Retryable):
        world.hear()
    world.images.change(world.row(other.image_id), begin_turn(world.row(other.image_id), now=world.now))
    world.advance(LOOK_SECONDS)
    world.develop(message_for(world.row(other.image_id)))
    world.hear()
    world.sweep_bulk()
    assert not world.row(lost.image_id).awaits_turn


@pytest.mark.guards("bulk-cancel-fence")
def test_an_image_that_changes_while_its_batch_is_cancelled_is_taken_back_with_all_that_is_new(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = BatchesWorld()
    batch = world.open()
    submitted(world, batch, 1)
    world.hear()
    world.cancel(batch)
    change = world.images.change

    def annotated_meanwhile(before: Image, after: Image, **how: Any) -> Image:
        if before.version == 1:
            world.images.rows[before.image_id] = replace(before, version=2, tags=("new",))
        written: Image = change(before, after, **how)
        return written

    monkeypatch.setattr(world.images, "change", annotated_meanwhile)
    world.sweep_bulk()
    world.advance(LOOK_SECONDS)
    world.sweep_bulk()
    (row,) = world.images.rows.values()
    assert (row.is_deleted, row.tags) == (True, ())


@pytest.mark.guards("bulk-ends-once")
def test_of_two_looks_one_ends_a_batch() -> None:
    world = BatchesWorld()
    world.close(world.open())
    with patch.object(world.batches, "change", side_effect=Fenced(None)):
        assert world.sweep_bulk().outcomes == {"later": 1}


@pytest.mark.guards("bulk-look-goes-on", "bulk-looks-in-turns")
def test_a_giant_batch_ends_after_some_sweeps_and_keeps_no_other_waiting() -> None:
    world = BatchesWorld()
    giant, *others = (world.open() for _ in range(4))
    images = [
        Member(batch_id=giant.batch_id, image_id=f"{number:026d}", state=MemberState.DONE, version=4, joined_at=0)
        for number in range(5_500)
    ]
    world.batches.images[giant.batch_id] = {image.image_id: image for image in images}
    for batch in (giant, *others):
        world.close(batch)
        world.advance(1)
    all_members = world.batches.all_members

    def slowly(batch_id: str, *, after: str | None = None) -> Any:
        for listed in all_members(batch_id, after=after):
            world.advance(0.01)
            yield listed

    world.batches.all_members = slowly

    def sweep() -> dict[str, int]:
        ends_at = world.now + 20_000
        parts = {"feeding": world.ports(FeedBackfillPorts), "scheduling": world.ports(RunSchedulePorts)}
        ports = world.ports(SweepDueBulkPorts, imports=None, **parts)
        return dict(sweep_due_bulk(ports, out_of_time=lambda: world.now >= ends_at).outcomes)

    assert [sweep() for _ in range(2)] == [{"goes_on": 2, "ended": 3}, {"goes_on": 2}]
    sweep()
    world.advance(60)
    for _ in range(3):  # its sums say nothing: another look must have seen the same
        sweep()
    assert world.batch(giant).counts == Counts(done=5_500)


@pytest.mark.guards("bulk-look-fails-at-first-call")
def test_a_look_that_meets_a_fault_keeps_what_it_has_done(monkeypatch: pytest.MonkeyPatch) -> None:
    world = BatchesWorld()
    batch = world.open()
    submitted(world, batch, 2)
    world.hear()
    world.close(batch)
    world.advance(LOOK_SECONDS)
    monkeypatch.setattr(looks, "_SOME", 1)
    get_all, answers = world.images.get_all, iter([True])

    def answers_once(image_ids: Any) -> Any:
        if next(answers, False):
            return get_all(image_ids)
        raise Retryable("throttled")

    monkeypatch.setattr(world.images, "get_all", answers_once)
    assert settle_batch(world.ports(SettleBatchPorts), batch.batch_id) == "goes_on"
    look = world.batch(batch).look
    assert look is not None and look.counts == Counts(working=1)
    with pytest.raises(Retryable):
        settle_batch(world.ports(SettleBatchPorts), batch.batch_id)
    assert world.batch(batch).look == look


def unreadable_note(world: BatchesWorld, batch: Batch, image_id: str) -> Callable[[], object]:
    all_members = world.batches.all_members

    def one_unreadable(batch_id: str, **how: Any) -> Any:
        for name, member in all_members(batch_id, **how):
            yield name, (UnreadableRow(f"{batch_id}/{name}", "state") if name == image_id else member)

    world.batches.all_members = one_unreadable
    return lambda: setattr(world.batches, "all_members", all_members)


def unreadable_image(world: BatchesWorld, _: Batch, image_id: str) -> Callable[[], object]:
    world.images.unreadable[image_id] = world.images.rows.pop(image_id)
    return lambda: world.images.rows.update({image_id: world.images.unreadable.pop(image_id)})


@pytest.mark.guards("bulk-unreadable-has-not-ended", case="unreadable_note")
@pytest.mark.parametrize("make_unreadable", [unreadable_note, unreadable_image])
def test_an_unreadable_row_keeps_its_batch_from_ending_and_no_other_image_from_being_counted(
    make_unreadable: Callable[[BatchesWorld, Batch, str], Callable[[], object]],
) -> None:
    world = BatchesWorld()
    batch = world.open()
    rows = submitted(world, batch, 3)
    world.hear()
    world.close(batch)
    work(world)
    world.heard = len(world.images.written)  # the events of their ends are lost
    mend = make_unreadable(world, batch, min(row.image_id for row in rows))
    unreadable = 0
    for _ in range(3):
        world.advance(LOOK_SECONDS)
        unreadable += len(world.sweep_bulk().unreadable)
    assert (world.batch(batch).state, counts(world, batch)) == (BatchState.CLOSED, Counts(working=1, done=2))
    assert unreadable == (3 if make_unreadable is unreadable_note else 0), "the sweeper of images reports its own"
    mend()
    for _ in range(3):
        world.advance(6 * 3600)
        world.sweep_bulk()
    assert (world.batch(batch).state, world.batch(batch).counts) == (BatchState.COMPLETED, Counts(done=3))


def test_the_batch_of_a_tenant_that_is_suspended_halfway_goes_on_and_closes_by_itself() -> None:
    world = BatchesWorld()
    batch = world.open(parallelism=1)
    submitted(world, batch)
    # From now on the gateway refuses all that the tenant asks for, also to close the batch.
    world.hear()
    for _ in range(3):
        work(world)
        world.hear()
    world.advance(OPEN_DAYS * 24 * 3600)
    world.sweep_bulk()
    assert (world.batch(batch).state, world.batch(batch).counts) == (BatchState.COMPLETED, Counts(done=3))


def test_a_row_of_a_kind_that_only_a_newer_version_knows_is_left_to_it() -> None:
    world = BatchesWorld()
    batch = world.open()
    world.batches.rows = {batch.batch_id: replace(batch, due_at=world.now)}
    world.batches.due = lambda now, limit: iter([DueRow(now, batch.batch_id, "future")])
    assert world.sweep_bulk().outcomes == {"unknown": 1}
    assert world.batch(batch).due_at == world.now + POSTPONED_SECONDS * 1000
