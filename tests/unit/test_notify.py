"""An image of which one webhook alone is to hear: what is stored, what is refused, and what a retry finds."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from darkroom.domain.images.image import Image
from darkroom.domain.images.transitions import delete
from darkroom.domain.kernel.errors import Rejected
from darkroom.domain.webhooks.endpoint import Endpoint
from darkroom.domain.webhooks.endpoint_ids import endpoint_id_from
from darkroom.domain.webhooks.row_events import events_of
from tests.support.fakes import World
from tests.support.fakes.pictures import jpeg
from tests.support.fakes.webhooks import FakeEndpoints

PHOTO = jpeg()
ACME = Endpoint(
    tenant_id="acme", endpoint_id=endpoint_id_from(0, bytes(10)), url="https://a.example.com/", events=(), created_at=1
)
GLOBEX = replace(ACME, tenant_id="globex", endpoint_id=endpoint_id_from(1, bytes(10)))
NOTIFY = ACME.endpoint_id

type Send = Callable[..., Image]


def submitted(world: World, **asked: Any) -> Image:
    return world.submit(PHOTO, tenant_id="acme", **asked).image


def announced(world: World, **asked: Any) -> Image:
    return world.begin(PHOTO, tenant_id="acme", **asked).image


BOTH = pytest.mark.parametrize("send", [submitted, announced])


@pytest.fixture
def world() -> World:
    made = World()
    for endpoint in (ACME, GLOBEX):
        made.endpoints.create(endpoint)
    return made


@BOTH
def test_the_row_names_the_webhook_and_so_does_each_of_its_events(world: World, send: Send) -> None:
    image = send(world, notify=NOTIFY)
    assert world.row(image.image_id).notify == NOTIFY
    assert [event.notify for event in events_of(delete(image, now=world.now))][-1] == NOTIFY


def test_an_announced_image_still_names_it_when_its_bytes_have_come(world: World) -> None:
    begun = world.begin(PHOTO, tenant_id="acme", notify=NOTIFY)
    world.upload(begun, PHOTO)
    world.accept_upload(begun.image.image_id)
    assert [event.notify for event in events_of(world.row(begun.image.image_id))] == [NOTIFY]


@pytest.mark.guards("webhook-notify-id-checked", "webhook-notify-own-tenant")
@BOTH
@pytest.mark.parametrize("notify", ["", "we_x", "default", endpoint_id_from(2, bytes(10)), GLOBEX.endpoint_id])
def test_a_webhook_that_the_tenant_does_not_have_is_refused_and_leaves_nothing(
    world: World, send: Send, notify: str
) -> None:
    with pytest.raises(Rejected) as refusal:
        send(world, notify=notify)
    assert refusal.value.code == "unknown_notify"
    assert (world.originals.objects, world.images.rows, world.lanes.sent) == ({}, {}, [])


@BOTH
def test_nobody_looks_for_a_webhook_that_is_not_named(send: Send) -> None:
    class Nowhere(FakeEndpoints):
        def get(self, tenant_id: str, endpoint_id: str) -> Endpoint | None:
            raise AssertionError("it costs a call")

    assert send(World(endpoints=Nowhere())).notify is None


@pytest.mark.guards("webhook-notify-in-fingerprint")
@BOTH
def test_under_one_key_another_webhook_is_another_request(world: World, send: Send) -> None:
    other = replace(ACME, endpoint_id=endpoint_id_from(2, bytes(10)))
    world.endpoints.create(other)
    first = send(world, notify=NOTIFY, idempotency_key="order-17")
    for notify in (other.endpoint_id, None):
        with pytest.raises(Rejected) as refusal:
            send(world, notify=notify, idempotency_key="order-17")
        assert refusal.value.code == "idempotency_key_reused"
    world.endpoints.remove(ACME.tenant_id, ACME.endpoint_id)
    again = send(world, notify=NOTIFY, idempotency_key="order-17")
    assert again.image_id == first.image_id, "a repetition, although the webhook is gone"


@pytest.mark.guards("unreadable-webhook-may-be-named")
@BOTH
def test_an_image_may_name_a_webhook_whose_row_a_newer_version_wrote(world: World, send: Send) -> None:
    world.endpoints.unreadable.add(ACME.endpoint_id)
    assert send(world, notify=NOTIFY).notify == NOTIFY
