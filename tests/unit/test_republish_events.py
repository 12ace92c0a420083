"""Publishing events again from rows."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from darkroom.domain.kernel.errors import Retryable
from darkroom.domain.webhooks.endpoint import DisabledBy, Endpoint, disable
from darkroom_cli.operator.operations.events.republish_events import (
    AT_ONCE,
    RepublishEventsPorts,
    Republishing,
    RepublishSelection,
    republish_events,
)
from darkroom_cli.operator.operations.kernel.rate_limiter import RateLimiter
from tests.support.fakes import World
from tests.support.fakes.audit import trail_of
from tests.support.fakes.events import FakeTopic
from tests.support.fakes.pictures import jpeg
from tests.support.fakes.webhooks import FakeEndpoints


@dataclass
class Stack:
    world: World = field(default_factory=World)
    endpoints: FakeEndpoints = field(default_factory=FakeEndpoints)
    topic: FakeTopic = field(default_factory=FakeTopic)
    pauses: list[float] = field(default_factory=list)

    def republish(self, *, publish: bool = True, **wanted: Any) -> Republishing:
        pace = RateLimiter(per_second=5, clock=self.world.clock, pause=self.pauses.append) if publish else None
        ports = RepublishEventsPorts(
            audit=trail_of(), images=self.world.images, endpoints=self.endpoints, topic=self.topic
        )
        return republish_events(ports, RepublishSelection(**{"since": 0} | wanted), pace=pace)

    @property
    def published(self) -> list[tuple[str, str]]:
        return [(event.type.value, event.tenant_id) for event in self.topic.published]


@pytest.fixture
def stack() -> Stack:
    """An image of `acme`, deleted a minute after it was accepted, and one of `other` that came a minute later."""
    stack = Stack()
    first = stack.world.submit(jpeg(), tenant_id="acme").image.image_id
    stack.world.advance(60)
    stack.world.delete(first, "acme")
    stack.world.submit(jpeg(), tenant_id="other")
    return stack


@pytest.mark.guards("events-withdrawal-told-once")
def test_everything_that_rows_tell_is_published_with_the_ids_of_before(stack: Stack) -> None:
    run = stack.republish()
    assert stack.published == [("image.accepted", "acme"), ("image.cancelled", "acme"), ("image.accepted", "other")]
    assert [event.sequence for event in stack.topic.published] == [1, 2, 1]
    assert (run.rows, run.events.total(), run.published) == (2, 3, 3)


def test_what_endpoints_tell_is_published_as_well(stack: Stack) -> None:
    row = Endpoint(tenant_id="acme", endpoint_id="we_0000000000000000", url="https://x", events=("*",), created_at=0)
    stack.endpoints.create(row)
    disabled = stack.endpoints.change(row, disable(row, DisabledBy.CLIENT, now=stack.world.now))
    run = stack.republish(types=frozenset({"webhook.disabled"}))
    assert [event.event_id for event in stack.topic.published] == [f"{row.endpoint_id}-{disabled.version}"]
    assert (run.rows, stack.published) == (3, [("webhook.disabled", "acme")])


def test_without_a_pace_it_only_counts(stack: Stack) -> None:
    run = stack.republish(publish=False)
    assert (run.events, run.published, stack.published) == ({"image.accepted": 2, "image.cancelled": 1}, 0, [])


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
def test_only_what_is_wanted_is_published(stack: Stack, wanted: dict[str, Any], count: int) -> None:
    began = World().now
    times = {name: wanted[name] + began for name in ("since", "until") if name in wanted}
    assert stack.republish(**wanted | times).published == count == len(stack.published)


def test_an_outage_ends_it_and_it_can_be_repeated(stack: Stack) -> None:
    stack.topic.is_down = True
    with pytest.raises(Retryable):
        stack.republish()
    stack.topic.is_down = False
    assert stack.republish().published == 3


def test_what_cannot_be_read_or_is_refused_keeps_no_other_from_being_published(stack: Stack) -> None:
    unreadable = stack.world.submit(jpeg(40, 30)).image.image_id
    stack.world.images.unreadable[unreadable] = stack.world.images.rows.pop(unreadable)
    refused = stack.world.submit(jpeg(50, 30)).image.image_id
    stack.topic.refused = {refused}
    run = stack.republish()
    assert (run.published, [row.row_id for row in run.unreadable], list(run.refused)) == (
        3,
        [unreadable],
        [f"{refused}-1"],
    )


def test_it_pauses_between_hundreds() -> None:
    stack = Stack()
    image = stack.world.submit(jpeg()).image
    for number in range(1000, 1000 + 2 * AT_ONCE):
        stack.world.images.rows[f"{number:026d}"] = replace(image, image_id=f"{number:026d}")
    assert stack.republish().published == 2 * AT_ONCE + 1
    assert stack.pauses == [0.2, 0.4], "this clock stands still"
