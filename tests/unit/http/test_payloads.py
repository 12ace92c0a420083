"""What openapi.json says of what is sent to webhooks: each event as it really is."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from darkroom.domain.bulk.batches import Counts, Stop, close, end, open_batch
from darkroom.domain.bulk.schedules import Plan, RunOutcome, add, begin
from darkroom.domain.bulk.schedules import end as end_run
from darkroom.domain.events.event import EventType, PublishedEvent, body_of, without_stored
from darkroom.domain.images.image import Image, WorkKind
from darkroom.domain.images.pictures import EdgeUrls
from darkroom.domain.images.transitions import begin_work, complete, delete, end_change, expire, redevelop, reject
from darkroom.domain.images.works import moved
from darkroom.domain.kernel.visibility import Visibility
from darkroom.domain.recipes.recipes import Recipe, VariantSpec
from darkroom.domain.webhooks.delivery import PING
from darkroom.domain.webhooks.endpoint import WARN_SECONDS, DisabledBy, Endpoint, disable, fail
from darkroom.domain.webhooks.row_events import event_of, events_of
from darkroom.operations.webhooks.manage_webhooks import ping_webhook
from darkroom_cli.operator.domain.next_run import redo
from repository.openapi.payloads import PAYLOADS
from tests.conformity import described, misfits
from tests.support.fakes.world import TENANT, WebhooksWorld
from tests.support.image_changes import NOW, VARIANT, accepted, claimed, done

EDGE = EdgeUrls(base="https://d1.cloudfront.net")


def every_event() -> Iterator[PublishedEvent]:
    """Each type as it is published first, and again after the row has forgotten its details."""
    failed = reject(claimed(accepted()), code="truncated", message="It ends early.", now=NOW)
    hero = Recipe(variants=(VariantSpec(name="hero", width=8),))
    adding = claimed(begin_work(done(claimed(accepted())), WorkKind.VARIANTS, now=NOW, recipe=hero))
    made_public = begin_work(done(claimed(accepted())), WorkKind.VISIBILITY, now=NOW, visibility=Visibility.PUBLIC)
    moving = claimed(made_public)
    anew = claimed(redevelop(done(claimed(accepted())), hero, version=2, backfill="bf_1", lane="bulk", now=NOW))
    ends: tuple[tuple[Image | None, Image], ...] = (
        (None, accepted()),
        (None, accepted(batch=f"ba_{'0' * 26}", notify="we_0000000000000000", preset=None, process_at=NOW + 1)),
        (claimed(accepted()), done(claimed(accepted()))),
        (claimed(accepted()), complete(claimed(accepted()), (VARIANT, VARIANT), notices=("n",), now=NOW)),
        (claimed(accepted()), failed),
        (accepted(), expire(accepted(), now=NOW)),
        (accepted(), delete(accepted(), now=NOW)),
        (adding, done(adding)),
        (anew, done(anew)),
        (moving, end_change(moved(moving, Visibility.PUBLIC), now=NOW)),
        (adding, reject(adding, code="overlay_missing", message="It was deleted.", now=NOW)),
        (done(adding), delete(done(adding), now=NOW)),
        (done(claimed(accepted())), delete(done(claimed(accepted())), now=NOW)),
    )
    for before, after in ends:
        event = event_of(before, after, EDGE)
        assert event is not None
        yield event
        yield from events_of(after, EDGE)
    yield from events_of(redo(done(claimed(accepted())), now=NOW))
    yield from events_of(disable(failing_for_a_day(), DisabledBy.CLIENT, now=NOW))
    yield from events_of(disable(WebhooksWorld().add(), DisabledBy.CLIENT, now=NOW))
    for why in (None, Stop.FAILURE, Stop.CLIENT):
        closed = close(open_batch(f"ba_{'0' * 26}", tenant_id=TENANT, now=NOW, notify="we_0000000000000000"), now=NOW)
        yield from events_of(end(replace(closed, stops=why), Counts(done=2, failed=1), now=NOW))
    begun = begin(add(Plan(name="nightly", cron="* * * * *", job="announce", target=TENANT), now=NOW), now=NOW)
    yield from events_of(end_run(begun, RunOutcome.DONE, now=NOW))


def failing_for_a_day() -> Endpoint:
    row = WebhooksWorld().add()
    for now in (NOW, NOW + WARN_SECONDS * 1000):
        row = fail(row, "d", is_first=True, retry_at=None, is_gone=False, now=now)
    return row


def schema_of(kind: str) -> Any:
    return described()["webhooks"][kind]["post"]["requestBody"]["content"]["application/json"]["schema"]


def test_every_type_is_described_and_its_events_are_as_described() -> None:
    assert described()["webhooks"].keys() == PAYLOADS.keys() == {*EventType, PING}
    checked = set()
    for event in every_event():
        assert not misfits(
            json.loads(without_stored(body_of(event, source="/darkroom/test"))), schema_of(event.type)
        ), event.type
        checked.add(event.type)
    assert checked == {*EventType}


def test_a_ping_is_as_described() -> None:
    world = WebhooksWorld()
    endpoint = world.add()
    delivery = ping_webhook(world.manage(), TENANT, endpoint.endpoint_id)
    assert not misfits(json.loads(delivery.body), schema_of(PING))


@pytest.mark.parametrize("kind", sorted(PAYLOADS))
def test_an_event_is_not_taken_for_one_of_another_type(kind: str) -> None:
    example = described()["components"]["examples"][kind]["value"]
    assert [other for other in PAYLOADS if not misfits(example, schema_of(other))] == [kind]


@pytest.mark.parametrize("kind", sorted(PAYLOADS))
def test_a_receiver_is_told_the_headers_and_what_to_answer(kind: str) -> None:
    operation = described()["webhooks"][kind]["post"]
    assert [header["name"] for header in operation["parameters"]] == [
        "webhook-id",
        "webhook-timestamp",
        "webhook-signature",
    ]
    assert all(not misfits(header["example"], header["schema"]) for header in operation["parameters"])
    assert operation["responses"].keys() == {"2XX", "410", "429", "default"}
    assert operation["security"] == []
