"""While a lane or a tenant is paused nothing of it is begun, nothing of it is late, and all goes on after that."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from darkroom.domain.images.image import Image, Status, message_for
from darkroom.domain.images.load_shedding import Work
from darkroom.domain.images.service_level import Outcomes, end_of
from darkroom.domain.images.transitions import PARKED_SECONDS
from darkroom.domain.kernel.errors import TurnedAway
from darkroom.domain.kernel.lanes import LANES
from darkroom.domain.kernel.tenants import Tier
from darkroom.domain.pauses.pauses import Pause, Paused
from darkroom.operations.images.transcode_image import Finished
from tests.support.fakes import World
from tests.support.fakes.pictures import jpeg
from tests.support.faults import meanwhile

SUBJECTS: tuple[tuple[Paused, str], ...] = (("lane", "slow"), ("tenant", "acme"))
SUBJECT = pytest.mark.parametrize(("kind", "name"), SUBJECTS)


def submitted(world: World, **more: Any) -> Any:
    world.submit(jpeg(), tenant_id="acme", **more)
    return world.lanes.sent[-1]


def pause(world: World, kind: Paused, name: str) -> None:
    world.pauses.pause(Pause(kind=kind, name=name, since=world.now))


def parked(image: Image, now: int) -> bool:
    return (image.status, image.attempt, image.parked, image.waiting_since) == (Status.PENDING, 0, True, None) and (
        image.due_at == now + PARKED_SECONDS * 1000
    )


@pytest.mark.guards("pause-nothing-begun", case="lane-slow")
@SUBJECT
def test_the_worker_parks_what_is_paused_and_the_sweeper_sends_it_after_that(
    world: World, kind: Paused, name: str
) -> None:
    message = submitted(world)
    pause(world, kind, name)
    for _ in range(2):  # a copy of the message changes nothing
        outcome = world.deliver(message)
        assert isinstance(outcome, Finished) and (outcome.reason, outcome.waiting_since) == ("paused", None)
        assert parked(world.row(message.image_id), world.now)
    assert world.row(message.image_id).version == 2
    world.advance(PARKED_SECONDS)
    assert world.sweep().outcomes == Counter(paused=1)
    world.pauses.resume(kind, name, world.now)
    world.advance(PARKED_SECONDS)
    assert world.sweep().outcomes == Counter(rescued=1)
    sent = world.lanes.sent[-1]
    assert world.row(message.image_id).waiting_since == world.now
    world.deliver(sent)
    done = world.row(message.image_id)
    assert (done.status, done.attempt, done.parked) == (Status.DONE, 1, False)


def test_a_message_that_comes_after_the_pause_begins_its_image_without_waiting_for_the_sweeper(world: World) -> None:
    message = submitted(world)
    pause(world, "lane", "slow")
    world.deliver(message)
    world.advance(60)
    world.pauses.resume("lane", "slow", world.now)
    outcome = world.deliver(message)
    assert isinstance(outcome, Finished) and (outcome.reason, outcome.waiting_since) == ("done", world.now)
    assert not world.row(message.image_id).parked


def test_others_go_on_and_a_busy_worker_finishes(world: World) -> None:
    busy = submitted(world)
    pause(world, "tenant", "zeta")
    pause(world, "lane", "fast")

    def paused_meanwhile(*_: Any, **__: Any) -> None:
        pause(world, "lane", "slow")

    meanwhile(world.originals, "get", paused_meanwhile)
    world.deliver(busy)
    assert world.row(busy.image_id).status is Status.DONE


def test_what_expires_while_it_is_paused_expires(world: World) -> None:
    message = submitted(world)
    row = world.row(message.image_id)
    world.images.change(row, replace(row, expires_at=world.now + 5000))
    pause(world, "lane", "slow")
    world.deliver(message)
    assert world.row(message.image_id).due_at == world.now + 5000
    world.advance(5)
    assert world.sweep().outcomes == Counter(expired=1)


@pytest.mark.guards("pause-parked-never-late", case="tenant-acme")
@SUBJECT
def test_after_two_days_of_a_pause_all_is_done_and_nothing_was_late(world: World, kind: Paused, name: str) -> None:
    slow = LANES["slow"]
    pause(world, kind, name)
    messages = [submitted(world, idempotency_key=str(number)) for number in range(30)]
    taken, kept, lost = messages[::3], messages[1::3], messages[2::3]
    for message in taken:  # a deployment has had the lane served again
        world.deliver(message)
    for _ in range(2 * 24 * 6):
        world.advance(600)
        sweep = world.sweep()
        assert (set(sweep.outcomes) <= {"paused"}, sweep.ended) == (True, {})
        assert world.oldest()["slow"] <= slow.stuck_seconds
    world.pauses.resume(kind, name, world.now)
    outcomes = [world.deliver(message) for message in kept]
    sent = len(world.lanes.sent)
    world.advance(PARKED_SECONDS)
    world.sweep()
    outcomes += [world.deliver(message) for message in world.lanes.sent[sent:]]
    assert len(outcomes) == len(taken) + len(kept) + len(lost)
    for outcome in outcomes:
        assert isinstance(outcome, Finished) and outcome.image is not None and outcome.waiting_since is not None
        since = world.pauses().counted_since(outcome.waiting_since, "slow", "acme")
        assert (outcome.image.status, end_of(outcome.image, waiting_since=since, lane=slow).late) == (Status.DONE, 0)


@pytest.mark.guards("pause-lane-never-late", "pause-resumed-lane-not-late")
def test_a_paused_lane_is_not_late_nor_is_it_right_after_that(world: World) -> None:
    submitted(world)
    world.advance(1000)
    assert world.oldest()["slow"] == 1000
    pause(world, "lane", "slow")
    world.advance(50)
    measures = world.measure()
    assert (measures.oldest_seconds["slow"], measures.paused_seconds) == (0, 50)
    world.pauses.resume("lane", "slow", world.now)
    world.advance(7)
    measures = world.measure()
    assert (measures.oldest_seconds["slow"], measures.paused_seconds) == (7, 0)


@pytest.mark.guards("pause-sweeper-counts-from-resume")
def test_an_image_that_is_given_up_after_a_pause_counts_from_its_end(world: World) -> None:
    for resumes, late in ((False, 1), (True, 0)):
        message = submitted(world, idempotency_key=str(resumes))
        row = world.row(message.image_id)
        world.images.change(row, replace(row, expires_at=world.now + 2_000_000, due_at=world.now + 2_000_000))
        world.advance(1999)
        if resumes:
            pause(world, "tenant", "acme")
            world.pauses.resume("tenant", "acme", world.now)
        world.advance(1)
        ended = world.sweep().ended["slow"]
        assert ended == (Outcomes(ended=1, late=1) if late else Outcomes())


@pytest.mark.guards("pause-backlog-turns-nobody-away")
def test_the_backlog_of_a_paused_lane_turns_nobody_away(world: World) -> None:
    world.throughput.add("slow", Work(settled=60, busy_milliseconds=60_000), world.now)
    world.depths.depths["slow"] = 100_000
    with pytest.raises(TurnedAway):
        world.load_shedder.require_capacity("slow", Tier.FREE)
    pause(world, "lane", "slow")
    world.load_shedder.require_capacity("slow", Tier.FREE)


@SUBJECT
def test_an_unfinished_image_is_shown_as_paused_and_not_estimated(world: World, kind: Paused, name: str) -> None:
    message = submitted(world)
    pause(world, kind, name)
    assert world.estimator.outlook(world.row(message.image_id)) == "paused"
    world.pauses.resume(kind, name, world.now)
    assert world.estimator.outlook(world.row(message.image_id)) is None
    world.deliver(message_for(world.row(message.image_id)))
    pause(world, kind, name)
    assert world.estimator.outlook(world.row(message.image_id)) is None, "it is done"
