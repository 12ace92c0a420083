"""Accepting uploads: which begin, which are refused, and which come twice, late or without an image."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from darkroom.domain.images.image import Image, Status
from darkroom.domain.kernel.errors import Retryable
from darkroom.ports.images import StoredOriginal
from tests.support.fakes import World
from tests.support.fakes.damage import damage_once, flipped
from tests.support.fakes.pictures import encoded, jpeg, picture
from tests.support.faults import meanwhile, raising

PHOTO = jpeg()


def uploaded(world: World, body: bytes = PHOTO, **announced: Any) -> str:
    """An image whose upload has arrived without having been noticed yet."""
    begun = world.begin(body, **announced)
    world.upload(begun, body)
    return begun.image.image_id


@pytest.fixture
def image_id(world: World) -> str:
    return uploaded(world)


@pytest.mark.guards("upload-live-original-kept")
def test_what_has_come_becomes_the_original_and_its_message_is_sent(world: World, image_id: str) -> None:
    world.advance(20)
    assert world.accept_upload(image_id).outcome == "accepted"
    image = world.row(image_id)
    assert (image.status, image.waiting_since, image.source.version_id) == (Status.PENDING, world.now, "v1")
    assert world.originals.objects == {image_id: PHOTO}
    assert [message.image_id for message in world.lanes.sent] == [image_id]
    assert world.uploads.objects == {}, "there is one way to originals"


def test_it_is_developed_like_any_other(world: World) -> None:
    image_id = uploaded(world, variants=["thumb"])
    world.accept_upload(image_id)
    world.deliver(world.lanes.sent[0])
    assert world.row(image_id).status is Status.DONE


@pytest.mark.guards("upload-type-from-bytes")
def test_the_type_is_decided_by_the_bytes_and_not_by_what_was_announced(world: World) -> None:
    image_id = uploaded(world, encoded(picture(), "PNG"), content_type="image/jpeg")
    world.accept_upload(image_id)
    assert world.row(image_id).source.media_type == "image/png"


@pytest.mark.guards("upload-type-from-bytes")
def test_what_is_no_image_fails_at_once_and_nothing_of_it_is_kept(world: World) -> None:
    image_id = uploaded(world, b"%PDF-1.7 and so on", content_type="image/jpeg")
    assert world.accept_upload(image_id).outcome == "failed"
    image = world.row(image_id)
    assert (image.status, image.due_at, image.dead_letter) == (Status.FAILED, None, None)
    assert image.error is not None
    assert (image.error.code, image.error.retryable) == ("unsupported_format", False)
    assert "a PDF document" in image.error.message
    assert (world.originals.objects, world.uploads.objects, world.lanes.sent) == ({}, {}, [])


@pytest.mark.guards("upload-announced-bytes-match")
@pytest.mark.parametrize("body", [PHOTO[:-1], PHOTO + b"!", PHOTO[:-1] + b"!", b""])
def test_other_bytes_than_those_that_were_announced_are_refused(world: World, body: bytes) -> None:
    image_id = world.begin(PHOTO).image.image_id
    world.uploads.objects[image_id] = body
    assert world.accept_upload(image_id).outcome == "failed"
    error = world.row(image_id).error
    assert error is not None and error.code == "checksum_mismatch"
    assert world.originals.objects == {}


@pytest.mark.guards("upload-mismatch-read-twice")
@pytest.mark.parametrize(
    ("method", "harm"),
    [("get", flipped), ("get", lambda body: body[:-1]), ("get", lambda _: b""), ("size_bytes", lambda size: size - 1)],
    ids=["a bit turned", "cut short", "empty", "another size"],
)
def test_an_upload_that_is_read_damaged_once_is_accepted_all_the_same(method: str, harm: Callable[[Any], Any]) -> None:
    world = World()
    image_id = uploaded(world)
    damage_once(world.uploads, method, harm)
    assert world.accept_upload(image_id).outcome == "accepted"
    assert world.originals.objects == {image_id: PHOTO}


@pytest.mark.guards("upload-differing-reads-retried")
def test_an_upload_that_is_read_in_two_ways_waits_for_a_better_day_and_stays(world: World, image_id: str) -> None:
    damages = iter([PHOTO[:-1], PHOTO[:-2]])
    world.uploads.get = lambda _: next(damages)
    with pytest.raises(Retryable):
        world.accept_upload(image_id)
    assert world.row(image_id).status is Status.AWAITING_UPLOAD
    assert world.uploads.objects == {image_id: PHOTO}


@pytest.mark.guards("upload-size-before-read")
def test_what_is_larger_than_it_should_be_is_not_even_read(world: World) -> None:
    image_id = world.begin(PHOTO).image.image_id
    world.uploads.objects[image_id] = PHOTO + b"!"
    world.uploads.get = None
    assert world.accept_upload(image_id).outcome == "failed"


def test_what_comes_before_its_time_is_scheduled(world: World) -> None:
    image_id = uploaded(world, delay="PT10M")
    world.accept_upload(image_id)
    assert world.row(image_id).status is Status.SCHEDULED
    assert world.lanes.delays == [600]
    far = uploaded(world, delay="P1D")
    world.accept_upload(far)
    assert [message.image_id for message in world.hold_queue.held] == [far]


def test_a_duplicate_notification_begins_nothing_twice(world: World, image_id: str) -> None:
    world.accept_upload(image_id)
    row = world.row(image_id)
    world.deliver(world.lanes.sent[0])
    done = world.row(image_id)
    assert world.accept_upload(image_id).outcome == "late"
    assert world.row(image_id) == done != row
    assert len(world.lanes.sent) == 1


@pytest.mark.guards("upload-lost-message-resent")
def test_a_notification_repeated_before_a_worker_has_begun_sends_the_possibly_lost_message_again() -> None:
    world = World()
    image_id = uploaded(world)
    world.accept_upload(image_id)
    world.accept_upload(image_id)
    assert len(world.lanes.sent) == 2


@pytest.mark.parametrize("failing", ["get", "put_if_absent"])
def test_a_store_that_does_not_answer_leaves_the_image_waiting_for_the_next_news(failing: str) -> None:
    world = World()
    image_id = uploaded(world)
    store = world.uploads if failing == "get" else world.originals
    works = getattr(store, failing)
    setattr(store, failing, raising(Retryable("timeout")))
    with pytest.raises(Retryable):
        world.accept_upload(image_id)
    assert world.row(image_id).status is Status.AWAITING_UPLOAD
    setattr(store, failing, works)
    assert world.accept_upload(image_id).outcome == "accepted"


def test_a_queue_that_does_not_answer_makes_the_image_due_now(world: World, image_id: str) -> None:
    world.lanes.send = raising(Retryable("timeout"))
    assert world.accept_upload(image_id).outcome == "accepted"
    assert world.row(image_id).due_at == world.now


def test_what_cannot_be_removed_now_is_removed_when_the_notification_returns(world: World, image_id: str) -> None:
    remove = world.uploads.remove
    world.uploads.remove = lambda image_ids: dict.fromkeys(image_ids, Retryable("timeout"))
    with pytest.raises(Retryable):
        world.accept_upload(image_id)
    accepted = world.row(image_id)
    assert (accepted.status, len(world.lanes.sent)) == (Status.PENDING, 1), "its work has begun all the same"
    world.uploads.remove = remove
    assert world.accept_upload(image_id).outcome == "late"
    assert (world.row(image_id), world.uploads.objects) == (accepted, {})


def test_a_notification_without_an_object_changes_nothing(world: World) -> None:
    image_id = world.begin(PHOTO).image.image_id
    row = world.row(image_id)
    assert world.accept_upload(image_id).outcome == "nothing_there"
    assert world.accept_upload("0" * 26).outcome == "gone"
    assert world.row(image_id) == row


def test_an_upload_that_vanishes_during_a_look_does_not_count(world: World, image_id: str) -> None:
    world.uploads.get = lambda _: None
    assert world.accept_upload(image_id).outcome == "nothing_there"


@pytest.mark.parametrize("end", ["deleted", "expired"])
def test_what_comes_for_an_image_that_has_ended_goes(world: World, image_id: str, end: str) -> None:
    upload = world.uploads.objects.pop(image_id)
    if end == "deleted":
        world.delete(image_id)
    else:
        world.advance(900)
        world.sweep()
    ended = world.row(image_id)
    world.uploads.objects[image_id] = upload
    assert world.accept_upload(image_id).outcome == "late"
    assert (world.row(image_id), world.uploads.objects, world.originals.objects) == (ended, {}, {})


@pytest.mark.guards("upload-late-arrival-expires")
def test_what_comes_after_its_image_is_wanted_expires(world: World) -> None:
    image_id = uploaded(world, expires_at="2026-11-21T09:01:00Z")
    assert world.now == 1_795_251_600_000  # 09:00
    world.advance(60)
    assert world.accept_upload(image_id).outcome == "expired"
    assert (world.row(image_id).status, world.originals.objects) == (Status.EXPIRED, {})
    assert world.uploads.objects == {}


@pytest.mark.guards("upload-acceptance-fence", "upload-orphan-original-removed")
@pytest.mark.parametrize("end", ["deleted", "expired", "accepted"])
def test_who_loses_the_row_leaves_an_original_only_where_it_has_one(world: World, image_id: str, end: str) -> None:

    def overtake(before: Image, *_: Any, **__: Any) -> None:
        if end == "deleted":
            world.delete(image_id)
        elif end == "accepted":
            assert world.accept_upload(image_id).outcome == "accepted"
        else:
            world.images.rows[image_id] = replace(before, status=Status.EXPIRED, due_at=None)

    meanwhile(world.images, "change", overtake, times=1)
    assert world.accept_upload(image_id).outcome == "late"
    assert list(world.originals.objects) == ([image_id] if end == "accepted" else [])
    assert world.uploads.objects == {}


@pytest.mark.guards("upload-original-matches")
def test_an_upload_does_not_become_an_image_of_another_photo_that_lies_under_its_key(world: World) -> None:
    image_id = uploaded(world, idempotency_key="k")
    another = StoredOriginal(version_id="v0", sha256="another", size_bytes=1, media_type="image/png")
    world.originals.put_if_absent = lambda *_, **__: another
    assert world.accept_upload(image_id).outcome == "failed"
    error = world.row(image_id).error
    assert error is not None and error.code == "idempotency_key_reused"
