"""Noting deliveries of events: what a message of the consumer's queue comes to."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from darkroom.domain.events.event import EventType, body_of, without_details
from darkroom.domain.images.transitions import delete
from darkroom.domain.kernel.errors import Retryable
from darkroom.domain.webhooks.delivery import Answer, Delivery, DeliveryStatus
from darkroom.domain.webhooks.endpoint import LOOK_SECONDS, matches
from darkroom.operations.webhooks.create_deliveries import CreateDeliveriesPorts, create_deliveries
from darkroom.operations.webhooks.manage_webhooks import Change, change_webhook, ping_webhook
from tests.failures import ANY_FAILURE
from tests.support.fakes.rows import accepted_image
from tests.support.fakes.webhooks import FakeDeliveries
from tests.support.fakes.world import TENANT, WebhooksWorld, event
from tests.support.faults import failing, raising


@pytest.fixture
def world() -> WebhooksWorld:
    return WebhooksWorld()


@pytest.mark.parametrize(
    ("pattern", "kind", "is_match"),
    [
        ("*", "image.done", True),
        ("image.*", "image.done", True),
        ("image.done", "image.done", True),
        ("image.done", "image.failed", False),
        ("image.*", "images.done", False),
        ("image.do", "image.done", False),
        ("image.*", "image.redeveloped", False),
        ("*", "image.redeveloped", False),
        ("image.redeveloped", "image.redeveloped", True),
    ],
)
@pytest.mark.guards("webhook-backfill-by-name-only")
def test_a_pattern_is_everything_a_type_or_the_beginning_of_types(pattern: str, kind: str, is_match: bool) -> None:
    assert matches((pattern,), kind) is is_match


def test_what_is_no_event_comes_back_alone(world: WebhooksWorld) -> None:
    created = create_deliveries(world.ports(CreateDeliveriesPorts), ["{}", "not even JSON"])
    assert (created.deliveries, set(created.failures)) == (0, {0, 1})


def test_the_sweeper_looks_at_an_endpoint_with_a_new_delivery_within_a_minute(world: WebhooksWorld) -> None:
    endpoint = world.add()
    world.tell(event())
    due_at = world.endpoint(endpoint).due_at
    assert due_at is not None
    assert world.now < due_at <= world.now + LOOK_SECONDS * 1000


@pytest.mark.guards("webhook-message-failure-tolerated")
@ANY_FAILURE
def test_a_queue_that_does_not_answer_is_no_reason_to_note_it_again(world: WebhooksWorld, failure: Exception) -> None:
    endpoint = world.add()
    world.delivery_queue.send = raising(failure)
    created = world.tell(event())
    assert (created.deliveries, dict(created.failures)) == (1, {})
    assert world.rows(endpoint)[0].status is DeliveryStatus.WAITING


def test_a_disabled_endpoints_deliveries_are_noted_without_a_message(world: WebhooksWorld) -> None:
    endpoint = world.add()
    change_webhook(world.manage(), TENANT, endpoint.endpoint_id, Change(is_enabled=False))
    world.tell(event())
    assert len(world.rows(endpoint)) == 1
    assert world.delivery_queue.sent == []


@pytest.mark.guards("unreadable-endpoint-hourly-look", case="events0")
@pytest.mark.guards("unreadable-endpoint-unknown-events", case="events2")
@pytest.mark.parametrize("events", [("*",), ("image.done",), ("image.done?lane=fast",)])
def test_an_unreadable_endpoint_keeps_no_sibling_from_its_event_and_gets_its_own_later(events: tuple[str, ...]) -> None:
    world = WebhooksWorld()
    bad, good = world.add("https://a.example.com/", events=events), world.add("https://b.example.com/")
    world.endpoints.unreadable.add(bad.endpoint_id)
    created = world.tell(event(), event(2, EventType.FAILED))
    assert (dict(created.failures), [row.row_id for row in created.unreadable]) == ({}, [bad.endpoint_id])
    assert [message.endpoint_id for message in world.take()] == [good.endpoint_id] * 2
    wanted = 1 if events == ("image.done",) else 2  # in a pattern that only a newer version knows it may want anything
    assert len(world.rows(bad)) == wanted
    world.run_for(1800)
    world.endpoints.unreadable.clear()
    assert world.run_for(3700).count("delivered") == wanted


def test_an_event_for_a_sibling_alone_is_not_noted_for_an_unreadable_endpoint(world: WebhooksWorld) -> None:
    bad, good = world.add("https://a.example.com/"), world.add("https://b.example.com/")
    world.endpoints.unreadable.add(bad.endpoint_id)
    world.tell(event(notify=good.endpoint_id))
    assert (len(world.rows(good)), world.rows(bad)) == (1, [])


@pytest.mark.guards("isolated-delivery-failure-retried", "isolated-endpoint-delivery")
def test_an_endpoint_whose_delivery_cannot_be_noted_keeps_none_behind_it_waiting(world: WebhooksWorld) -> None:
    first, second = world.add("https://a.example.com/"), world.add("https://b.example.com/")
    hot = Retryable("a hot partition")
    world.deliveries = failing(
        FakeDeliveries(), "create", hot, lambda delivery: delivery.endpoint_id == first.endpoint_id
    )
    created = world.tell(event())
    assert [str(error) for error in created.failures.values()] == ["a hot partition"], "the event comes back"
    assert [message.endpoint_id for message in world.take()] == [second.endpoint_id]


@pytest.mark.guards("unreadable-delivery-already-noted")
def test_an_event_that_comes_again_is_noted_though_a_newer_version_has_written_its_delivery() -> None:
    world = WebhooksWorld()
    bad, good = world.add("https://a.example.com/"), world.add("https://b.example.com/")
    world.tell(event())
    world.deliveries.unreadable.add((bad.endpoint_id, world.rows(bad)[0].delivery_id))
    world.take()
    created = world.tell(event())
    assert (dict(created.failures), len(created.unreadable)) == ({}, 1)
    assert [message.endpoint_id for message in world.take()] == [good.endpoint_id]


def rows_of(world: WebhooksWorld) -> list[Delivery]:
    return [row for rows in world.deliveries.rows.values() for row in rows.values()]


@pytest.mark.guards("erasure-late-event-no-details", "erasure-unreadable-image-event")
def test_an_event_that_is_heard_after_its_image_was_deleted_is_noted_without_details(world: WebhooksWorld) -> None:
    world.add()
    events = [event(1), event(2), event(3)]
    for number, heard in enumerate(events):
        row = accepted_image(now=world.now, image_id=heard.subject, tenant_id=TENANT)
        world.images.create(delete(row, now=world.now) if number == 0 else row)
    world.images.unreadable[events[1].subject] = world.images.rows.pop(events[1].subject)
    assert world.tell(*events).deliveries == 3
    assert ["hero" in row.body for row in rows_of(world)] == [False, True, True]
    assert rows_of(world)[0].body == without_details(body_of(events[0], source=world.source))
    assert world.run() == ["delivered"] * 3
    assert [json.loads(request.body)["id"] for request in world.receiver.requests] == [
        event.event_id for event in events
    ]


@pytest.mark.guards("erasure-late-answer-not-kept")
def test_of_what_is_answered_to_an_event_of_a_deleted_image_nothing_is_kept(world: WebhooksWorld) -> None:
    endpoint = world.add()
    world.images.create(accepted_image(now=world.now, image_id=event(1).subject, tenant_id=TENANT))
    world.receiver.behaves = lambda _: Answer(milliseconds=5, status=500, body="no hero here")
    world.tell(event(1), event(2, EventType.DELETED))
    ping_webhook(world.manage(), TENANT, endpoint.endpoint_id)
    world.run()
    kept = {row.event_type: row.attempts[0].response for row in rows_of(world)}
    assert kept == {"image.done": "no hero here", "image.deleted": None, "webhook.ping": "no hero here"}


@pytest.mark.guards("quotas-hidden-from-webhooks")
def test_a_webhook_is_not_told_what_its_event_changes_of_what_is_stored(world: WebhooksWorld) -> None:
    endpoint = world.add()
    plain = [event(), event(2)]
    deleted = replace(plain[0], data={**plain[0].data, "stored": {"bytes": -5, "images": -1}})
    world.tell(deleted, plain[1])
    data_by_id = {json.loads(row.body)["id"]: json.loads(row.body)["data"] for row in world.rows(endpoint)}
    assert data_by_id == {plain_event.event_id: plain_event.data for plain_event in plain}
