"""Which images are late."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from typing import Any

import pytest

from darkroom.domain.images.image import Status
from darkroom.domain.kernel.lanes import LANES
from darkroom_cli.operator.operations.images.list_late_images import ListLateImagesPorts, list_late_images
from tests.support.fakes import World
from tests.support.fakes.rows import accepted_image
from tests.support.faults import calls_of


def put(world: World, number: int, *, seconds_ago: float, lane: str = "fast", **changes: Any) -> str:
    row = accepted_image(now=world.now - round(seconds_ago * 1000), image_id=f"{number:026d}", lane=lane)
    world.images.rows[row.image_id] = replace(row, **changes)
    return row.image_id


def late(world: World) -> list[str]:
    return [image.image_id for image in list_late_images(world.ports(ListLateImagesPorts))]


def test_images_are_late_after_their_lanes_service_level_the_longest_waiting_first(world: World) -> None:
    fast, slow = LANES["fast"].sla_seconds, LANES["slow"].sla_seconds
    put(world, 1, seconds_ago=fast)
    second = put(world, 2, seconds_ago=fast + 0.001)
    put(world, 3, seconds_ago=slow, lane="slow")
    first = put(world, 4, seconds_ago=slow + 1, lane="slow")
    assert late(world) == [first, second]


@pytest.mark.guards("ls-late-current-waits-only")
def test_what_has_ended_or_waits_anew_is_not_late_though_the_index_still_lists_it(
    world: World,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ids = [put(world, number, seconds_ago=99) for number in range(3)]
    rows = dict(world.images.rows)
    rows[ids[0]] = replace(rows[ids[0]], status=Status.DONE)
    rows[ids[1]] = replace(rows[ids[1]], waiting_since=world.now)
    monkeypatch.setattr(world.images, "get_all", lambda wanted: {image_id: rows[image_id] for image_id in wanted})
    assert late(world) == [ids[2]]


def test_an_unreadable_row_hides_no_other(world: World) -> None:
    readable, unreadable = put(world, 1, seconds_ago=99), put(world, 2, seconds_ago=100)
    world.images.unreadable[unreadable] = world.images.rows.pop(unreadable)
    assert late(world) == [readable]


def test_no_more_rows_are_read_than_are_asked_for(world: World) -> None:
    for number in range(250):
        put(world, number, seconds_ago=1000 - number)
    asked = calls_of(world.images, "get_all")
    assert len(list(islice(list_late_images(world.ports(ListLateImagesPorts)), 120))) == 120
    assert list(map(len, asked)) == [100, 100]
