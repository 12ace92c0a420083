"""Batches: images join, are counted once each, get their turns, and end their batch."""

from __future__ import annotations

from dataclasses import replace

import pytest

from darkroom.domain.bulk.batches import (
    LOOK_SECONDS,
    OPEN_DAYS,
    RESERVED_SECONDS,
    BatchState,
    Counts,
    OnFailure,
    Stop,
    batch_id_from_bits,
)
from darkroom.domain.bulk.members import Member, MemberState
from darkroom.domain.images.image import Image, Status
from darkroom.domain.images.transitions import TURN_SECONDS
from darkroom.domain.kernel.errors import BATCH_STOPPED, Rejected
from darkroom.operations.bulk import settle_batch
from darkroom_cli.operator.domain.next_run import replay
from tests.support.fakes.batches import BODY, BatchesWorld, counts, submitted, work


def test_a_closed_batch_is_complete_with_its_last_image() -> None:
    world = BatchesWorld()
    batch = world.open(name="catalogue")
    submitted(world, batch)
    world.hear()
    assert counts(world, batch) == Counts(working=3)
    work(world)
    assert world.close(batch).state is BatchState.CLOSED
    assert world.hear().ended == 1
    ended = world.batch(batch)
    assert (ended.state, ended.counts) == (BatchState.COMPLETED, Counts(done=3))
    assert world.count(world.images.written).ended == 0, "an old story"
    assert world.batch(batch) == ended


@pytest.mark.guards("bulk-closes-by-itself")
def test_an_empty_batch_is_complete_when_it_is_closed_and_one_that_nobody_closes_after_seven_days() -> None:
    world = BatchesWorld()
    closed, forgotten = world.open(), world.open()
    world.close(closed)
    assert world.sweep_bulk().outcomes == {"ended": 1}
    world.advance(OPEN_DAYS * 24 * 3600)
    assert world.sweep_bulk().outcomes == {"ended": 1}
    for batch in (closed, forgotten):
        assert (world.batch(batch).state, world.batch(batch).counts) == (BatchState.COMPLETED, Counts())


@pytest.mark.guards("bulk-looks-in-turns")
@pytest.mark.parametrize("share", [5, 0])
def test_what_is_closed_or_cancelled_ends_at_once_unless_it_is_large(
    monkeypatch: pytest.MonkeyPatch, share: int
) -> None:
    monkeypatch.setattr(settle_batch, "SHARE_SECONDS", share)
    world = BatchesWorld()
    empty, done, cancelled = world.open(), world.open(), world.open(parallelism=1)
    submitted(world, done)
    work(world)
    submitted(world, cancelled)
    world.hear()
    work(world)
    world.hear()
    rows = [world.close(empty), world.close(done), world.cancel(cancelled)]
    assert world.count(rows).ended == (3 if share else 1)
    assert world.count(rows).ended == (0 if share else 2), "it goes on"
    world.sweep_bulk()
    assert [world.batch(row).counts for row in rows] == [Counts(), Counts(done=3), Counts(done=1, cancelled=2)]


@pytest.mark.guards("bulk-turns-within-parallelism")
def test_no_more_images_work_than_the_parallelism_allows(monkeypatch: pytest.MonkeyPatch) -> None:
    world = BatchesWorld()
    batch = world.open(parallelism=2)
    rows = submitted(world, batch, 5)
    assert world.lanes.sent == [] and all(row.waiting_since is None for row in rows)
    begun: list[int] = []
    world.hear()
    world.hear()
    while world.lanes.sent:
        begun.append(len(world.lanes.sent))
        assert counts(world, batch).working == len(world.lanes.sent)
        work(world)
        world.hear()
    assert begun == [2, 2, 1]
    world.close(batch)
    world.sweep_bulk()
    assert world.batch(batch).counts == Counts(done=5)

    # Two consumers at once, of which one has read the sums before the other wrote them.
    other = world.open(parallelism=1)
    submitted(world, other, 3)
    stale = replace(world.batches.sums(other.batch_id), counts=Counts())
    world.hear()
    monkeypatch.setattr(world.batches, "sums", lambda _: stale)
    world.count(world.images.written)
    assert len(world.lanes.sent) == 1


def test_a_failure_stops_a_batch_that_asks_for_it_and_what_waits_is_taken_back() -> None:
    world = BatchesWorld()
    batch = world.open(parallelism=1, on_failure=OnFailure.STOP)
    rows = submitted(world, batch)
    world.hear()
    work(world, fails=True)
    world.hear()
    assert (world.batch(batch).stops, world.lanes.sent) == (Stop.FAILURE, [])
    with pytest.raises(Rejected) as caught:
        submitted(world, batch)
    assert caught.value.code == "batch_closed"
    assert world.sweep_bulk().outcomes == {"ended": 1}
    ended = world.batch(batch)
    assert (ended.state, ended.counts) == (BatchState.FAILED, Counts(failed=1, cancelled=2))
    assert sum(world.row(row.image_id).is_deleted for row in rows) == 2


def test_of_a_cancelled_batch_what_is_at_work_ends_and_the_rest_is_taken_back() -> None:
    world = BatchesWorld()
    batch = world.open()
    at_work, *_ = submitted(world, batch)
    world.hear()
    world.images.change(at_work, replace(at_work, status=Status.PROCESSING, attempt=1, lease_until=world.now + 90_000))
    world.cancel(batch)
    world.cancel(batch)
    world.sweep_bulk()
    assert world.batch(batch).state is BatchState.CLOSED
    row = world.row(at_work.image_id)
    world.images.change(
        row, replace(row, status=Status.DONE, completed_at=world.now, completed_version=row.version + 1)
    )
    world.hear()
    ended = world.batch(batch)
    assert (ended.state, ended.counts) == (BatchState.CANCELLED, Counts(done=1, cancelled=2))


def test_images_that_are_deleted_expired_or_replayed_meanwhile_are_counted_as_they_end() -> None:
    world = BatchesWorld()
    batch = world.open()
    deleted, expired, failed = submitted(world, batch)
    done_and_deleted = submitted(world, batch, 1)[0]
    world.hear()
    world.delete(deleted.image_id)
    world.images.rows[expired.image_id] = replace(expired, expires_at=world.now + 1, due_at=world.now + 1)
    world.advance(1)
    world.sweep()
    messages = {message.image_id: message for message in world.lanes.sent}
    world.develop(messages[failed.image_id], fails=True)
    world.develop(messages[done_and_deleted.image_id])
    world.delete(done_and_deleted.image_id)
    world.hear()
    assert counts(world, batch) == Counts(cancelled=1, expired=1, failed=1, done=1)
    row = world.row(failed.image_id)
    again = world.images.change(row, replay(row, now=world.now))
    world.develop(messages[failed.image_id].model_copy(update={"run": again.run}))
    world.close(batch)
    world.hear()
    assert world.batch(batch).counts == Counts(cancelled=1, expired=1, done=2)


# Joining, as a race with whoever closes


@pytest.mark.guards("bulk-open-once-noted")
def test_an_image_that_is_noted_after_its_batch_was_closed_is_refused_and_leaves_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = BatchesWorld()
    batch = world.open()
    join = world.batches.join

    def closes_first(member: Member) -> Member:
        world.close(batch)
        world.sweep_bulk()
        kept: Member = join(member)
        return kept

    monkeypatch.setattr(world.batches, "join", closes_first)
    with pytest.raises(Rejected) as caught:
        world.submit(BODY, batch=batch.batch_id)
    assert caught.value.code == "batch_closed"
    assert world.images.rows == {} and world.batches.images == {batch.batch_id: {}}
    assert world.batch(batch).counts == Counts()


@pytest.mark.guards("bulk-leaves-own-note")
def test_a_repeated_request_does_not_take_back_the_note_of_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    world = BatchesWorld()
    batch = world.open()
    first = world.submit(BODY, batch=batch.batch_id, idempotency_key="k").image
    world.advance(1)
    monkeypatch.setattr(world.images, "get", lambda _: None)  # both looked before either wrote
    reads = iter([world.batch(batch), world.close(batch)])
    monkeypatch.setattr(world.batches, "get", lambda _: next(reads))
    with pytest.raises(Rejected):
        world.submit(BODY, batch=batch.batch_id, idempotency_key="k")
    assert list(world.batches.images[batch.batch_id]) == [first.image_id]


@pytest.mark.parametrize("batch_id", ["no id", batch_id_from_bits(bytes(16))])
def test_an_unknown_batch_takes_no_image(batch_id: str) -> None:
    world = BatchesWorld()
    others = world.open(tenant_id="other")
    for each in (batch_id, others.batch_id):
        with pytest.raises(Rejected) as caught:
            world.submit(BODY, batch=each)
        assert caught.value.code == "unknown_batch"
    assert world.batches.images == {}


def test_the_sweeper_begins_what_its_batch_has_let_begin_or_can_let_begin_no_more() -> None:
    world = BatchesWorld()
    batch = world.open(parallelism=1)
    first, second = submitted(world, batch, 2)
    world.advance(TURN_SECONDS)
    world.sweep()
    assert world.lanes.sent == []
    known = world.batches.images[batch.batch_id]
    known[first.image_id] = replace(known[first.image_id], state=MemberState.WORKING)
    world.advance(TURN_SECONDS)
    world.sweep()
    assert [message.image_id for message in world.lanes.sent] == [first.image_id]
    del world.batches.rows[batch.batch_id]
    world.advance(TURN_SECONDS)
    world.sweep()
    assert second.image_id in {message.image_id for message in world.lanes.sent}


@pytest.mark.guards("bulk-batch-counted-alone", "bulk-look-isolated")
def test_a_batch_that_trips_a_bug_stops_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    world = BatchesWorld()
    poison, other = world.open(), world.open()
    for batch in (poison, other):
        submitted(world, batch, 1)
        world.close(batch)
    work(world)
    sums = world.batches.sums
    monkeypatch.setattr(
        world.batches, "sums", lambda batch_id: 1 / 0 if batch_id == poison.batch_id else sums(batch_id)
    )
    counting = world.hear()
    assert counting.ended == 1 and len(counting.failures) == 4
    swept = world.sweep_bulk()
    assert list(swept.errors) == [poison.batch_id] and world.batch(poison).due_at != batch.due_at


# Works beside images


def finished(world: BatchesWorld, count: int = 3) -> list[Image]:
    """So many images that are done."""
    rows = [world.submit(BODY).image for _ in range(count)]
    work(world)
    return [world.row(row.image_id) for row in rows]


@pytest.mark.guards("bulk-no-work-before-turn", "bulk-work-turn-is-its-own")
def test_variants_that_join_a_batch_wait_for_their_turn_and_count_once_each() -> None:
    world = BatchesWorld()
    images = finished(world)
    batch = world.open(parallelism=2)
    added = [world.add(image, batch=batch.batch_id) for image in images]
    assert world.lanes.sent == [] and all(row.outcome is Status.DONE and row.waiting_since is None for row in added)
    world.hear()
    assert counts(world, batch) == Counts(working=2, waiting=1)
    work(world, fails=True)
    world.hear()
    work(world)
    world.hear()
    world.close(batch)
    world.sweep_bulk()
    ended = world.batch(batch)
    assert (ended.state, ended.counts) == (BatchState.COMPLETED, Counts(done=1, failed=2))
    assert all(world.row(image.image_id).status is Status.DONE for image in images)


def test_an_image_and_its_variants_may_be_in_one_batch_or_in_two() -> None:
    world = BatchesWorld()
    first, second = world.open(), world.open(parallelism=1)
    (image,) = submitted(world, first, 1)
    work(world)
    for batch in (first, second):
        world.add(world.row(image.image_id), batch=batch.batch_id)
        world.hear()
        work(world)
    world.hear()
    for batch in (first, second):
        world.close(batch)
    world.sweep_bulk()
    assert [world.batch(batch).counts for batch in (first, second)] == [Counts(done=2), Counts(done=1)]


def test_a_batch_that_stops_takes_back_variants_and_leaves_their_images() -> None:
    world = BatchesWorld()
    images = finished(world)
    batch = world.open(parallelism=1)
    for image in images:
        world.add(image, batch=batch.batch_id)
    world.hear()
    (begun,) = world.lanes.sent
    world.cancel(batch)
    world.sweep_bulk()
    assert world.batch(batch).counts == Counts(cancelled=3), "not even the one with a message was begun"
    work(world)
    for image in images:
        row = world.row(image.image_id)
        assert (row.status, row.is_deleted, row.variants) == (Status.DONE, False, image.variants)
        assert row.failed_work is not None and row.failed_work.error is not None
        assert row.failed_work.error.code == BATCH_STOPPED
    again = world.add(world.row(begun.image_id))
    assert again.work is not None and len(world.lanes.sent) == 1


@pytest.mark.parametrize("is_heard", [True, False])
def test_what_becomes_of_variants_of_which_the_row_says_nothing_any_more(*, is_heard: bool) -> None:
    world = BatchesWorld()
    deleted, forgotten, replaced = finished(world)
    batch = world.open()
    for image in (deleted, forgotten, replaced):
        world.add(image, batch=batch.batch_id)
    world.delete(deleted.image_id)
    work(world)
    row = world.row(forgotten.image_id)
    world.images.rows[row.image_id] = replace(row, works=(replace(row.works[0], run=9, batch=None),), run=9)
    row = world.row(replaced.image_id)
    world.images.rows[row.image_id] = replace(row, status=Status.DONE, works=(replace(row.works[0], ended_at=None),))
    if is_heard:
        world.hear()
    else:
        world.heard = len(world.images.written)
    world.close(batch)
    world.advance(LOOK_SECONDS)
    world.sweep_bulk()
    world.advance(LOOK_SECONDS)
    world.sweep_bulk()
    lost = Counts(done=1, cancelled=2)
    assert world.batch(batch).counts == (Counts(done=2, cancelled=1) if is_heard else lost)


def test_a_request_that_came_too_late_for_its_run_is_no_member() -> None:
    world = BatchesWorld()
    (image,) = finished(world, 1)
    batch = world.open()
    world.join_batch("default", batch.batch_id, image.image_id, 2)
    world.add(image)
    world.close(batch)
    world.advance(RESERVED_SECONDS)
    world.sweep_bulk()
    assert (world.batch(batch).state, world.batch(batch).counts) == (BatchState.COMPLETED, Counts())


@pytest.mark.guards("works-repeat-resends-message")
def test_a_repeated_request_for_variants_of_a_batch_adds_none() -> None:
    world = BatchesWorld()
    (image,) = finished(world, 1)
    batch, other = world.open(), world.open()
    first = world.add(image, key="k", batch=batch.batch_id)
    assert world.add(image, key="k", batch=batch.batch_id) == first and len(world.lanes.sent) == 2
    for asked in ({"batch": other.batch_id}, {}):
        with pytest.raises(Rejected) as caught:
            world.add(image, key="k", **asked)
        assert caught.value.code == "idempotency_key_reused"
    with pytest.raises(Rejected) as caught:
        world.add(finished(world, 1)[0], batch=world.close(other).batch_id)
    assert caught.value.code == "batch_closed"
