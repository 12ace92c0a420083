"""Withdrawing many scheduled images: none that has begun, and their objects one after another."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from darkroom.domain.images.image import Status
from darkroom_cli.operator.operations.schedules.cancel_scheduled import CancelScheduledPorts, cancel_scheduled
from darkroom_cli.operator.operations.schedules.list_scheduled import ScheduledSelection
from tests.support.fakes import World
from tests.support.schedules import scheduled, soon


def cancelled(world: World, image_id: str, selection: ScheduledSelection | None = None, remove_at: int = 0) -> bool:
    return cancel_scheduled(world.ports(CancelScheduledPorts), image_id, selection or soon(world), remove_at=remove_at)


@pytest.mark.guards("day-originals-removed-in-turn")
def test_an_image_is_withdrawn_once_and_its_original_goes_when_it_is_its_turn(world: World) -> None:
    image_id, remove_at = scheduled(world), world.now + 600_000
    assert [cancelled(world, image_id, remove_at=remove_at) for _ in range(2)] == [True, False]
    row = world.row(image_id)
    assert (row.status, row.is_deleted, row.due_at) == (Status.CANCELLED, True, remove_at)
    world.advance(599)
    assert world.sweep().outcomes == {}
    world.advance(1)
    assert world.sweep().outcomes == {"removed": 1}
    assert world.originals.objects == {}


def test_a_turn_that_has_passed_is_now(world: World) -> None:
    image_id = scheduled(world)
    assert cancelled(world, image_id, remove_at=world.now - 1)
    assert world.row(image_id).due_at == world.now


@pytest.mark.guards("day-cancel-selection-rechecked")
@pytest.mark.parametrize("status", [status for status in Status if status is not Status.SCHEDULED])
def test_what_is_not_scheduled_any_more_is_left_alone(world: World, status: Status) -> None:
    image_id = scheduled(world)
    world.images.rows[image_id] = before = replace(world.row(image_id), status=status)
    assert not cancelled(world, image_id)
    assert world.row(image_id) == before


def test_another_day_another_lane_and_no_image_at_all_are_left_alone(world: World) -> None:
    image_id = scheduled(world, delay="P4D")
    assert not cancelled(world, image_id)
    assert not cancelled(world, scheduled(world), replace(soon(world), lanes=("fast",)))
    assert not cancelled(world, "0" * 26)


@pytest.mark.guards("day-cancel-version-fence")
def test_what_a_worker_finishes_in_between_stays(world: World) -> None:
    image_id = scheduled(world, delay="PT1M")
    selection, get = soon(world), world.images.get
    world.advance(60)

    def done_in_between(wanted: str) -> Any:
        row = get(wanted)
        world.images.get = get
        world.deliver(world.lanes.sent[0])
        return row

    world.images.get = done_in_between
    assert not cancelled(world, image_id, selection)
    assert world.row(image_id).status is Status.DONE and not world.row(image_id).is_deleted
