"""Reading: an image's current status, and the way to a variant."""

import pytest

from darkroom.domain.images.image import Image
from darkroom.domain.kernel.errors import Retryable, UnknownImage
from darkroom.operations.images.read_image import (
    ReadImagePorts,
    VariantMissing,
    read_image,
    variant_url,
)
from tests.support.fakes import World
from tests.support.fakes.pictures import jpeg
from tests.support.faults import raising


def read(world: World, image_id: str, tenant_id: str = "default") -> Image:
    return read_image(world.ports(ReadImagePorts), image_id, tenant_id=tenant_id)


def url(world: World, image_id: str, name: str, tenant_id: str = "default") -> str:
    return variant_url(world.ports(ReadImagePorts), image_id, name, tenant_id=tenant_id)


def done_image(world: World) -> str:
    image_id = world.submit(jpeg()).image.image_id
    world.deliver(world.lanes.sent[-1])
    return image_id


def test_an_image_is_read_as_it_stands(world: World) -> None:
    image_id = done_image(world)
    assert read(world, image_id) == world.row(image_id)


@pytest.mark.parametrize("image_id", ["0" * 26, "no-id", "", "../" * 9])
def test_an_unknown_or_malformed_id_is_unknown(image_id: str) -> None:
    with pytest.raises(UnknownImage):
        read(World(), image_id)


def test_a_malformed_id_never_reaches_the_table(world: World) -> None:
    world.images.get = raising(AssertionError("the table was asked"))
    with pytest.raises(UnknownImage):
        read(world, "x" * 26)


@pytest.mark.guards("tenants-read-own-only")
def test_another_tenants_image_is_unknown(world: World) -> None:
    image_id = done_image(world)
    with pytest.raises(UnknownImage):
        read(world, image_id, tenant_id="another")
    with pytest.raises(UnknownImage):
        url(world, image_id, "thumb", tenant_id="another")


@pytest.mark.guards("variant-missing-object-no-address")
@pytest.mark.parametrize("left", [None, b"other bytes"])
def test_a_variant_whose_object_is_gone_or_another_has_no_address(world: World, left: bytes | None) -> None:
    image_id = done_image(world)
    key = f"outputs/{image_id}/1/webp.webp"
    world.outputs.objects.pop(key)
    if left is not None:
        world.outputs.objects[key] = left
    with pytest.raises(VariantMissing) as missing:
        url(world, image_id, "webp")
    assert (missing.value.image.image_id, missing.value.variant.key) == (image_id, key)
    assert url(world, image_id, "thumb").endswith("thumb.jpg"), "the others are there"


@pytest.mark.guards("variant-store-outage-tolerated")
def test_a_store_that_does_not_answer_keeps_nobody_from_an_address(world: World) -> None:
    image_id = done_image(world)
    world.outputs.holds = raising(Retryable("timeout"))
    assert url(world, image_id, "thumb").endswith("thumb.jpg")
