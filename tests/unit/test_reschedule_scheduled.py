"""Rescheduling many scheduled images: each once, and none without a message for its new time."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from darkroom.domain.images.image import Status
from darkroom.domain.kernel.errors import Rejected
from darkroom_cli.operator.operations.schedules.list_scheduled import ScheduledSelection
from darkroom_cli.operator.operations.schedules.reschedule_scheduled import (
    LOOK_SECONDS,
    RescheduleScheduledPorts,
    reschedule_scheduled,
)
from tests.failures import ANY_FAILURE
from tests.support.fakes import World
from tests.support.fakes.pictures import jpeg
from tests.support.faults import raising
from tests.support.schedules import scheduled, soon

PHOTO = jpeg(32, 24)
HOUR = 3_600_000
DAY = 24 * HOUR


def rescheduled(world: World, image_id: str, selection: ScheduledSelection | None = None, by: int = 5 * DAY) -> bool:
    return reschedule_scheduled(
        world.ports(RescheduleScheduledPorts),
        image_id,
        selection or soon(world),
        lambda at: at + by,
    )


@pytest.mark.guards("day-move-selection-rechecked")
def test_an_image_is_moved_once_however_often_it_is_asked_for(world: World) -> None:
    image_id = scheduled(world)
    before, selection = world.row(image_id), soon(world)
    assert [rescheduled(world, image_id, selection) for _ in range(3)] == [True, False, False]
    row = world.row(image_id)
    assert (row.process_at, row.schedule) == (world.now + 7 * DAY, 1)
    assert (row.due_at or 0) - (before.due_at or 0) == 5 * DAY, "it is looked at when any other would be"
    assert [(held.schedule, held.process_at) for held in world.hold_queue.held] == [
        (0, world.now + 2 * DAY),
        (1, world.now + 7 * DAY),
    ]


def test_what_its_client_has_moved_is_left_alone(world: World) -> None:
    image_id = scheduled(world, delay="P4D")
    assert not rescheduled(world, image_id)


@pytest.mark.parametrize("status", [status for status in Status if status is not Status.SCHEDULED])
def test_what_is_not_scheduled_any_more_is_left_alone(world: World, status: Status) -> None:
    image_id = scheduled(world)
    world.images.rows[image_id] = before = replace(world.row(image_id), status=status)
    assert not rescheduled(world, image_id)
    assert world.row(image_id) == before


def test_another_lane_another_tenant_and_no_image_at_all_are_left_alone(world: World) -> None:
    image_id = scheduled(world)
    assert not rescheduled(world, image_id, replace(soon(world), lanes=("fast",)))
    assert not rescheduled(world, image_id, replace(soon(world), tenant_id="another"))
    assert not rescheduled(world, "0" * 26)
    assert rescheduled(world, image_id, replace(soon(world), tenant_id="default"))


def test_what_is_due_and_not_begun_is_moved_and_its_message_is_void(world: World) -> None:
    image_id = scheduled(world, delay="PT1M")
    selection, message = soon(world), world.lanes.sent[0]
    world.advance(120)
    assert rescheduled(world, image_id, selection)
    assert world.deliver(message).reason == "stale"  # type: ignore[union-attr]


@pytest.mark.guards("day-move-version-fence")
def test_a_worker_that_comes_between_wins(world: World) -> None:
    image_id = scheduled(world, delay="PT1M")
    selection, get = soon(world), world.images.get
    world.advance(60)

    def begun_in_between(wanted: str) -> Any:
        row = get(wanted)
        world.images.get = get
        world.deliver(world.lanes.sent[0])
        return row

    world.images.get = begun_in_between
    assert not rescheduled(world, image_id, selection)
    assert world.row(image_id).status is Status.DONE


@pytest.mark.guards("day-dead-mover-due-soon")
def test_a_mover_that_dies_before_it_has_sent_the_message_leaves_it_to_the_sweeper(world: World) -> None:
    image_id = scheduled(world)
    put, world.hold_queue.put = world.hold_queue.put, raising(KeyboardInterrupt)
    with pytest.raises(KeyboardInterrupt):
        rescheduled(world, image_id)
    world.hold_queue.put = put
    assert world.row(image_id).due_at == world.now + LOOK_SECONDS * 1000
    world.advance(LOOK_SECONDS)
    assert world.sweep().outcomes == {"rescued": 1}
    assert (world.hold_queue.held[-1].schedule, world.hold_queue.held[-1].process_at) == (
        1,
        world.row(image_id).process_at,
    )
    assert world.sweep().outcomes == {}


@ANY_FAILURE
def test_a_message_that_cannot_be_sent_is_the_sweepers_at_once(world: World, failure: Exception) -> None:
    image_id = scheduled(world)
    world.hold_queue.put = raising(failure)
    assert rescheduled(world, image_id)
    assert world.row(image_id).due_at == world.now


@pytest.mark.guards("day-move-into-period-refused")
@pytest.mark.parametrize(
    ("times", "by", "code"),
    [
        ({"delay": "P2D", "expires_at": "2026-11-24T00:00:00Z"}, 5 * DAY, "invalid_expires_at"),
        ({"delay": "P2D"}, 363 * DAY, "invalid_process_at"),
        ({"delay": "P2D"}, -5 * DAY, "invalid_process_at"),
        ({"delay": "P2D"}, HOUR, "invalid_schedule"),
    ],
)
def test_a_time_that_cannot_be_is_refused_and_the_image_stays(times: dict[str, str], by: int, code: str) -> None:
    world = World()
    image_id = scheduled(world, **times)
    before = world.row(image_id)
    with pytest.raises(Rejected) as refusal:
        rescheduled(world, image_id, by=by)
    assert refusal.value.code == code
    assert world.row(image_id) == before
    assert len(world.hold_queue.held) == 1
