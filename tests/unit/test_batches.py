"""Batches: how they open, close, stop and end, and what each of their images is from its events and its row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from darkroom.aws.bulk.batches_table import BATCHES, MEMBERS
from darkroom.domain.bulk.batches import (
    LOOK_SECONDS,
    MAX_LOOK_SECONDS,
    Batch,
    BatchState,
    Counts,
    Look,
    OnFailure,
    Stop,
    Sums,
    batch_id_for_key,
    batch_id_from_bits,
    close,
    end,
    is_batch_id,
    is_quiet,
    look_again,
    look_on,
    open_batch,
    require_open,
    stop,
    stops_by,
)
from darkroom.domain.bulk.members import (
    MOST_CHANGES,
    SHARDS,
    Change,
    Member,
    MemberState,
    after_write,
    differences,
    may_still_cancel,
    of_row,
    transactions_of,
)
from darkroom.domain.images.claim import NothingToDo
from darkroom.domain.images.image import Image, Source, Status
from darkroom.domain.images.order import order_of
from darkroom.domain.images.transitions import TURN_SECONDS, arrive, begin_turn, delete
from darkroom.domain.kernel.errors import Rejected
from darkroom.domain.kernel.lanes import LANES
from darkroom.domain.schedules.schedule import Timetable
from darkroom.domain.sweeping.due import Rescue, Wait, decide_due
from darkroom.domain.webhooks.row_events import event_of, events_of
from local_aws.event_patterns import passes
from repository.expand_template import resources
from tests.support.fakes import World
from tests.support.fakes.pictures import jpeg
from tests.support.fakes.rows import accepted_image
from tests.support.images import awaiting, pending, processing

NOW = 1_795_251_600_000
BATCH = batch_id_from_bits(bytes(16))
DAY = 24 * 3600 * 1000


def opened(**stated: object) -> Batch:
    return open_batch(BATCH, tenant_id="acme", now=NOW, **stated)  # type: ignore[arg-type]


def member(state: MemberState = MemberState.JOINED, version: int = 0) -> Member:
    return Member(batch_id=BATCH, image_id="0" * 26, state=state, version=version, joined_at=NOW)


def test_ids_have_a_form_of_their_own_and_one_key_of_a_tenant_gives_one() -> None:
    ids = {batch_id_for_key("acme", "k"), batch_id_for_key("acme", "l"), batch_id_for_key("other", "k"), BATCH}
    assert len(ids) == 4 and all(map(is_batch_id, ids))
    assert not any(map(is_batch_id, ("0" * 26, BATCH[:-1], BATCH + "0", BATCH.upper())))


ENDED = Counts(done=3, failed=1, cancelled=1, expired=1)


@pytest.mark.parametrize(
    ("why", "state"),
    [(None, BatchState.COMPLETED), (Stop.FAILURE, BatchState.FAILED), (Stop.CLIENT, BatchState.CANCELLED)],
)
def test_a_batch_ends_once_in_the_state_that_says_why(why: Stop | None, state: BatchState) -> None:
    batch = close(opened(), now=NOW + 5) if why is None else stop(opened(), why, now=NOW + 5)
    assert (batch.state, batch.closed_at, batch.due_at) == (BatchState.CLOSED, NOW + 5, NOW + 5)
    ended = end(batch, ENDED, now=NOW + 9)
    assert (ended.state, ended.counts, ended.ended_at, ended.ended_version) == (state, ENDED, NOW + 9, 2)
    assert ended.due_at is None and ended.forget_at is not None
    assert stop(ended, Stop.CLIENT, now=NOW) == close(ended, now=NOW) == ended
    with pytest.raises(ValueError, match="cannot end"):
        end(ended, ENDED, now=NOW)


@pytest.mark.guards("bulk-end-closed-only", "bulk-end-all-ended")
def test_only_a_closed_batch_all_of_whose_images_have_ended_ends() -> None:
    for batch, counts in ((opened(), ENDED), (close(opened(), now=NOW), ENDED + Counts(joined=1))):
        with pytest.raises(ValueError, match="cannot end"):
            end(batch, counts, now=NOW)


@pytest.mark.guards("bulk-look-anew-once-closed")
def test_a_look_that_began_before_its_batch_was_closed_begins_anew() -> None:
    looked_at = look_on(opened(), Look(after="5", counts=Counts(done=5), is_full=True), now=NOW)
    assert looked_at.look is not None and close(looked_at, now=NOW).look is None


def test_an_empty_batch_that_is_closed_is_complete() -> None:
    assert end(close(opened(), now=NOW), Counts(), now=NOW).state is BatchState.COMPLETED
    assert Counts().progress == 1.0


MAPPING = resources("AWS::Lambda::EventSourceMapping")["PublishEventsFunctionBatchesTable"]


@pytest.mark.guards("bulk-end-told-once")
@pytest.mark.parametrize(
    ("why", "kind"),
    [(None, "batch.completed"), (Stop.FAILURE, "batch.failed"), (Stop.CLIENT, "batch.cancelled")],
)
def test_the_world_hears_once_how_a_batch_has_ended_and_the_filter_lets_nothing_else_through(
    why: Stop | None, kind: str
) -> None:
    made = open_batch(BATCH, tenant_id="acme", now=NOW, name="catalogue", notify="we_3000000000000001")
    closed = replace(close(made, now=NOW + 1), stops=why, version=2)
    ended = replace(end(closed, Counts(done=2, failed=1), now=NOW + 2), version=3)
    event = event_of(closed, ended)
    assert event is not None
    assert (event.type, event.event_id, event.time, event.notify) == (kind, f"{BATCH}-3", NOW + 2, made.notify)
    assert event.data == {
        "id": BATCH,
        "tenant_id": "acme",
        "name": "catalogue",
        "images": {"done": 2, "failed": 1, "cancelled": 0, "expired": 0},
        "links": {"self": f"/batches/{BATCH}"},
    }
    assert [each.event_id for each in events_of(ended)] == [event.event_id]
    assert [*events_of(closed)] == []
    later = replace(ended, version=4)
    key = {"place": {"S": BATCH}, "part": {"S": "batch"}}
    for before, after in ((None, made), (made, closed), (closed, ended), (ended, later), (None, ended), (ended, None)):
        stream = {
            "Keys": key,
            **({} if before is None else {"OldImage": BATCHES.item_of(before) | key}),
            **({} if after is None else {"NewImage": BATCHES.item_of(after) | key}),
        }
        told = event_of(before, after) is not None
        assert passes(MAPPING["FilterCriteria"]["Filters"], {"dynamodb": stream}) == told
    member = Member(batch_id=BATCH, image_id="0" * 26, joined_at=NOW, state=MemberState.FAILED, version=2)
    written = {"Keys": {"place": {"S": f"{BATCH}#0"}, "part": {"S": member.image_id}}}
    images = {"OldImage": MEMBERS.item_of(replace(member, version=1)), "NewImage": MEMBERS.item_of(member)}
    assert not passes(MAPPING["FilterCriteria"]["Filters"], {"dynamodb": written | images})


def test_a_failure_stops_a_batch_that_wants_it_once_and_its_client_has_the_last_word() -> None:
    stopping = opened(on_failure=OnFailure.STOP)
    assert stops_by(stopping, ENDED) and not stops_by(stopping, Counts(done=1)) and not stops_by(opened(), ENDED)
    stopped = stop(stopping, Stop.FAILURE, now=NOW + 1)
    assert not stops_by(stopped, ENDED)
    assert stop(stopped, Stop.FAILURE, now=NOW + 2) == stopped
    cancelled = stop(stopped, Stop.CLIENT, now=NOW + 3)
    assert (cancelled.stops, cancelled.closed_at) == (Stop.CLIENT, NOW + 1)
    assert stop(cancelled, Stop.FAILURE, now=NOW + 4) == cancelled


def test_a_batch_is_looked_at_when_it_closes_by_itself_and_less_often_the_longer_nothing_happens() -> None:
    assert opened().due_at == NOW + 7 * DAY
    assert opened(parallelism=2).due_at == NOW + LOOK_SECONDS * 1000
    batch, pauses = close(opened(), now=NOW), []
    for _ in range(10):
        batch = look_again(batch, now=NOW, is_quiet=True)
        pauses.append(((batch.due_at or 0) - NOW) // 1000)
    assert pauses[:3] == [600, 1200, 2400] and pauses[-1] == MAX_LOOK_SECONDS
    assert look_again(batch, now=NOW, is_quiet=False).due_at == NOW + LOOK_SECONDS * 1000
    assert look_again(batch, now=NOW, is_quiet=True, seen=ENDED).due_at == NOW + 60_000
    late = look_again(opened(parallelism=2), now=NOW + 7 * DAY - 1, is_quiet=True)
    assert late.due_at == NOW + 7 * DAY


def test_a_batch_is_quiet_while_nothing_is_counted() -> None:
    later = NOW + LOOK_SECONDS * 1000
    assert not is_quiet(opened(), Sums(), later - 1) and is_quiet(opened(), Sums(), later)
    assert not is_quiet(opened(), Sums(counted_at=NOW + 1), later)


@pytest.mark.guards("bulk-own-tenant", "bulk-join-open-only")
@pytest.mark.parametrize(
    ("batch", "tenant_id", "code"),
    [
        (None, "acme", "unknown_batch"),
        (opened(), "other", "unknown_batch"),
        (close(opened(), now=NOW), "acme", "batch_closed"),
    ],
)
def test_images_join_only_their_tenants_open_batch(batch: Batch | None, tenant_id: str, code: str) -> None:
    with pytest.raises(Rejected) as caught:
        require_open(batch, tenant_id)
    assert caught.value.code == code
    assert require_open(opened(), "acme") == opened()


def test_the_rest_is_estimated_by_the_rate_at_which_images_have_ended() -> None:
    sums = Sums(counts=Counts(working=30, done=11), first_ended_at=NOW)
    assert sums.remaining_seconds(NOW + 10_000) == 30
    for early in (Sums(), replace(sums, first_ended_at=None), replace(sums, counts=Counts(done=1))):
        assert early.remaining_seconds(NOW + 10_000) is None


@pytest.mark.guards("bulk-older-write-ignored")
@pytest.mark.parametrize(("known", "counts"), [(0, True), (3, True), (4, False), (5, False)])
def test_a_write_counts_if_it_is_newer_than_what_is_known(known: int, counts: bool) -> None:
    image = replace(pending(status=Status.DONE), version=4)
    after = after_write(member(MemberState.WORKING, known), image)
    assert after == (member(MemberState.DONE, 4) if counts else None)


@pytest.mark.parametrize(
    ("image", "known", "state"),
    [
        (awaiting(), MemberState.JOINED, MemberState.JOINED),
        (pending(), MemberState.JOINED, MemberState.WORKING),
        (pending(awaits_turn=True), MemberState.JOINED, MemberState.WAITING),
        (pending(awaits_turn=True), MemberState.WORKING, MemberState.WORKING),
        (processing(), MemberState.WAITING, MemberState.WORKING),
        (pending(status=Status.DONE), MemberState.WORKING, MemberState.DONE),
        (pending(status=Status.FAILED), MemberState.WORKING, MemberState.FAILED),
        (delete(pending(), now=NOW), MemberState.WORKING, MemberState.CANCELLED),
        (delete(pending(status=Status.DONE), now=NOW), MemberState.WORKING, MemberState.DONE),
    ],
)
def test_a_row_says_what_an_image_is_if_its_event_was_lost(
    image: Image, known: MemberState, state: MemberState
) -> None:
    assert of_row(member(known, 1), replace(image, version=4)) == member(state, 4)


def test_only_what_was_not_begun_can_be_taken_back() -> None:
    can = [awaiting(), pending(), pending(awaits_turn=True), replace(awaiting(), status=Status.FETCHING, attempt=3)]
    cannot = [processing(), pending(attempt=1), pending(status=Status.DONE)]
    assert all(may_still_cancel(member(), image) for image in can)
    assert not any(may_still_cancel(member(), image) for image in cannot)


def test_changes_add_up_without_those_that_only_joined() -> None:
    waiting, done = member(MemberState.WAITING, 1), member(MemberState.DONE, 2)
    changes = [Change(member(), waiting), Change(waiting, done), Change(None, done), Change(member(), None)]
    assert differences(changes) == {"done": 2}
    assert [len(part) for part in transactions_of([Change(None, done)] * 100)] == [MOST_CHANGES, 1]


def test_images_are_spread_over_all_partitions() -> None:
    shards = {replace(member(), image_id=f"{number:026d}").shard for number in range(100)}
    assert shards == set(range(SHARDS))


# What a row says of its batch


WAITING = accepted_image(now=NOW, batch=BATCH, awaits_turn=True)


@pytest.mark.guards("bulk-waiting-image-in-no-index")
def test_an_image_that_awaits_its_turn_is_late_for_nobody_and_begins_as_if_accepted_then() -> None:
    late = NOW + TURN_SECONDS * 1000
    arrived = arrive(
        replace(awaiting(), awaits_turn=True), Source(version_id="v", sha256="s", size_bytes=1, media_type="m"), now=NOW
    )
    for image in (WAITING, arrived):
        assert (image.status, image.waiting_since, image.enqueued_at) == (Status.PENDING, None, None)
        assert (image.waiting_shard, image.due_at) == (None, late)
    begun = begin_turn(WAITING, now=NOW + 5)
    assert begun == replace(accepted_image(now=NOW + 5, batch=BATCH), created_at=NOW, accepted_at=NOW)


@pytest.mark.guards("bulk-sweeper-keeps-turns")
def test_the_sweeper_begins_an_image_only_when_it_is_its_turn() -> None:
    now = NOW + TURN_SECONDS * 1000

    def duty(**turn: bool) -> object:
        return decide_due(WAITING, now=now, backlog=0, releasing_until=0, service=LANES, **turn)

    assert duty(has_turn=True) == Rescue(image=begin_turn(WAITING, now=now))
    waits = duty(has_turn=False)
    assert isinstance(waits, Wait)
    assert (waits.image.due_at, waits.image.awaits_turn) == (now + TURN_SECONDS * 1000, True)
    assert not isinstance(duty(), NothingToDo)


@pytest.mark.guards("bulk-in-fingerprint", "bulk-no-image-of-others")
def test_a_batch_is_part_of_what_was_asked_for_and_takes_no_image_that_is_there() -> None:
    signatures: Callable[..., str] = lambda **stated: order_of(**stated).request_signature  # noqa: E731
    assert len({signatures(), signatures(batch=BATCH), signatures(batch=batch_id_from_bits(bytes(15) + b"1"))}) == 3
    with pytest.raises(Rejected) as caught:
        order_of(batch=BATCH, on_duplicate="reuse")
    assert caught.value.code == "conflicting_parameters"


@pytest.mark.guards("bulk-no-message-before-turn", "bulk-turn-or-time")
def test_an_image_joins_before_it_is_stored_and_is_sent_when_it_is_its_turn() -> None:
    joined: list[tuple[str, str, str]] = []

    def join(tenant_id: str, batch_id: str, image_id: str, run: int | None) -> bool:
        assert run is None
        joined.append((tenant_id, batch_id, image_id))
        return True

    world = World(join_batch=join)
    image = world.submit(jpeg(), batch=BATCH).image
    assert (image.batch, image.awaits_turn, world.lanes.sent) == (BATCH, True, [])
    assert joined == [("default", BATCH, image.image_id)]
    with pytest.raises(Rejected) as caught:
        world.submit(jpeg(), batch=BATCH, timetable=Timetable(delay_milliseconds=9_000_000))
    assert caught.value.code == "conflicting_parameters"
    with pytest.raises(Rejected) as caught:
        World().submit(jpeg(), batch=BATCH)
    assert caught.value.code == "part_not_deployed"
