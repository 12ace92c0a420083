"""Noting deliveries of events: what a message of the consumer's queue comes to."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from darkroom.domain.delivery import DeliveryStatus
from darkroom.domain.endpoint import LOOK_SECONDS, matches
from darkroom.domain.errors import Retryable
from darkroom.operations.create_deliveries import Ports, create_deliveries
from darkroom.operations.manage_webhooks import Change, change_webhook
from proof.fakes.webhooks_world import TENANT, WebhooksWorld, event


@pytest.mark.parametrize(
    ("pattern", "kind", "is_match"),
    [
        ("*", "image.done", True),
        ("image.*", "image.done", True),
        ("image.done", "image.done", True),
        ("image.done", "image.failed", False),
        ("image.*", "images.done", False),
        ("image.do", "image.done", False),
    ],
)
def test_a_pattern_is_everything_a_type_or_the_beginning_of_types(pattern: str, kind: str, is_match: bool) -> None:
    assert matches((pattern,), kind) is is_match


def test_what_is_no_event_comes_back_alone() -> None:
    world = WebhooksWorld()
    created = create_deliveries(world.ports(Ports), ["{}", "not even JSON"])
    assert (created.deliveries, set(created.failures)) == (0, {0, 1})


def test_the_sweeper_looks_at_an_endpoint_with_a_new_delivery_within_a_minute() -> None:
    world = WebhooksWorld()
    endpoint = world.add()
    world.tell(event())
    due_at = world.endpoint(endpoint).due_at
    assert due_at is not None
    assert world.now < due_at <= world.now + LOOK_SECONDS * 1000


def test_a_queue_that_does_not_answer_is_no_reason_to_note_it_again() -> None:
    world = WebhooksWorld()
    endpoint = world.add()

    def down(*_: object, **__: object) -> None:
        raise Retryable("no answer")

    world.delivery_queue.send = down
    created = world.tell(event())
    assert (created.deliveries, dict(created.failures)) == (1, {})
    assert world.rows(endpoint)[0].status is DeliveryStatus.WAITING


def test_a_disabled_endpoints_deliveries_are_noted_without_a_message() -> None:
    world = WebhooksWorld()
    endpoint = world.add()
    change_webhook(world.manage(), TENANT, endpoint.endpoint_id, Change(is_enabled=False))
    world.tell(event())
    assert len(world.rows(endpoint)) == 1
    assert world.delivery_queue.sent == []


def test_a_webhook_is_not_told_what_its_event_changes_of_what_is_stored() -> None:
    world = WebhooksWorld()
    endpoint = world.add()
    plain = [event(), event(2)]
    deleted = replace(plain[0], data={**plain[0].data, "stored": {"bytes": -5, "images": -1}})
    world.tell(deleted, plain[1])
    told = {json.loads(row.body)["id"]: json.loads(row.body)["data"] for row in world.rows(endpoint)}
    assert told == {one.event_id: one.data for one in plain}
