"""Rescheduling a scheduled image: first the row, under its version, and then a message for the new time."""

from typing import Any

import pytest

from darkroom.domain.images.image import Status
from darkroom.domain.kernel.errors import Rejected, TurnedAway, UnknownImage
from darkroom.domain.kernel.tenants import Tier
from darkroom.http.kernel.timetables import read_timetable
from darkroom.operations.schedules.reschedule_image import RescheduleImagePorts, reschedule_image
from darkroom.ports.kernel import Fenced
from tests.failures import ANY_FAILURE
from tests.support.fakes import World
from tests.support.fakes.pictures import jpeg
from tests.support.faults import meanwhile, raising

PHOTO = jpeg(32, 24)
HOUR = 3_600_000


def scheduled(world: World, **times: str) -> str:
    return world.submit(PHOTO, timetable=read_timetable(**(times or {"delay": "P2D"}))).image.image_id


def rescheduled(world: World, image_id: str, tenant_id: str = "default", **times: str) -> Any:
    return reschedule_image(
        world.ports(RescheduleImagePorts),
        image_id,
        read_timetable(**times),
        tenant_id=tenant_id,
        tier=Tier.FREE,
    )


@pytest.fixture
def image_id(world: World) -> str:
    return scheduled(world)


def test_a_moved_image_waits_for_its_new_time_alone(world: World, image_id: str) -> None:
    image = rescheduled(world, image_id, delay="P3D")
    later = world.now + 72 * HOUR
    assert (image.status, image.schedule, image.process_at, image.waiting_since) == (
        Status.SCHEDULED,
        1,
        later,
        later,
    )
    assert [(held.schedule, held.process_at) for held in world.hold_queue.held] == [(0, later - 24 * HOUR), (1, later)]


@pytest.mark.guards("delay-move-outdates-messages")
def test_there_and_back_is_a_third_schedule(world: World, image_id: str) -> None:
    first = world.row(image_id)
    rescheduled(world, image_id, delay="PT5M")
    back = rescheduled(world, image_id, delay="P2D")
    assert (back.process_at, back.schedule) == (first.process_at, 2)
    world.advance(2 * 24 * 3600)
    for message in world.hold_queue.held[:1] + world.lanes.sent:
        assert world.deliver(message.model_copy(update={"process_at": None})).reason == "stale"  # type: ignore[union-attr]
    last = world.hold_queue.held[-1].model_copy(update={"process_at": None})
    assert world.deliver(last).reason == "done"  # type: ignore[union-attr]


def test_moved_to_now_it_is_pending_and_its_message_goes_to_its_lane(world: World, image_id: str) -> None:
    image = rescheduled(world, image_id, delay="PT0S")
    assert (image.status, image.process_at, image.schedule) == (Status.PENDING, world.now, 1)
    assert world.lanes.delays == [0]
    assert world.deliver(world.lanes.sent[0]).reason == "done"  # type: ignore[union-attr]


@ANY_FAILURE
def test_a_message_that_cannot_be_sent_is_the_sweepers(world: World, image_id: str, failure: Exception) -> None:
    put, world.hold_queue.put = world.hold_queue.put, raising(failure)
    assert rescheduled(world, image_id, delay="P3D").process_at == world.now + 72 * HOUR
    assert world.row(image_id).due_at == world.now
    world.hold_queue.put = put
    assert world.sweep().outcomes == {"rescued": 1}
    assert world.hold_queue.held[-1].process_at == world.now + 72 * HOUR
    assert world.row(image_id).due_at == world.now + 72 * HOUR + 1_200_000


@pytest.mark.guards("tenants-read-own-only")
def test_an_image_that_is_not_there_or_anothers_or_deleted_cannot_be_moved(world: World, image_id: str) -> None:
    for unknown, tenant_id in (("nothing", "default"), ("0" * 26, "default"), (image_id, "another")):
        with pytest.raises(UnknownImage):
            rescheduled(world, unknown, tenant_id, delay="P3D")
    world.delete(image_id)
    with pytest.raises(UnknownImage):
        rescheduled(world, image_id, delay="P3D")


def test_an_expiry_stays_unless_it_is_named_and_must_lie_after_the_new_time(world: World) -> None:
    expires_at = "2026-12-01T09:00:00Z"
    image_id = scheduled(world, delay="P2D", expires_at=expires_at)
    kept = world.row(image_id).expires_at
    assert rescheduled(world, image_id, delay="P3D").expires_at == kept
    with pytest.raises(Rejected) as refusal:
        rescheduled(world, image_id, delay="P30D")
    assert refusal.value.code == "invalid_expires_at"
    assert rescheduled(world, image_id, delay="P30D", expires_at="2027-06-01T00:00:00Z").expires_at != kept


def test_a_claim_that_read_the_row_before_the_move_loses(world: World) -> None:
    image_id = scheduled(world, delay="PT1M")
    message = world.lanes.sent[0]
    world.advance(60)

    def moved_in_between(*_: Any) -> Any:
        row = world.row(image_id)
        rescheduled(world, image_id, delay="PT1H")
        raise Fenced(row)

    world.images.claim_unseen = moved_in_between
    assert world.deliver(message).reason == "fenced"  # type: ignore[union-attr]
    assert world.row(image_id).status is Status.SCHEDULED


@pytest.mark.guards("delay-move-version-fence")
def test_a_claim_that_came_between_wins_over_the_move(world: World) -> None:
    image_id = scheduled(world, delay="PT1M")
    world.advance(60)
    meanwhile(world.images, "change", lambda *_, **__: world.deliver(world.lanes.sent[0]), times=1)
    with pytest.raises(Rejected, match="This one is done"):
        rescheduled(world, image_id, delay="PT1H")


@pytest.mark.guards("load-shedding-reschedule")
def test_a_move_into_a_full_lane_is_turned_away_and_leaves_the_image_as_it_was(world: World) -> None:
    image_id = scheduled(world, delay="PT2H")
    before = world.row(image_id)
    world.depths.depths["slow"] = 1200  # ten minutes, at the rate that the lane is sure to keep
    world.advance(60)
    with pytest.raises(TurnedAway):
        rescheduled(world, image_id, delay="PT0S")
    assert world.row(image_id) == before
    assert rescheduled(world, image_id, delay="PT1H").status is Status.SCHEDULED
