"""Publishing events again from rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from darkroom.domain.bulk.batches import NO_COUNTS, batch_id_from_bits, close, end, open_batch
from darkroom.domain.images.pictures import EdgeUrls
from darkroom.domain.kernel.errors import Retryable
from darkroom.domain.webhooks.endpoint import DisabledBy, Endpoint, disable
from darkroom.domain.webhooks.row_events import event_of
from darkroom_cli.operator.operations.events.republish_events import (
    AT_ONCE,
    RepublishEventsPorts,
    Republishing,
    RepublishSelection,
    republish_events,
)
from darkroom_cli.operator.operations.kernel.rate_limiter import RateLimiter
from tests.support.fakes import World
from tests.support.fakes.pictures import jpeg
from tests.support.stack import FakeStack


def republish(
    stack: FakeStack, *, pauses: list[float] | None = None, publish: bool = True, **wanted: Any
) -> Republishing:
    pause = ([] if pauses is None else pauses).append
    pace = RateLimiter(per_second=5, clock=stack.clock, pause=pause) if publish else None
    ports = RepublishEventsPorts(
        audit=stack.audit,
        images=stack.images,
        endpoints=stack.endpoints,
        batches=stack.batches,
        topic=stack.topic,
        edge=stack.edge,
    )
    return republish_events(ports, RepublishSelection(**{"since": 0} | wanted), pace=pace)


def published(stack: FakeStack) -> list[tuple[str, str]]:
    return [(event.type.value, event.tenant_id) for event in stack.topic.published]


@pytest.fixture
def stack() -> FakeStack:
    """An image of `acme`, deleted a minute after it was accepted, and one of `other` that came a minute later."""
    stack = FakeStack()
    first = stack.world.submit(jpeg(), tenant_id="acme").image.image_id
    stack.world.advance(60)
    stack.world.delete(first, "acme")
    stack.world.submit(jpeg(), tenant_id="other")
    return stack


@pytest.mark.guards("events-withdrawal-told-once")
def test_everything_that_rows_tell_is_published_with_the_ids_of_before(stack: FakeStack) -> None:
    run = republish(stack)
    assert published(stack) == [("image.accepted", "acme"), ("image.cancelled", "acme"), ("image.accepted", "other")]
    assert [event.sequence for event in stack.topic.published] == [1, 2, 1]
    assert (run.rows, run.events.total(), run.published) == (2, 3, 3)


@pytest.mark.guards("events-republished-with-urls")
def test_the_event_of_a_public_image_has_the_urls_that_it_had() -> None:
    stack = FakeStack(world=World(delivers=True, edge=EdgeUrls(base="https://d1.example")))
    image_id = stack.world.submit(jpeg(), visibility="public").image.image_id
    was = stack.world.row(image_id)
    stack.world.deliver(stack.world.lanes.sent[-1])
    told = event_of(was, stack.world.row(image_id), stack.edge)
    republish(stack, types=frozenset({"image.done"}))
    assert stack.topic.published == [told]
    assert told is not None and told.data["picture"]["url"].startswith("https://d1.example/public/")


def test_the_end_of_a_batch_is_published_as_well(stack: FakeStack) -> None:
    row = open_batch(batch_id_from_bits(bytes(16)), tenant_id="acme", now=stack.world.now)
    for after in (row, end(close(row, now=stack.world.now), NO_COUNTS, now=stack.world.now)):
        stack.batches.rows[row.batch_id] = after
        run = republish(stack, types=frozenset({"batch.completed"}))
    assert [event.event_id for event in stack.topic.published] == [f"{row.batch_id}-2"]
    assert (run.rows, published(stack)) == (3, [("batch.completed", "acme")])


def test_what_endpoints_tell_is_published_as_well(stack: FakeStack) -> None:
    row = Endpoint(tenant_id="acme", endpoint_id="we_0000000000000000", url="https://x", events=("*",), created_at=0)
    stack.endpoints.create(row)
    disabled = stack.endpoints.change(row, disable(row, DisabledBy.CLIENT, now=stack.world.now))
    run = republish(stack, types=frozenset({"webhook.disabled"}))
    assert [event.event_id for event in stack.topic.published] == [f"{row.endpoint_id}-{disabled.version}"]
    assert (run.rows, published(stack)) == (3, [("webhook.disabled", "acme")])


def test_without_a_pace_it_only_counts(stack: FakeStack) -> None:
    run = republish(stack, publish=False)
    assert (run.events, run.published, published(stack)) == ({"image.accepted": 2, "image.cancelled": 1}, 0, [])


@pytest.mark.parametrize(
    ("wanted", "count"),
    [
        ({"tenant_id": "acme"}, 2),
        ({"types": frozenset({"image.cancelled", "image.done"})}, 1),
        ({"since": 60_000}, 2),
        ({"until": 60_000}, 1),
        ({"since": 60_001}, 0),
        ({"since": 60_000, "tenant_id": "other", "types": frozenset({"image.accepted"})}, 1),
    ],
)
def test_only_what_is_wanted_is_published(stack: FakeStack, wanted: dict[str, Any], count: int) -> None:
    began = World().now
    times = {name: wanted[name] + began for name in ("since", "until") if name in wanted}
    assert republish(stack, **wanted | times).published == count == len(published(stack))


def test_an_outage_ends_it_and_it_can_be_repeated(stack: FakeStack) -> None:
    stack.topic.is_down = True
    with pytest.raises(Retryable):
        republish(stack)
    stack.topic.is_down = False
    assert republish(stack).published == 3


def test_what_cannot_be_read_or_is_refused_keeps_no_other_from_being_published(stack: FakeStack) -> None:
    unreadable = stack.world.submit(jpeg(40, 30)).image.image_id
    stack.world.images.unreadable[unreadable] = stack.world.images.rows.pop(unreadable)
    refused = stack.world.submit(jpeg(50, 30)).image.image_id
    stack.topic.refused = {refused}
    run = republish(stack)
    assert (run.published, [row.row_id for row in run.unreadable], list(run.refused)) == (
        3,
        [unreadable],
        [f"{refused}-1"],
    )


def test_it_pauses_between_hundreds() -> None:
    stack = FakeStack()
    image = stack.world.submit(jpeg()).image
    for number in range(1000, 1000 + 2 * AT_ONCE):
        stack.world.images.rows[f"{number:026d}"] = replace(image, image_id=f"{number:026d}")
    pauses: list[float] = []
    assert republish(stack, pauses=pauses).published == 2 * AT_ONCE + 1
    assert pauses == [0.2, 0.4], "this clock stands still"
