"""The sweeper: sends accepted images again whose message got lost."""

import json
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import count, islice
from typing import Any, cast

import pytest

from darkroom.domain.events.event import body_of
from darkroom.domain.images.image import DUE_SHARD_NAMES, DeadLetterState, Image, Status, due_shard_of, message_for
from darkroom.domain.images.transitions import delete, give_up
from darkroom.domain.kernel.errors import Retryable
from darkroom.domain.kernel.lanes import LANES, SLOW
from darkroom.domain.kernel.message import read_message
from darkroom.domain.sweeping.due import LAST_MESSAGE_SECONDS, REMOVAL_GRACE_SECONDS, TOMBSTONE_SECONDS, behind
from darkroom.domain.webhooks.delivery import Delivery, DeliveryAttempt, DeliveryStatus, new_delivery
from darkroom.domain.webhooks.row_events import events_of
from darkroom.operations.sweeping import sweep_due_images as operation
from darkroom.operations.sweeping.sweep_due_images import POSTPONED_SECONDS, SweepDueImagesPorts, sweep_due_images
from darkroom.ports.images import Due
from darkroom.ports.kernel import UnreadableRow
from darkroom_cli.terminal.at_once import at_once
from tests.failures import ANY_FAILURE
from tests.support.fakes import World
from tests.support.fakes.damage import damage_once
from tests.support.fakes.pictures import jpeg
from tests.support.faults import calls_of, failing, meanwhile, raising
from tests.support.images import developed, pending

PHOTO = jpeg()


@pytest.fixture
def image_id(world: World) -> str:
    return world.submit(PHOTO).image.image_id


@pytest.mark.guards("sweeper-lost-message-sent")
def test_an_image_that_was_never_enqueued_is_sent_once_it_is_due(world: World, image_id: str) -> None:
    world.lanes.sent.clear()
    assert world.sweep().outcomes == Counter()
    world.advance(1200)
    assert world.sweep().outcomes == Counter(rescued=1)
    assert [message.image_id for message in world.lanes.sent] == [image_id]
    world.deliver(world.lanes.sent[0])
    assert world.row(image_id).status is Status.DONE


def test_an_image_whose_worker_died_is_sent_after_sqs_had_its_turn(world: World, image_id: str) -> None:
    message = world.lanes.sent[0]
    original_get, world.originals.get = world.originals.get, raising(KeyboardInterrupt)
    with suppress(KeyboardInterrupt):
        world.deliver(message)
    world.originals.get = original_get
    world.advance(360)
    assert world.sweep().outcomes == Counter(), "the visibility timeout has just passed: SQS goes first"
    world.advance(60)
    assert world.sweep().outcomes == Counter(rescued=1)
    world.deliver(world.lanes.sent[-1], receipt="receipt-2")
    assert (world.row(image_id).status, world.row(image_id).attempt) == (Status.DONE, 2)


@pytest.mark.guards("sweeper-exhausted-given-up")
def test_an_image_without_attempts_is_failed_and_not_sent(world: World, image_id: str) -> None:
    world.images.rows[image_id] = replace(world.row(image_id), attempt=5, due_at=world.now)
    world.lanes.sent.clear()
    assert world.sweep().outcomes == Counter(gave_up=1)
    assert world.row(image_id).status is Status.FAILED
    assert world.lanes.sent == []


@pytest.mark.guards("sweeper-unsent-due-at-once")
@ANY_FAILURE
def test_a_queue_that_does_not_answer_leaves_the_image_due(world: World, image_id: str, failure: Exception) -> None:
    world.advance(1200)
    send = world.lanes.send
    world.lanes.send = raising(failure)
    assert world.sweep().outcomes == Counter(unsent=1)
    assert world.row(image_id).due_at == world.now
    world.lanes.send = send
    assert world.sweep().outcomes == Counter(rescued=1)


@pytest.mark.guards("fence-on-sweep")
def test_of_two_sweeps_at_once_only_one_sends(world: World, image_id: str) -> None:
    world.lanes.sent.clear()
    world.advance(1200)
    stale = world.row(image_id)
    world.sweep()
    # A lagging index listed the image to the second sweep, which read the row before the first postponed it.
    assert stale.due_at is not None
    due = Due(stale.due_at, image_id)
    world.images.due = lambda *_, **__: iter([due])
    world.images.get_all = lambda _: {image_id: stale}
    assert world.sweep().outcomes == Counter(fenced=5), "every kind listed it, and the row refused each"
    assert len(world.lanes.sent) == 1


@pytest.mark.guards("fence-on-deleted")
def test_an_image_that_is_deleted_in_the_millisecond_of_its_look_is_removed_all_the_same(
    world: World, image_id: str
) -> None:
    claimed = replace(world.row(image_id), status=Status.PROCESSING, attempt=5)
    world.images.rows[image_id] = give_up(claimed, now=world.now)
    meanwhile(world.images, "change", lambda *_, **__: world.delete(image_id), times=1)
    world.sweep()
    assert (world.row(image_id).is_deleted, world.row(image_id).dead_letter) == (True, None)
    world.sweep()
    assert not world.originals.versions_of(image_id)


@pytest.mark.guards("sweeper-bad-row-isolated")
def test_a_bug_over_one_image_does_not_keep_the_sweeper_from_the_others(world: World) -> None:
    cursed = world.submit(PHOTO).image.image_id
    others = {world.submit(PHOTO).image.image_id for _ in range(20)}
    world.lanes.sent.clear()
    world.advance(1200)
    world.images = failing(world.images, "get", ZeroDivisionError(), lambda image_id: image_id == cursed)
    world.images = failing(world.images, "get_all", ZeroDivisionError(), lambda image_ids: cursed in image_ids)
    sweep = world.sweep()
    assert sweep.outcomes == Counter(rescued=20, error=1)
    assert list(sweep.errors) == [cursed]
    assert {message.image_id for message in world.lanes.sent} == others


def test_a_sweep_that_runs_out_of_time_stops_in_order_and_the_next_goes_on(world: World) -> None:
    for _ in range(10):
        world.submit(PHOTO)
    world.lanes.sent.clear()
    world.advance(1200)
    looks = count()
    sweep = sweep_due_images(world.ports(SweepDueImagesPorts), out_of_time=lambda: next(looks) > 4)
    assert (sweep.complete, sweep.outcomes) == (False, Counter(rescued=4))
    assert world.sweep().outcomes == Counter(rescued=6)
    assert len({message.image_id for message in world.lanes.sent}) == 10


@pytest.mark.guards("sweep-lateness-reported")
def test_what_a_sweep_could_not_do_shows_how_late_it_is(world: World) -> None:
    world.images.rows["0" * 26] = pending(due_at=world.now - 450_000)
    world.images.rows["1" * 26] = delete(pending(image_id="1" * 26), now=world.now - 60_000)
    sweep = sweep_due_images(world.ports(SweepDueImagesPorts), out_of_time=lambda: True)
    assert sweep.late_seconds == {"rescues": 450.0, "removals": 60.0}
    assert behind(sweep.late_seconds) == 1.5, "a rescue has five minutes, a removal thirty"
    assert world.sweep().late_seconds == {}


def of_tenant(tenant_id: str, number: int, **changes: Any) -> Image:
    return pending(image_id=f"{tenant_id:>13}{number:013d}".replace(" ", "0"), tenant_id=tenant_id, **changes)


@pytest.mark.guards("sweep-tenant-turns")
@pytest.mark.guards("sweep-latest-also-listed", case="10")
@pytest.mark.parametrize("limit", [operation.PARTITION_LIMIT, 10])
def test_no_tenants_pile_keeps_anothers_image_waiting(limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operation, "PARTITION_LIMIT", limit)  # 10: the pile is more than is listed
    world = World()
    pile = [of_tenant("acme", number, due_at=1 + number) for number in range(1500)]
    others = [of_tenant(tenant_id, 1, due_at=world.now) for tenant_id in ("globex", "initech")]
    world.images.rows = {image.image_id: image for image in (*pile, *others)}
    looked_at: list[str] = []
    meanwhile(world.images, "get_all", looked_at.extend)
    sweep_due_images(world.ports(SweepDueImagesPorts), out_of_time=lambda: bool(looked_at))
    assert {image.image_id for image in others} < set(looked_at)
    assert len(looked_at) == operation.ROWS_IN_TURN


def test_where_tenants_cannot_be_read_the_oldest_come_first(world: World) -> None:
    world.images.rows = {image.image_id: image for image in (of_tenant("acme", n, due_at=1 + n) for n in range(420))}
    world.images.tenants_of = raising(Retryable("throttled"))
    assert world.sweep().outcomes == Counter(rescued=420)


@pytest.mark.guards("sweep-kinds-independent")
def test_kinds_do_not_wait_for_each_other(world: World) -> None:
    both = threading.Barrier(2, timeout=3)
    meanwhile(world.lanes, "send_all", lambda lane, messages: both.wait())
    meanwhile(world.outputs, "remove", lambda _: both.wait())
    world.images.rows["0" * 26] = pending(due_at=world.now)
    world.images.rows["1" * 26] = delete(pending(image_id="1" * 26), now=1)
    ports = replace(world.ports(SweepDueImagesPorts), at_once=at_once)
    assert sweep_due_images(ports, out_of_time=lambda: False).outcomes == Counter(rescued=1, removed=1)


@pytest.mark.guards("sweep-silent-queue-once")
def test_a_queue_that_does_not_answer_is_asked_once_in_a_sweep(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operation, "ROWS_IN_TURN", 10)
    world.images.rows = {image.image_id: image for image in (of_tenant("acme", n, due_at=1 + n) for n in range(50))}
    asked = list[str]()

    def dead(lane: str, messages: Sequence[Any]) -> Any:
        asked.append(lane)
        return dict.fromkeys(range(len(messages)), Retryable("timeout"))

    world.lanes.send_all = dead
    sweep = world.sweep()
    assert (sweep.outcomes, asked) == (Counter(unsent=50), ["slow"])
    assert sum(row.rescues for row in world.images.rows.values()) == 10, "the others were not postponed"
    assert all(row.due_at is not None and row.due_at <= world.now for row in world.images.rows.values())


def test_messages_are_sent_by_tens_and_rows_read_by_hundreds(world: World) -> None:
    world.images.rows = {image.image_id: image for image in (of_tenant("acme", n, due_at=1) for n in range(100))}
    calls = [calls_of(*call) for call in ((world.images, "get_all"), (world.images, "get"), (world.lanes, "send_all"))]
    assert world.sweep().outcomes == Counter(rescued=100)
    assert list(map(len, calls)) == [1, 0, 10]


def ids_of_shard(shard: str) -> Iterator[str]:
    return (image_id for n in count() if due_shard_of(image_id := f"{n:026d}") == shard)


def unreadable(world: World, image_id: str = "0" * 26, **changes: Any) -> str:
    """A row of a newer version, due for longer than any other."""
    world.images.unreadable[image_id] = pending(**{"image_id": image_id, "due_at": 1, "waiting_since": 1} | changes)
    return image_id


def test_an_unreadable_row_keeps_no_other_image_waiting_and_stays_as_it_is(world: World) -> None:
    shard = next(iter(DUE_SHARD_NAMES))
    bad, good = islice(ids_of_shard(shard), 2)
    unreadable(world, bad)
    row = world.images.unreadable[bad]
    world.images.rows[good] = pending(image_id=good, due_at=2)
    sweep = world.sweep()
    assert sweep.outcomes == Counter(unreadable=1, rescued=1)
    assert ([error.row_id for error in sweep.unreadable], sweep.errors) == ([bad], {})
    assert world.images.unreadable[bad] == replace(row, due_at=world.now + POSTPONED_SECONDS * 1000)


@pytest.mark.guards("sweep-hopeless-row-delay", case="a bug")
@pytest.mark.guards("sweep-hopeless-row-delay", case="ended, and due for what a newer version owes")
@pytest.mark.guards("sweep-hopeless-row-delay", case="unreadable")
@pytest.mark.parametrize("kind", ["unreadable", "a bug", "ended, and due for what a newer version owes"])
def test_more_hopeless_rows_than_a_sweep_looks_at_do_not_starve_their_shard(
    world: World, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(operation, "PARTITION_LIMIT", 5)
    monkeypatch.setattr(operation, "LATEST_LIMIT", 1)
    *hopeless, good, other, last = islice(ids_of_shard("07"), 8)
    for image_id in hopeless:
        match kind:
            case "unreadable":
                unreadable(world, image_id)
            case "a bug":
                world.images.rows[image_id] = pending(image_id=image_id, due_at=1, rescues="no number")
            case _:
                world.images.rows[image_id] = pending(image_id=image_id, due_at=1, status=Status.DONE)
    world.images.rows[good] = pending(image_id=good, due_at=2)
    world.images.rows[other] = pending(image_id=other, due_at=3)
    world.images.rows[last] = pending(image_id=last, due_at=4)
    outcomes = world.sweep().outcomes
    is_elsewhere = kind.startswith("ended")  # no rescue: its pile is another kind's
    expected = (8, 3) if is_elsewhere else (6, 1)
    assert (sum(outcomes.values()), outcomes["rescued"]) == expected, "the last one is seen behind any pile"
    assert world.sweep().outcomes == (Counter() if is_elsewhere else Counter(rescued=2))


def test_a_row_that_somebody_has_moved_on_meanwhile_is_not_postponed(world: World) -> None:
    bad = unreadable(world)
    moved_on = {bad: replace(world.images.unreadable[bad], due_at=2)}
    meanwhile(world.images, "get_all", lambda _: world.images.unreadable.update(moved_on))
    assert world.sweep().outcomes == Counter(unreadable=1)
    assert world.images.unreadable[bad].due_at == 2


@pytest.mark.guards("sweep-postponement-isolated")
def test_a_row_that_cannot_even_be_postponed_keeps_no_other_waiting(world: World) -> None:
    unreadable(world)
    world.submit(PHOTO)
    world.advance(1200)
    world.images.postpone = raising(ZeroDivisionError)
    assert world.sweep().outcomes == Counter(unreadable=1, rescued=1)


@pytest.mark.guards("sweep-shard-isolated", case="error0")
@pytest.mark.parametrize("error", [Retryable("throttled"), ZeroDivisionError()])
def test_a_shard_that_cannot_be_listed_keeps_no_other_waiting(world: World, error: Exception) -> None:
    world.images.rows |= {
        image_id: pending(image_id=image_id, due_at=1)
        for shard in DUE_SHARD_NAMES
        for image_id in islice(ids_of_shard(shard), 1)
    }
    world.images = failing(world.images, "due", error, lambda shard, *_: shard == "03")
    sweep = world.sweep()
    assert (sweep.outcomes, sweep.unlisted) == (Counter(rescued=15), {"03": error})


def given_up(world: World) -> str:
    """An image whose attempts ran out, at the moment when its row says so."""
    image_id = world.submit(PHOTO).image.image_id
    world.images.rows[image_id] = replace(world.row(image_id), attempt=5, due_at=world.now)
    world.lanes.sent.clear()
    assert world.sweep().outcomes == Counter(gave_up=1)
    return image_id


@pytest.mark.guards("sweeper-dead-letter-ensured")
def test_a_given_up_image_gets_one_dead_letter_that_explains_itself(world: World) -> None:
    image_id = given_up(world)
    assert world.sweep().outcomes == Counter(dead_letter_placed=1)
    (dead_letter,) = world.dead_letters.messages["slow"]
    assert dead_letter.body == message_for(world.row(image_id)).model_dump_json()
    explanation = json.loads(dead_letter.explanation or "")
    assert (explanation["image_id"], explanation["cause"]) == (image_id, "internal")
    world.advance(LAST_MESSAGE_SECONDS)
    assert world.sweep().outcomes == Counter(dead_letter_placed=1)
    assert (world.row(image_id).dead_letter, world.row(image_id).due_at) == (DeadLetterState.KEPT, None)
    assert world.dead_letters.messages["slow"] == [dead_letter] and world.dead_letters.hidden == set()


@pytest.mark.guards("dead-letters-sqs-own-removed")
def test_a_dead_letter_that_sqs_made_is_replaced_by_one_that_explains_itself(world: World) -> None:
    image_id = given_up(world)
    raw = [
        world.dead_letters.add("slow", message_for(world.row(image_id)).model_dump_json()).message_id for _ in range(2)
    ]
    others = [world.dead_letters.add("slow", body) for body in ("not a message of ours", "{}")]
    world.sweep()
    *left, dead_letter = world.dead_letters.messages["slow"]
    assert left == others and dead_letter.explanation is not None and dead_letter.message_id not in raw


@pytest.mark.guards("dead-letters-placed-once")
def test_a_sweep_that_died_after_it_placed_a_dead_letter_places_no_other(world: World) -> None:
    image_id = given_up(world)
    owing = world.row(image_id)
    world.sweep()
    world.images.rows[image_id] = owing
    assert world.sweep().outcomes == Counter(dead_letter_placed=1)
    assert len(world.dead_letters.messages["slow"]) == 1


@pytest.mark.guards("dead-letters-second-look")
def test_a_dead_letter_that_comes_late_is_removed_and_one_that_was_dropped_stays_dropped(world: World) -> None:
    image_id = given_up(world)
    world.sweep()
    (dead_letter,) = world.dead_letters.messages["slow"]
    world.dead_letters.add("slow", dead_letter.body)
    world.advance(LAST_MESSAGE_SECONDS)
    world.sweep()
    assert world.dead_letters.messages["slow"] == [dead_letter]

    dropped = given_up(world)
    world.sweep()
    world.dead_letters.messages["slow"].clear()
    world.advance(LAST_MESSAGE_SECONDS)
    world.sweep()
    assert world.dead_letters.messages["slow"] == [] and world.row(dropped).dead_letter is DeadLetterState.KEPT
    assert world.row(image_id).dead_letter is DeadLetterState.KEPT


@pytest.mark.guards("dead-letters-own-run")
def test_a_dead_letter_of_an_earlier_run_does_not_count_for_the_present_one(world: World) -> None:
    image_id = given_up(world)
    owing = world.row(image_id)
    world.sweep()
    (earlier,) = world.dead_letters.messages["slow"]
    world.images.rows[image_id] = replace(owing, run=2)
    world.sweep()
    assert [read_message(dead_letter.body).run for dead_letter in world.dead_letters.messages["slow"]] == [1, 2]
    assert world.dead_letters.messages["slow"][0] == earlier


@pytest.mark.guards("dead-letters-sweep-lost-answer")
@pytest.mark.parametrize("not_all", [{"complete": False}, {"asked_again": True}], ids=["too many", "an answer lost"])
def test_where_not_all_dead_letters_can_be_seen_a_second_one_is_placed_only_after_three_looks(
    world: World,
    not_all: dict[str, bool],
) -> None:
    given_up(world)
    take = world.dead_letters.take
    world.dead_letters.take = lambda queue, limit: replace(take(queue, limit), **not_all)
    for _ in range(2):
        assert world.sweep().outcomes == Counter(dead_letter_owed=1)
        world.advance(3600)
    assert world.sweep().outcomes == Counter(dead_letter_placed=1)


def test_a_dead_letter_that_an_operator_holds_is_waited_for(world: World) -> None:
    image_id = given_up(world)
    owing = world.row(image_id)
    world.sweep()
    world.images.rows[image_id] = owing  # the sweep died before it could write that it had placed the dead letter
    held = world.dead_letters.take("slow", 10)
    assert world.sweep().outcomes == Counter(dead_letter_owed=1)
    world.dead_letters.give_back(held.dead_letters)
    world.advance(60)
    assert world.sweep().outcomes == Counter(dead_letter_placed=1)
    assert len(world.dead_letters.messages["slow"]) == 1


def test_the_last_look_is_one_that_sees_all_dead_letters(world: World) -> None:
    image_id = given_up(world)
    world.sweep()
    (dead_letter,) = world.dead_letters.messages["slow"]
    world.dead_letters.add("slow", dead_letter.body)
    world.advance(LAST_MESSAGE_SECONDS)
    hidden = world.dead_letters.take("slow", 10)  # received by a sweep to which the answer never came
    assert world.sweep().outcomes == Counter(dead_letter_owed=1)
    world.dead_letters.give_back(hidden.dead_letters)
    world.advance(60)
    assert world.sweep().outcomes == Counter(dead_letter_placed=1)
    assert (
        world.dead_letters.messages["slow"] == [dead_letter] and world.row(image_id).dead_letter is DeadLetterState.KEPT
    )


@pytest.mark.guards("dead-letters-placed-once")
def test_a_dead_letter_whose_answer_was_lost_is_found_by_the_next_sweep(world: World) -> None:
    given_up(world)
    put = world.dead_letters.put

    def answer_lost(*arguments: Any) -> None:
        put(*arguments)
        raise Retryable("the answer never came")

    world.dead_letters.put = answer_lost
    assert world.sweep().outcomes == Counter(unreachable=1)
    world.dead_letters.put = put
    world.advance(60)
    assert world.sweep().outcomes == Counter(dead_letter_placed=1)
    assert len(world.dead_letters.messages["slow"]) == 1


@pytest.mark.guards("sweeper-original-removed", "sweeper-outputs-removed")
def test_a_withdrawn_images_objects_go_at_once_and_again_when_nobody_can_write_any_more(world: World) -> None:
    image_id = developed(world)
    world.delete(image_id)
    assert world.sweep().outcomes == Counter(removed=1)
    assert (world.originals.objects, world.outputs.objects, world.once.results) == ({}, {}, {})
    world.outputs.objects[f"outputs/{image_id}/1/late.jpg"] = b"of a worker that did not know"
    world.once.results[f"{image_id}#1"] = "what it has made"
    world.advance(REMOVAL_GRACE_SECONDS)
    assert world.sweep().outcomes == Counter(removed=1)
    assert (world.outputs.objects, world.once.results) == ({}, {})
    row = world.row(image_id)
    assert (row.due_at, row.forget_at) == (None, world.now // 1000 + TOMBSTONE_SECONDS)


def noted(world: World, image_id: str, number: int, **stated: Any) -> Delivery:
    """A delivery of what the image's row tells, to the endpoint of that number, with one attempt."""
    (*_, event) = events_of(world.row(image_id))
    row = new_delivery(
        endpoint_id=f"we_{number}",
        tenant_id=event.tenant_id,
        event_id=event.event_id,
        event_type=event.type,
        time=event.time,
        body=body_of(event, source="/darkroom/test"),
        now=world.now,
    )
    attempt = DeliveryAttempt(number=1, started_at=world.now, status=500, response='{"seen": "thumb"}')
    return cast(Delivery, world.deliveries.create(replace(row, attempt=1, attempts=(attempt,), **stated)))


def shown(world: World) -> list[str]:
    """What deliveries say of variants, or of what was answered about them."""
    rows = [row for rows in world.deliveries.rows.values() for row in rows.values()]
    return [row.endpoint_id for row in rows if "thumb" in f"{row.body} {row.attempts}"]


@pytest.mark.guards("erasure-sweeper-blanks-deliveries")
def test_what_deliveries_say_of_a_withdrawn_image_goes_whether_they_wait_or_have_ended(world: World) -> None:
    image_id, other_id = (world.submit(PHOTO).image.image_id for _ in range(2))
    for message in list(world.lanes.sent):
        world.deliver(message)
    for number, status in enumerate((DeliveryStatus.WAITING, DeliveryStatus.DELIVERED, DeliveryStatus.FAILED)):
        noted(world, image_id, number, status=status, due_at=None)
    died = {"status": DeliveryStatus.SENDING, "lease_until": world.now - 1}
    noted(world, image_id, 3, **died)
    noted(world, other_id, 4)
    before = {row.delivery_id: row for rows in world.deliveries.rows.values() for row in rows.values()}
    world.delete(image_id)
    assert world.sweep().outcomes == Counter(removed=1)
    assert shown(world) == ["we_4"]
    for number in range(4):
        (row,) = world.deliveries.rows[f"we_{number}"].values()
        was = before[row.delivery_id]
        assert (row.event_id, row.attempt, row.attempts[0].status) == (was.event_id, 1, 500)
        assert json.loads(row.body)["data"].keys() == {"id", "tenant_id", "lane", "preset", "run", "links"}


@pytest.mark.guards("erasure-leased-delivery-pending", "erasure-leased-delivery-untouched")
def test_a_delivery_that_is_just_being_made_is_blanked_when_its_worker_has_written_what_came_of_it() -> None:
    world = World()
    image_id = developed(world)
    row = noted(world, image_id, 0, status=DeliveryStatus.SENDING, lease_until=world.now + 50_000)
    noted(world, image_id, 1)
    world.delete(image_id)
    assert world.sweep().outcomes == Counter(being_delivered=1)
    assert shown(world) == ["we_0"]
    world.deliveries.change(row, replace(row, status=DeliveryStatus.DELIVERED, due_at=None))
    world.advance(60)
    assert world.sweep().outcomes == Counter(removed=1)
    assert shown(world) == []


@pytest.mark.guards("erasure-fenced-delivery-pending")
def test_a_delivery_that_somebody_writes_at_that_moment_is_blanked_by_the_next_sweep(world: World) -> None:
    image_id = developed(world)
    row = noted(world, image_id, 0)
    world.delete(image_id)
    world.deliveries.change(row, replace(row, due_at=world.now + 5))
    get, late = world.deliveries.get, [row]
    world.deliveries.get = lambda *key: late.pop() if late else get(*key)
    assert world.sweep().outcomes == Counter(being_delivered=1)
    assert world.sweep().outcomes == Counter(removed=1)
    assert shown(world) == []


@pytest.mark.guards("erasure-unreadable-delivery")
def test_a_delivery_of_a_later_version_keeps_no_other_from_being_blanked_and_is_reported(world: World) -> None:
    image_id = developed(world)
    for number in range(3):
        noted(world, image_id, number)
    world.delete(image_id)
    newer = UnreadableRow("delivery we_0", "invented later")
    world.deliveries = failing(world.deliveries, "get", newer, lambda endpoint_id, _: endpoint_id == "we_0")
    sweep = world.sweep()
    assert (sweep.outcomes, [error.row_id for error in sweep.unreadable]) == (
        Counter(unreadable=1),
        ["delivery we_0"],
    )
    assert shown(world) == ["we_0"]
    assert world.originals.objects == {}


@pytest.mark.parametrize(
    "dies_at",
    [
        "outputs.remove",
        "originals.remove",
        "uploads.remove",
        "memory.forget",
        "deliveries.of_image",
        "images.change",
    ],
)
def test_a_removal_that_ended_half_way_is_done_again_by_the_next_sweep(world: World, dies_at: str) -> None:
    image_id = developed(world)
    world.delete(image_id)
    store, method = getattr(world, dies_at.partition(".")[0]), dies_at.partition(".")[2]
    works = getattr(store, method)
    setattr(store, method, raising(KeyboardInterrupt))
    with suppress(KeyboardInterrupt):
        world.sweep()
    setattr(store, method, works)
    assert world.sweep().outcomes == Counter(removed=1)
    assert (world.originals.objects, world.outputs.objects) == ({}, {})


@pytest.mark.guards("removal-earlier-run-listed", "removal-last-look-lists-all")
def test_what_the_row_names_is_removed_without_a_look_and_an_earlier_run_is_listed(world: World) -> None:
    first, second = (world.submit(PHOTO).image.image_id for _ in range(2))
    for message in list(world.lanes.sent):
        world.deliver(message)
    world.images.rows[second] = replace(world.row(second), run=2)
    world.outputs.objects |= {f"outputs/{image_id}/0/x.jpeg": b"" for image_id in (first, second)}
    asked = calls_of(world.outputs, "keys_of")
    for image_id in (first, second):
        world.delete(image_id)
    assert world.sweep().outcomes == Counter(removed=2)
    assert (asked, list(world.outputs.objects)) == ([second], [f"outputs/{first}/0/x.jpeg"])
    assert world.row(first).leftovers is None
    world.advance(REMOVAL_GRACE_SECONDS)
    assert world.sweep().outcomes == Counter(removed=2)
    assert (world.outputs.objects, world.originals.objects) == ({}, {})


@pytest.mark.guards("sweeper-tombstone-last")
@pytest.mark.parametrize("store", ["outputs", "originals", "uploads"])
def test_what_could_not_be_removed_of_one_image_keeps_only_its_row(world: World, store: str) -> None:
    ids = [world.submit(PHOTO).image.image_id for _ in range(2)]
    for message in list(world.lanes.sent):
        world.deliver(message)
    for image_id in ids:
        world.delete(image_id)
    stubborn = next(iter(world.outputs.objects)) if store == "outputs" else ids[0]
    bucket = getattr(world, store)
    bucket.remove = lambda _: {stubborn: Retryable("SlowDown")}
    assert world.sweep().outcomes == Counter(unreachable=1, removed=1)
    assert (world.row(ids[0]).leftovers is None, world.row(ids[1]).leftovers is None) == (False, True)


@pytest.mark.guards("removal-store-isolated")
@pytest.mark.parametrize("store", ["outputs", "originals", "uploads"])
@ANY_FAILURE
def test_a_store_that_fails_as_a_whole_keeps_no_other_from_removing(store: str, failure: Exception) -> None:
    world = World()
    world.submit(PHOTO)
    world.deliver(world.lanes.sent[0])
    world.delete(next(iter(world.images.rows)))
    getattr(world, store).remove = raising(failure)
    assert sum(world.sweep().outcomes.values()) == 1
    left = {name for name in ("outputs", "originals") if getattr(world, name).objects}
    assert left == {store} - {"uploads"}
    assert next(iter(world.images.rows.values())).leftovers is not None


@pytest.mark.guards("sweeper-backlog-wait")
def test_an_image_that_a_backlog_explains_waits_its_turn_and_no_longer(world: World) -> None:
    world.submit(PHOTO)
    world.advance(1200)
    world.lanes.sent.clear()
    world.lanes.backlogs["slow"] = 6_000  # at 2 a second: 50 minutes, of which it has waited 20
    assert world.sweep().outcomes == Counter(waiting=1)
    world.advance(1799)
    assert world.sweep().outcomes == Counter()
    world.advance(1)
    assert world.sweep().outcomes == Counter(rescued=1)
    assert len(world.lanes.sent) == 1


@ANY_FAILURE
def test_a_queue_that_does_not_tell_its_depth_explains_nothing(world: World, failure: Exception) -> None:
    world.submit(PHOTO)
    world.advance(1200)
    world.lanes.backlog = raising(failure)
    assert world.sweep().outcomes == Counter(rescued=1)


def test_the_oldest_unfinished_image_of_each_lane_is_told_and_none_is_zero(world: World) -> None:
    first = world.submit(PHOTO).image.image_id
    world.advance(90)
    world.submit(PHOTO)
    all_idle = dict.fromkeys(LANES, 0.0)
    assert world.oldest() == all_idle | {"slow": 90.0}
    world.deliver(message_for(world.row(first)))
    assert world.oldest() == all_idle
    world.advance(5)
    assert world.oldest() == all_idle | {"slow": 5.0}


def test_every_lane_that_is_deployed_is_measured() -> None:
    world = World(service=LANES | {"bulk": SLOW})
    assert world.oldest() == dict.fromkeys([*LANES, "bulk"], 0.0)


@pytest.mark.guards("upload-looked-for-before-expiry")
def test_an_upload_that_arrived_without_a_notification_is_reported_and_not_expired(world: World) -> None:
    begun = world.begin(PHOTO)
    world.upload(begun, PHOTO)
    world.advance(900)
    assert world.sweep().outcomes == {"rescued": 1}
    assert [message.image_id for message in world.upload_queue.reminders] == [begun.image.image_id]
    assert world.row(begun.image.image_id).due_at == world.now + 60_000
    assert world.accept_upload(world.upload_queue.reminders[0].image_id).outcome == "accepted"


@pytest.mark.guards("upload-absence-seen-twice")
def test_an_upload_that_is_not_found_once_does_not_expire(world: World) -> None:
    image_id = world.begin(PHOTO).image.image_id
    world.uploads.objects[image_id] = PHOTO
    world.advance(900)
    damage_once(world.uploads, "size_bytes", lambda _: None)
    assert world.sweep().outcomes == {"rescued": 1}
    assert world.row(image_id).status is Status.AWAITING_UPLOAD


def test_an_upload_that_cannot_be_looked_for_now_is_looked_for_by_the_next_sweep(world: World) -> None:
    image_id = world.begin(PHOTO).image.image_id
    world.advance(900)
    size_bytes = world.uploads.size_bytes
    world.uploads.size_bytes = raising(Retryable("timeout"))
    assert world.sweep().outcomes == {"unreachable": 1}
    assert world.row(image_id).status is Status.AWAITING_UPLOAD
    world.uploads.size_bytes = size_bytes
    assert world.sweep().outcomes == {"expired": 1}


@ANY_FAILURE
def test_a_reminder_that_cannot_be_sent_is_due_at_once(world: World, failure: Exception) -> None:
    begun = world.begin(PHOTO)
    world.uploads.objects[begun.image.image_id] = PHOTO
    world.advance(900)
    world.upload_queue.put = raising(failure)
    assert world.sweep().outcomes == {"unsent": 1}
    assert world.row(begun.image.image_id).due_at == world.now


@pytest.mark.guards("upload-expiry-fence")
def test_a_client_that_asks_for_another_form_while_the_sweeper_looks_keeps_its_image(world: World) -> None:
    image_id = world.begin(PHOTO, idempotency_key="k").image.image_id
    world.advance(900)

    def look(_: str) -> None:
        world.begin(PHOTO, idempotency_key="k")

    world.uploads.size_bytes = look
    assert world.sweep().outcomes == {"fenced": 1}
    assert world.row(image_id).status is Status.AWAITING_UPLOAD


@pytest.mark.guards("upload-removed-with-tombstone")
def test_what_is_uploaded_for_a_withdrawn_image_goes_too_also_where_it_comes_late(world: World) -> None:
    begun = world.begin(PHOTO)
    world.upload(begun, PHOTO)
    world.delete(begun.image.image_id)
    assert world.sweep().outcomes == {"removed": 1}
    assert world.uploads.objects == {}
    world.uploads.upload(begun.form, PHOTO)
    world.advance(1800)
    assert world.sweep().outcomes == {"removed": 1}
    assert world.uploads.objects == {}
