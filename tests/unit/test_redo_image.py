"""Redoing: a done image's next run, what is shown and fetched meanwhile, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from darkroom.domain.images.image import Image, Status, Variant
from darkroom.domain.images.transitions import delete
from darkroom.domain.kernel.errors import Retryable
from darkroom.domain.schedules.schedule import Timetable
from darkroom.http.images.documents import status_document
from darkroom.operations.images.read_image import ReadImagePorts, VariantMissing, VariantNotReady, variant_url
from darkroom_cli.operator.operations.images.redo_image import NotRedoable, RedoImagePorts, redo_image
from tests.support.dead_letters import DONE, REFUSED, given_up
from tests.support.fakes import World
from tests.support.faults import ProcessDied, meanwhile, raising
from tests.support.images import NOW, developed, pending, processing


def redo(world: World, image_id: str) -> Image:
    return redo_image(world.ports(RedoImagePorts), image_id)


def url(world: World, image_id: str, name: str = "thumb") -> str:
    return variant_url(
        world.ports(ReadImagePorts),
        image_id,
        name,
        tenant_id="default",
    )


def keys(variants: tuple[Variant, ...]) -> list[str]:
    return [variant.key for variant in variants]


@pytest.fixture
def image_id(world: World) -> str:
    return developed(world)


@pytest.mark.guards("redo-message-sent")
def test_a_done_image_is_developed_again_in_its_next_run(world: World, image_id: str) -> None:
    first = world.row(image_id)
    world.advance(3600)
    begun = redo(world, image_id)
    assert (begun.status, begun.outcome, begun.run, begun.attempt) == (Status.PENDING, Status.DONE, 2, 0)
    assert (begun.waiting_since, begun.due_at) == (world.now, world.now + 1_200_000)
    assert world.lanes.sent[-1].run == 2
    world.deliver(world.lanes.sent[-1])
    second = world.row(image_id)
    assert (second.status, second.run, second.attempt) == (Status.DONE, 2, 1)
    assert keys(second.variants) == [key.replace("/1/", "/2/") for key in keys(first.variants)]
    assert [world.outputs.objects[key] for key in keys(second.variants)] == [
        world.outputs.objects[key] for key in keys(first.variants)
    ], "and nothing of the first run was removed"


@pytest.mark.guards("redo-earlier-variants-served")
def test_what_there_is_can_be_fetched_until_the_new_run_has_made_others(world: World, image_id: str) -> None:
    before = status_document(world.row(image_id), world.outputs.url_of)
    redo(world, image_id)
    meanwhile = status_document(world.row(image_id), world.outputs.url_of)
    shown = ("status", "variants", "placeholder", "attention", "notices", "progress", "completed_at")
    assert {name: meanwhile[name] for name in shown} == {name: before[name] for name in shown}  # type: ignore[literal-required]
    assert (meanwhile["run"], meanwhile["work"] and meanwhile["work"]["status"]) == (2, "pending")
    assert "/1/thumb" in url(world, image_id)
    world.deliver(world.lanes.sent[-1])
    assert "/2/thumb" in url(world, image_id)


@pytest.mark.guards("redo-variant-not-ready")
def test_a_variant_that_is_gone_is_not_ready_until_it_was_made_again(world: World, image_id: str) -> None:
    del world.outputs.objects[f"outputs/{image_id}/1/thumb.jpg"]
    with pytest.raises(VariantMissing):
        url(world, image_id)
    redo(world, image_id)
    with pytest.raises(VariantNotReady):
        url(world, image_id)
    assert "/1/webp" in url(world, image_id, "webp")
    world.deliver(world.lanes.sent[-1])
    assert "/2/thumb" in url(world, image_id)


def test_a_new_run_that_fails_leaves_what_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    image_id = developed(world)
    made = world.row(image_id).variants
    redo(world, image_id)
    monkeypatch.setattr("darkroom.operations.images.transcode_image.developing", raising(ZeroDivisionError("a bug")))
    for attempt in range(5):
        world.deliver(world.lanes.sent[-1], f"receipt-{attempt}")
        world.advance(300)
    failed = world.row(image_id)
    assert (failed.status, failed.run, failed.variants) == (Status.DONE, 2, made)
    shown = status_document(failed, world.outputs.url_of)
    assert (shown["error"], shown["work"] and shown["work"]["status"]) == (None, "failed")
    assert "/1/thumb" in url(world, image_id)
    del world.outputs.objects[f"outputs/{image_id}/1/thumb.jpg"]
    with pytest.raises(VariantMissing):
        url(world, image_id)


@pytest.mark.guards("redo-clears-expiry")
def test_an_image_that_was_developed_in_time_does_not_expire_when_it_is_redone(world: World) -> None:
    image_id = developed(world, timetable=Timetable(expires_at=world.now + 60_000))
    world.advance(120)
    redo(world, image_id)
    world.deliver(world.lanes.sent[-1])
    assert (world.row(image_id).status, world.row(image_id).failed_work) == (Status.DONE, None)


@pytest.mark.guards("redo-deleted-refused")
@pytest.mark.parametrize(
    ("image", "why"),
    [
        (None, "no image with this id"),
        (pending(), "It is pending, in run 1: only an image that is done"),
        (pending(run=2), "It is pending, in run 2, which a replay has begun"),
        (processing(run=2), "It is processing, in run 2, which a replay"),
        (given_up(7), "It has failed, in run 1: replay it, by `darkroom dlq replay --image 0+7`"),
        (REFUSED, "It has failed"),
        (delete(DONE, now=NOW), "Its client has deleted it"),
        (delete(pending(), now=NOW), "Its client has deleted it"),
    ],
)
def test_what_cannot_be_redone_says_why_and_is_left_as_it_is(world: World, image: Image | None, why: str) -> None:
    if image is not None:
        world.images.rows[image.image_id] = image
    before = dict(world.images.rows)
    with pytest.raises(NotRedoable, match=why):
        redo(world, (image or DONE).image_id)
    assert (world.images.rows, world.lanes.sent) == (before, [])


def test_what_is_no_id_is_not_asked_for(world: World) -> None:
    world.images.get = raising(AssertionError("the table was asked"))
    with pytest.raises(NotRedoable, match="no image"):
        redo(world, "x" * 26)


def test_a_message_that_cannot_be_sent_is_the_sweepers(world: World, image_id: str) -> None:
    send, sent = world.lanes.send, len(world.lanes.sent)
    world.lanes.send = raising(Retryable("throttled"))
    assert redo(world, image_id).run == 2
    assert world.row(image_id).due_at == world.now
    world.lanes.send = send
    world.sweep()
    assert [message.run for message in world.lanes.sent[sent:]] == [2]


def test_a_redo_that_dies_before_its_message_is_mended_by_the_sweeper(world: World, image_id: str) -> None:
    send, sent = world.lanes.send, len(world.lanes.sent)
    world.lanes.send = raising(ProcessDied)
    with pytest.raises(ProcessDied):
        redo(world, image_id)
    world.lanes.send = send
    with pytest.raises(NotRedoable, match="Work beside it is under way, in run 2 \\(redo, pending\\)"):
        redo(world, image_id)
    world.advance(1200)
    world.sweep()
    assert [message.run for message in world.lanes.sent[sent:]] == [2]


def test_of_two_operators_one_begins_the_next_run_and_neither_begins_two(world: World, image_id: str) -> None:
    meanwhile(world.images, "change", lambda *_, **__: redo(world, image_id), times=1)
    assert redo(world, image_id).run == 2
    assert world.row(image_id).run == 2


@pytest.mark.guards("fence-on-replay", "redo-deleted-refused", case="deleted")
@pytest.mark.parametrize("happened", ["deleted", "marked"])
def test_a_row_that_moved_on_since_it_was_read_is_judged_anew(world: World, image_id: str, happened: str) -> None:
    change = world.images.change

    def overtake(*_: Any, **__: Any) -> None:
        if happened == "deleted":
            world.delete(image_id)
        else:
            row = world.row(image_id)
            change(row, replace(row, rescues=1), fence=("version",))

    meanwhile(world.images, "change", overtake, times=1)
    if happened == "deleted":
        with pytest.raises(NotRedoable, match="deleted"):
            redo(world, image_id)
        assert (world.row(image_id).status, world.row(image_id).run) == (Status.DONE, 1)
    else:
        assert redo(world, image_id).run == 2


def test_one_that_is_withdrawn_while_it_is_redone_leaves_nothing_of_either_run(world: World, image_id: str) -> None:
    redo(world, image_id)
    world.delete(image_id)
    assert (world.row(image_id).status, world.row(image_id).variants) == (Status.DONE, ())
    world.deliver(world.lanes.sent[-1])
    world.sweep()
    assert [key for key in world.outputs.objects if image_id in key] == []
