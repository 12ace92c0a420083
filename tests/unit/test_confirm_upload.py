"""Confirming uploads: what has come is accepted, whoever says so first, and nothing else is."""

from typing import Any

import pytest

from darkroom.domain.images.image import Image, Status
from darkroom.domain.kernel.errors import Retryable, UnknownImage
from darkroom.operations.uploads.confirm_upload import ConfirmUploadPorts, NotUploaded, confirm_upload
from tests.support.fakes import World
from tests.support.fakes.pictures import jpeg
from tests.support.faults import meanwhile, raising

PHOTO = jpeg()


def confirm(world: World, image_id: str, **who: Any) -> Image:
    """The answer to a confirmation; `accept_reminded` does what its reminder asks for."""
    return confirm_upload(world.ports(ConfirmUploadPorts), image_id, **{"tenant_id": "default", **who})


def accept_reminded(world: World) -> list[str]:
    reminders, world.upload_queue.reminders = world.upload_queue.reminders, []
    return [world.accept_upload(message.image_id).outcome for message in reminders]


@pytest.mark.parametrize("events_before", [0, 1])
def test_event_and_confirmation_in_either_order_and_twice_accept_once(world: World, events_before: int) -> None:
    begun = world.begin(PHOTO)
    image_id = begun.image.image_id
    world.upload(begun, PHOTO)
    outcomes: list[str] = [world.accept_upload(image_id).outcome for _ in range(events_before)]
    assert confirm(world, image_id).image_id == confirm(world, image_id).image_id == image_id
    outcomes += [*accept_reminded(world), world.accept_upload(image_id).outcome]
    assert outcomes == ["accepted", "late", "late"][: 2 + (events_before == 0)]
    assert [message.image_id for message in world.lanes.sent][:1] == [image_id]
    assert (world.row(image_id).status, world.originals.objects) == (Status.PENDING, {image_id: PHOTO})


@pytest.mark.guards("upload-confirmed-nothing-there")
def test_what_has_not_come_cannot_be_confirmed(world: World) -> None:
    image_id = world.begin(PHOTO).image.image_id
    with pytest.raises(NotUploaded):
        confirm(world, image_id)
    assert world.upload_queue.reminders == []


@pytest.mark.guards("upload-confirmed-read-again")
def test_what_is_accepted_meanwhile_is_not_missing(world: World) -> None:
    begun = world.begin(PHOTO)
    world.upload(begun, PHOTO)
    meanwhile(world.uploads, "size_bytes", world.accept_upload, times=1)
    assert confirm(world, begun.image.image_id).status is Status.PENDING
    assert world.upload_queue.reminders == []


def test_other_bytes_are_refused_as_after_an_event(world: World) -> None:
    image_id = world.begin(PHOTO).image.image_id
    world.uploads.objects[image_id] = PHOTO[:-1]
    confirm(world, image_id)
    assert accept_reminded(world) == ["failed"]


@pytest.mark.parametrize("who", [{"tenant_id": "globex"}, {"upload_token": "0" * 16}])
def test_nobody_confirms_anothers_upload(world: World, who: dict[str, str]) -> None:
    begun = world.begin(PHOTO)
    world.upload(begun, PHOTO)
    with pytest.raises(UnknownImage):
        confirm(world, begun.image.image_id, **who)
    assert world.upload_queue.reminders == []


@pytest.mark.parametrize(("port", "method"), [("images", "get"), ("uploads", "size_bytes"), ("upload_queue", "put")])
def test_an_outage_is_one_for_the_client_too(world: World, port: str, method: str) -> None:
    begun = world.begin(PHOTO)
    world.upload(begun, PHOTO)
    setattr(getattr(world, port), method, raising(Retryable("no answer")))
    with pytest.raises(Retryable):
        confirm(world, begun.image.image_id)
    assert world.upload_queue.reminders == []
