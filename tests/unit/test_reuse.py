"""Uploads with `on_duplicate=reuse`: which image is the answer, and when there is another one."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from darkroom.domain.images.image import Image, Status
from darkroom.domain.kernel.errors import Rejected
from darkroom.domain.kernel.ids import GENERATIONS, image_ids_for_photo
from darkroom.domain.kernel.tenants import Quota
from tests.support.fakes import World
from tests.support.fakes.pictures import jpeg
from tests.support.faults import meanwhile

PHOTO, OTHER = jpeg(320, 240), jpeg(240, 320)


def reused(world: World, body: bytes = PHOTO, **upload: Any) -> tuple[str, bool]:
    """The id that such an upload gets, and whether it was there."""
    accepted = world.submit(body, on_duplicate="reuse", **upload)
    return accepted.image.image_id, accepted.replayed


def announced(world: World, **upload: Any) -> tuple[str, bool]:
    begun = world.begin(PHOTO, on_duplicate="reuse", **upload)
    return begun.image.image_id, begun.replayed


def become(world: World, image_id: str, **changes: Any) -> None:
    world.images.rows[image_id] = replace(world.row(image_id), **changes)


@pytest.mark.guards("reuse-own-tenant", "reuse-same-bytes")
@pytest.mark.parametrize("ask", [reused, announced])
@pytest.mark.parametrize(
    ("again", "is_same"),
    [
        ({}, True),
        ({"preset": "standard"}, True),
        ({"notify": "we_00000000000000000000000000"}, True),
        ({"tenant_id": "globex"}, False),
        ({"preset": "avatar"}, False),
    ],
)
def test_the_same_bytes_and_recipe_of_a_tenant_are_one_image(
    world: World, ask: Callable[..., tuple[str, bool]], again: dict[str, Any], is_same: bool
) -> None:
    first, _ = ask(world)
    second, was_there = ask(world, **again)
    assert (second == first, was_there) == (is_same, is_same)
    assert len(world.images.rows) == (1 if is_same else 2)
    assert reused(world, OTHER)[0] not in (first, second)


@pytest.mark.guards("reuse-made-again-is-another")
def test_an_image_that_a_later_version_of_its_preset_has_made_again_is_no_answer_for_the_earlier_one(
    world: World,
) -> None:
    first, _ = reused(world)
    recipe = world.row(first).recipe
    assert recipe is not None
    become(world, first, recipe=recipe.model_copy(update={"variants": recipe.variants[:1]}), preset_version=2)
    second, was_there = reused(world)
    assert (second != first, was_there) == (True, False)
    assert reused(world) == (second, True)


@pytest.mark.guards("reuse-same-recipe")
def test_each_recipe_of_a_photo_has_its_own_ids_however_many_there_are(world: World) -> None:
    recipes = [json.dumps({"variants": [{"name": "small", "width": width}]}) for width in range(100, 102 + GENERATIONS)]
    firsts = [reused(world, recipe=recipe)[0] for recipe in recipes]
    assert [reused(world, recipe=recipe) for recipe in recipes] == [(first, True) for first in firsts]


def test_an_upload_without_the_parameter_is_neither_found_nor_answered_with_what_is_there(world: World) -> None:
    plain = world.submit(PHOTO).image.image_id
    first, was_there = reused(world)
    assert (first != plain, was_there) == (True, False)
    assert world.submit(PHOTO).image.image_id not in (plain, first)


@pytest.mark.guards("reuse-deleted-not-there", "reuse-ended-not-there", "reuse-expired-not-there")
@pytest.mark.parametrize(
    ("state", "is_there"),
    [
        ({"status": Status.DONE}, True),
        ({"status": Status.PROCESSING, "expires_at": 1}, True),
        ({"status": Status.SCHEDULED}, True),
        ({"status": Status.SCHEDULED, "expires_at": 1}, False),
        ({"status": Status.FAILED}, False),
        ({"status": Status.EXPIRED}, False),
        ({"status": Status.DONE, "deleted_at": 1}, False),
    ],
)
def test_an_image_is_there_while_it_is_done_or_may_become_so(
    world: World, state: dict[str, Any], is_there: bool
) -> None:
    first, _ = reused(world)
    become(world, first, **state)
    second, was_there = reused(world)
    assert (second == first, was_there) == (is_there, is_there)
    assert reused(world) == (second, True)


def test_what_was_deleted_begins_anew_as_often_as_there_are_ids_and_then_each_time(world: World) -> None:
    ids = []
    for _ in range(GENERATIONS + 2):
        image_id, was_there = reused(world)
        assert not was_there
        ids.append(image_id)
        world.delete(image_id)
    assert len({*ids}) == GENERATIONS + 2
    del world.images.rows[ids[3]]  # its tombstone is forgotten
    assert reused(world) == (ids[3], False)


def test_a_row_that_this_version_cannot_read_is_passed_over(world: World) -> None:
    first, _ = reused(world)
    world.images.unreadable[first] = world.images.rows.pop(first)
    second, was_there = reused(world)
    assert (second != first, was_there) == (True, False)


def test_what_is_there_is_the_answer_though_there_is_no_room_for_more(world: World) -> None:
    first, _ = reused(world)
    assert reused(world, quota=Quota(stored_bytes=1)) == (first, True)
    with pytest.raises(Rejected, match="does not fit"):
        reused(world, OTHER, quota=Quota(stored_bytes=1))
    assert [*world.images.rows] == [first]


def test_the_first_order_decides_when_and_whom_to_notify(world: World) -> None:
    begun = world.begin(PHOTO, on_duplicate="reuse", delay="P1D", expires_at="2027-01-01T00:00:00Z")
    second = world.begin(PHOTO, on_duplicate="reuse", process_at="2026-01-01T00:00:00Z")  # not even looked at
    assert (second.image.process_at, second.image.expires_at) == (begun.image.process_at, begun.image.expires_at)


@pytest.mark.guards("reuse-no-key")
@pytest.mark.parametrize("ask", [reused, announced])
def test_it_is_not_combined_with_a_key(world: World, ask: Callable[..., tuple[str, bool]]) -> None:
    with pytest.raises(Rejected) as refusal:
        ask(world, idempotency_key="order-17")
    assert (refusal.value.code, world.images.rows) == ("conflicting_parameters", {})


def test_anything_else_on_a_duplicate_is_unknown(world: World) -> None:
    with pytest.raises(Rejected) as refusal:
        world.submit(PHOTO, on_duplicate="replace")
    assert refusal.value.code == "unknown_on_duplicate"


# ── Several at once ──────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.guards("reuse-lost-race-asks-again")
@pytest.mark.parametrize("is_deleted", [False, True])
def test_of_two_at_once_one_makes_the_image_and_if_that_is_deleted_the_other_the_next(
    world: World, is_deleted: bool
) -> None:
    winner: list[str] = []

    def win(*_: Any, **__: Any) -> None:
        winner.append(reused(world)[0])
        if is_deleted:
            world.delete(winner[0])

    meanwhile(world.images, "create", win, times=1)
    loser, was_there = reused(world)
    assert (loser != winner[0], was_there) == (is_deleted, not is_deleted)
    assert [row.image_id for row in world.images.rows.values() if not row.is_deleted] == [loser]
    assert [message.image_id for message in world.lanes.sent].count(loser) >= 1


def test_an_announced_photo_that_is_sent_in_a_request_is_the_announced_image(world: World) -> None:
    begun = world.begin(PHOTO, on_duplicate="reuse")
    image_id = begun.image.image_id
    assert announced(world) == (image_id, True)
    assert reused(world) == (image_id, True)
    assert (world.row(image_id).status, world.row(image_id).has_original) == (Status.PENDING, True)
    assert world.begin(PHOTO, on_duplicate="reuse").form is None
    world.upload(begun, PHOTO)
    assert world.accept_upload(image_id).outcome == "late"
    assert (world.uploads.objects, len(world.originals.objects)) == ({}, 1)


@pytest.mark.guards("reuse-brings-fenced")
@pytest.mark.parametrize("is_deleted", [False, True])
def test_an_announced_photo_may_come_or_be_deleted_while_it_is_sent_in_a_request(
    world: World, is_deleted: bool
) -> None:
    begun = world.begin(PHOTO, on_duplicate="reuse")
    first = begun.image.image_id

    def act(*_: Any, **__: Any) -> None:
        if is_deleted:
            world.delete(first)
        else:
            world.upload(begun, PHOTO)
            world.accept_upload(first)

    meanwhile(world.originals, "put_if_absent", act, times=1)
    second, was_there = reused(world)
    assert (second != first, was_there) == (is_deleted, not is_deleted)
    assert world.row(second).status is Status.PENDING


@pytest.mark.guards("reuse-awaited-asks-again")
def test_an_announced_image_that_is_deleted_while_it_is_announced_again_is_not_the_answer(world: World) -> None:
    first, _ = announced(world)
    meanwhile(world.images, "change", lambda *_, **__: world.images.rows.update(gone(world, first)), times=1)
    second, was_there = announced(world)
    assert (second != first, was_there) == (True, False)


def gone(world: World, image_id: str) -> dict[str, Image]:
    return {image_id: replace(world.row(image_id), status=Status.CANCELLED, deleted_at=world.now)}


def test_the_ids_of_a_photo_do_not_move() -> None:
    ids = image_ids_for_photo("default", "0" * 64, "1" * 64)
    assert (len({*ids}), ids[0]) == (GENERATIONS, "2wk4qjjbf9z7wsbvd43qcy5261"), "ids in clients' hands must not move"
