"""Withdrawing an image."""

from dataclasses import replace

import pytest

from darkroom.domain.errors import Rejected, UnknownImage
from darkroom.domain.image import Image, Status
from darkroom.operations.read_image import Ports, read_image
from darkroom.operations.transcode_image import Finished
from proof.fakes import World
from proof.fakes.pictures import jpeg

PHOTO = jpeg()


def read(world: World, image_id: str) -> str:
    ports = world.ports(Ports)
    return read_image(ports, image_id, tenant_id="default").status.value


def test_an_unfinished_image_is_cancelled_and_its_message_finds_nothing_to_do() -> None:
    world = World()
    image_id = world.submit(PHOTO, idempotency_key="k").image.image_id
    world.delete(image_id)
    world.delete(image_id)
    assert world.deliver(world.lanes.sent[0]) == Finished(image=world.row(image_id), reason="terminal")
    assert read(world, image_id) == "cancelled"
    assert world.submit(PHOTO, idempotency_key="k").image.status is Status.CANCELLED


def test_a_finished_image_is_gone_and_its_key_is_used_up() -> None:
    world = World()
    image_id = world.submit(PHOTO, idempotency_key="k").image.image_id
    world.deliver(world.lanes.sent[0])
    world.delete(image_id)
    with pytest.raises(UnknownImage):
        read(world, image_id)
    with pytest.raises(Rejected, match="was deleted"):
        world.submit(PHOTO, idempotency_key="k")


@pytest.mark.parametrize("image_id", ["0" * 26, "no id at all"])
def test_an_image_that_is_not_there_or_anothers_cannot_be_deleted(image_id: str) -> None:
    world = World()
    theirs = world.submit(PHOTO, tenant_id="them").image.image_id
    for one in (image_id, theirs):
        with pytest.raises(UnknownImage):
            world.delete(one)
    assert not world.row(theirs).is_deleted


def test_a_claim_between_reading_and_writing_does_not_save_it() -> None:
    world = World()
    image_id = world.submit(PHOTO).image.image_id
    get = world.images.get
    reads: list[str] = []

    def claimed_meanwhile(wanted: str) -> Image | None:
        image: Image | None = get(wanted)
        if not reads:
            world.images.rows[wanted] = replace(
                world.images.rows[wanted], status=Status.PROCESSING, version=world.images.rows[wanted].version + 1
            )
        reads.append(wanted)
        return image

    world.images.get = claimed_meanwhile
    world.delete(image_id)
    assert world.images.rows[image_id].status is Status.CANCELLED
