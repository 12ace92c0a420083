"""What the writes of an endpoint's row tell."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from darkroom.aws.webhooks.endpoints_table import ENDPOINTS
from darkroom.domain.events.event import EventType, PublishedEvent, body_of
from darkroom.domain.kernel.instants import rfc3339
from darkroom.domain.webhooks.endpoint import (
    DISABLE_SECONDS,
    WARN_SECONDS,
    DisabledBy,
    Endpoint,
    disable,
    enable,
    fail,
    recover,
    rotate,
    succeed,
    wake,
)
from darkroom.domain.webhooks.row_events import event_of, events_of
from local_aws.event_patterns import passes
from repository.expand_template import resources
from tests.support.fakes.webhooks import FakeEndpoints

NOW = 1_795_251_600_000
ID = "we_3000000000000001"
MAPPING = resources("AWS::Lambda::EventSourceMapping")["PublishEventsFunctionEndpointsTable"]


def endpoint(**stated: Any) -> Endpoint:
    usual: dict[str, Any] = {"url": "https://shop.example.com/?token=hush", "events": ("*",), "created_at": NOW}
    return Endpoint(tenant_id="acme", endpoint_id=ID, **usual | stated)


def fails(row: Endpoint, seconds: int) -> Endpoint:
    """The row after another attempt has failed, so long after the first."""
    return fail(row, "d", is_first=True, retry_at=None, is_gone=False, now=NOW + seconds * 1000)


def published(before: Endpoint, after: Endpoint) -> PublishedEvent:
    event = event_of(before, after)
    assert event is not None
    return event


@pytest.mark.guards("events-endpoint-warning-once")
def test_an_endpoint_at_which_everything_fails_for_a_day_is_told_once() -> None:
    endpoints = FakeEndpoints()
    endpoints.create(endpoint())
    first = endpoints.change(endpoint(), fails(endpoint(), 0))
    warned = endpoints.change(first, fails(first, WARN_SECONDS))
    event = published(first, warned)
    assert (event.type, event.event_id, event.time) == (EventType.WEBHOOK_FAILING, f"{ID}-3", warned.warned_at)
    assert (event_of(endpoint(), first), event_of(warned, fails(warned, WARN_SECONDS + 9))) == (None, None)
    assert event.data == {
        "id": ID,
        "tenant_id": "acme",
        "failing_since": rfc3339(NOW),
        "links": {"self": f"/webhooks/{ID}", "deliveries": f"/webhooks/{ID}/deliveries"},
    }


def test_a_disabled_endpoint_is_told_with_the_reason_and_without_its_address() -> None:
    failing = fails(endpoint(), 0)
    for after, by in (
        (fails(failing, DISABLE_SECONDS), DisabledBy.FAILING),
        (disable(failing, DisabledBy.CLIENT, now=NOW + 7), DisabledBy.CLIENT),
        (fail(failing, "d", is_first=True, retry_at=None, is_gone=True, now=NOW + 7), DisabledBy.GONE),
    ):
        event = published(failing, after)
        assert (event.type, event.data["disabled_by"], event.time) == (
            EventType.WEBHOOK_DISABLED,
            by,
            after.disabled_at,
        )
        body = json.loads(body_of(event, source="/darkroom/prod"))
        assert (body["subject"], body["sequence"]) == (ID, "2")
        assert "hush" not in json.dumps(body)


def test_an_endpoint_that_is_new_or_gone_tells_nothing() -> None:
    row = disable(endpoint(), DisabledBy.CLIENT, now=NOW)
    assert (event_of(None, endpoint()), event_of(row, None), event_of(None, None)) == (None, None, None)


type Write = Callable[[Endpoint, int], Endpoint]

WRITES: dict[str, Write] = {
    "fail": lambda row, now: fail(row, "d", is_first=True, retry_at=now + 5_000, is_gone=False, now=now),
    "gone": lambda row, now: fail(row, "d", is_first=True, retry_at=None, is_gone=True, now=now),
    "succeed": lambda row, now: succeed(row, "d", milliseconds=5, now=now),
    "enable": lambda row, now: enable(row, now=now),
    "disable": lambda row, now: disable(row, DisabledBy.CLIENT, now=now),
    "recover": lambda row, now: recover(row, since=NOW, now=now),
    "rotate": lambda row, now: rotate(row, now=now) or row,
    "wake": lambda row, now: wake(row, now, now=now),
}


@pytest.mark.guards("events-endpoint-disabling-once")
@given(writes=st.lists(st.tuples(st.sampled_from(sorted(WRITES)), st.sampled_from([1, 3600, 30 * 3600])), max_size=30))
def test_whatever_is_written_the_row_can_tell_it_again_and_the_filter_lets_it_through(
    writes: list[tuple[str, int]],
) -> None:
    endpoints, row, now = FakeEndpoints(), endpoint(), NOW
    endpoints.create(row)
    events: list[PublishedEvent] = []
    for name, seconds in writes:
        now += seconds * 1000
        written = endpoints.change(row, WRITES[name](row, now))
        event = event_of(row, written)
        stream = {"OldImage": ENDPOINTS.item_of(row), "NewImage": ENDPOINTS.item_of(written)}
        assert passes(MAPPING["FilterCriteria"]["Filters"], {"dynamodb": stream}) == (event is not None)
        if written.warned_at is None and written.is_enabled:
            events.clear()  # what it told before is over
        events += [event] if event else []
        row = written
    assert len({event.event_id for event in events}) == len(events), "an id names one event"
    assert {event.event_id: (event.type, event.time) for event in events_of(row)}.items() <= {
        event.event_id: (event.type, event.time) for event in events
    }.items()
    assert len(list(events_of(row))) == (row.warned_at is not None) + (not row.is_enabled)
