"""The sweeper: what was accepted and got lost on the way is sent again."""

from collections import Counter
from contextlib import suppress
from dataclasses import replace
from typing import Any

from darkroom.domain.errors import Retryable
from darkroom.domain.image import Status
from darkroom.operations.sweep_due_images import sweep_due_images
from tests.fakes import World
from tests.pictures import jpeg

PHOTO = jpeg()


def test_an_image_that_was_never_enqueued_is_sent_once_it_is_due() -> None:
    world = World()
    image_id = world.submit(PHOTO).image.image_id
    world.lanes.sent.clear()
    assert world.sweep().outcomes == Counter()
    world.advance(1200)
    assert world.sweep().outcomes == Counter(rescued=1)
    assert [message.image_id for message in world.lanes.sent] == [image_id]
    world.deliver(world.lanes.sent[0])
    assert world.row(image_id).status is Status.DONE


def test_a_rescued_image_is_left_alone_until_it_is_due_again() -> None:
    world = World()
    world.submit(PHOTO)
    world.advance(1200)
    world.sweep()
    assert world.sweep().outcomes == Counter()
    world.advance(60)
    assert world.sweep().outcomes == Counter(rescued=1)


def test_a_finished_image_is_never_looked_at() -> None:
    world = World()
    world.submit(PHOTO)
    world.deliver(world.lanes.sent[0])
    world.advance(86_400)
    assert world.sweep().outcomes == Counter()


def test_an_image_whose_worker_died_is_sent_after_sqs_had_its_turn() -> None:
    world = World()
    image_id = world.submit(PHOTO).image.image_id
    message = world.lanes.sent[0]

    def dies(*_: Any) -> bytes:
        raise KeyboardInterrupt

    original_get, world.originals.get = world.originals.get, dies
    with suppress(KeyboardInterrupt):
        world.deliver(message)
    world.originals.get = original_get
    world.advance(360)
    assert world.sweep().outcomes == Counter(), "the visibility timeout has just passed: SQS goes first"
    world.advance(60)
    assert world.sweep().outcomes == Counter(rescued=1)
    world.deliver(world.lanes.sent[-1], receipt="receipt-2")
    assert (world.row(image_id).status, world.row(image_id).attempt) == (Status.DONE, 2)


def test_an_image_without_attempts_is_failed_and_not_sent() -> None:
    world = World()
    image_id = world.submit(PHOTO).image.image_id
    world.images.rows[image_id] = replace(world.row(image_id), attempt=5, due_at=world.now)
    world.lanes.sent.clear()
    assert world.sweep().outcomes == Counter(gave_up=1)
    assert world.row(image_id).status is Status.FAILED
    assert world.lanes.sent == []


def test_a_queue_that_does_not_answer_leaves_the_image_due() -> None:
    world = World()
    image_id = world.submit(PHOTO).image.image_id
    world.advance(1200)
    send = world.lanes.send

    def dead(message: object) -> None:
        raise Retryable("sending the message: timeout")

    world.lanes.send = dead
    assert world.sweep().outcomes == Counter(unsent=1)
    assert world.row(image_id).due_at == world.now
    world.lanes.send = send
    assert world.sweep().outcomes == Counter(rescued=1)


def test_of_two_sweeps_at_once_only_one_sends() -> None:
    world = World()
    image_id = world.submit(PHOTO).image.image_id
    world.lanes.sent.clear()
    world.advance(1200)
    stale = world.row(image_id)
    world.sweep()
    # The second sweep was told of the image by an index that lags, and read the row before the first pushed it out.
    world.images.due = lambda *_: iter([image_id])
    world.images.get = lambda _: stale
    assert world.sweep().outcomes == Counter(fenced=16), "every shard listed it, and the row refused each"
    assert len(world.lanes.sent) == 1


def test_a_bug_over_one_image_does_not_keep_the_sweeper_from_the_others() -> None:
    world = World()
    cursed = world.submit(PHOTO).image.image_id
    others = {world.submit(PHOTO).image.image_id for _ in range(20)}
    world.lanes.sent.clear()
    world.advance(1200)
    get = world.images.get

    def trips(image_id: str) -> Any:
        if image_id == cursed:
            raise ZeroDivisionError
        return get(image_id)

    world.images.get = trips
    sweep = world.sweep()
    assert sweep.outcomes == Counter(rescued=20, error=1)
    assert list(sweep.errors) == [cursed]
    assert {message.image_id for message in world.lanes.sent} == others


def test_a_sweep_that_runs_out_of_time_stops_in_order_and_the_next_goes_on() -> None:
    world = World()
    for _ in range(10):
        world.submit(PHOTO)
    world.lanes.sent.clear()
    world.advance(1200)
    left = iter([False] * 4 + [True] * 100)
    sweep = sweep_due_images(images=world.images, lanes=world.lanes, clock=world.clock, out_of_time=lambda: next(left))
    assert not sweep.complete
    assert len(world.lanes.sent) == 4
    assert world.sweep().outcomes == Counter(rescued=6)
    assert len({message.image_id for message in world.lanes.sent}) == 10
