"""Deliveries to a wide endpoint: how many are on their way, and what they leave behind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from darkroom.domain.kernel.errors import Retryable
from darkroom.domain.webhooks.delivery import Answer, DeliveryMessage, DeliveryStatus
from darkroom.domain.webhooks.endpoint import (
    FLIGHT_SECONDS,
    LOOK_SECONDS,
    MAX_FLIGHTS,
    MOST_QUICK,
    QUICK_MILLISECONDS,
    QUICK_TO_WIDEN,
    RUNWAY_PLACES,
    RUNWAYS,
    Endpoint,
    InFlight,
    reserve_slot,
    runway_of,
)
from darkroom.domain.webhooks.endpoint_ids import place_of
from darkroom.operations.webhooks.manage_webhooks import Change, change_webhook
from tests.support.fakes.webhooks import OK, Request
from tests.support.fakes.world import TENANT, WebhooksWorld, event
from tests.support.faults import calls_of, failing, meanwhile

SLOW = Answer(milliseconds=QUICK_MILLISECONDS + 1, status=200, body="ok")
DOWN = Answer(milliseconds=9, status=500, body="no")
SILENT = Answer(milliseconds=15_000, error="timeout", was_too_slow=True)


def wide(world: WebhooksWorld, **stated: Any) -> Endpoint:
    """An endpoint that has done well for long."""
    made = world.add(f"https://hooks-{world.receipts}.example.com/")
    usual: dict[str, Any] = {
        "quick": MOST_QUICK,
        "widened_at": world.now,
        "last_success_at": world.now,
        "crowded_at": world.now,
    }
    row = replace(made, **usual | stated)
    world.endpoints.rows[TENANT, place_of(made.endpoint_id)] = row
    return row


def at_the_same_time(
    world: WebhooksWorld, messages: list[DeliveryMessage], answer: Callable[[Request], Answer] = lambda _: OK
) -> int:
    """Delivers the messages, each while those before it are on their way; returns how many were at most."""
    flying = most = 0

    def receive(request: Request) -> Answer:
        nonlocal flying, most
        flying += 1
        most = max(most, flying)
        while messages:
            world.deliver(messages.pop())
        flying -= 1
        return answer(request)

    world.receiver.behaves = receive
    while messages:
        world.deliver(messages.pop())
    world.receiver.behaves = answer
    return most


@pytest.fixture
def world() -> WebhooksWorld:
    return WebhooksWorld()


@pytest.fixture
def endpoint(world: WebhooksWorld) -> Endpoint:
    return wide(world)


def test_a_quick_endpoint_gets_more_than_four_at_a_time_once_something_has_to_wait(world: WebhooksWorld) -> None:
    endpoint = world.add()
    world.tell(*(event(number) for number in range(30)))
    assert at_the_same_time(world, world.take()) == MAX_FLIGHTS
    world.run()
    assert world.endpoint(endpoint).is_wide
    world.advance(10)
    world.tell(*(event(number) for number in range(100, 200)))
    assert MAX_FLIGHTS < at_the_same_time(world, world.take()) <= MAX_FLIGHTS + RUNWAYS * RUNWAY_PLACES
    world.run_for(60)
    assert {row.status for row in world.rows(endpoint)} == {DeliveryStatus.DELIVERED}
    assert len(world.receiver.requests) == 130


@pytest.mark.guards("webhook-runway-opens-if-crowded")
def test_an_endpoint_for_which_nothing_waits_stays_narrow(world: WebhooksWorld) -> None:
    endpoint = world.add()
    for number in range(QUICK_TO_WIDEN + 1):
        world.send(event(number))
    assert not world.endpoint(endpoint).is_wide


@pytest.mark.guards("webhook-runway-slowness-closes", case="slow")
@pytest.mark.parametrize(("answer", "times"), [(SLOW, 2), (DOWN, 1), (SILENT, 1)], ids=["slow", "failing", "silent"])
def test_an_endpoint_that_is_slow_or_fails_gets_four_at_a_time_again(answer: Answer, times: int) -> None:
    world = WebhooksWorld()
    endpoint = wide(world)
    for number in range(times):
        assert world.endpoint(endpoint).is_wide
        world.tell(event(number))
        world.receiver.behaves = lambda _: answer
        world.run()
    assert not world.endpoint(endpoint).is_wide
    world.tell(*(event(number) for number in range(10, 40)))
    assert at_the_same_time(world, world.take(), lambda _: answer) == MAX_FLIGHTS


@pytest.mark.guards("webhook-runway-failures-count-once")
def test_those_that_fail_together_on_runways_count_as_one_and_make_no_endpoint_rest() -> None:
    world = WebhooksWorld()
    endpoint = wide(world)
    world.tell(*(event(number) for number in range(10)))
    at_the_same_time(world, world.take(), lambda _: DOWN)
    row = world.endpoint(endpoint)
    assert (row.failures, row.rests_until) == (1, None)
    world.receiver.behaves = lambda _: OK
    world.run_for(600)
    assert {delivered.status for delivered in world.rows(endpoint)} == {DeliveryStatus.DELIVERED}


def test_one_that_fails_on_a_runway_is_tried_again_at_its_time(world: WebhooksWorld, endpoint: Endpoint) -> None:
    world.tell(event(1))
    world.receiver.behaves = lambda _: DOWN
    world.run()
    (row,) = world.rows(endpoint)
    assert (row.status, row.attempt, row.due_at) == (DeliveryStatus.WAITING, 1, world.now + 5000)
    world.receiver.behaves = lambda _: OK
    world.run_for(10)
    assert [attempt.status for attempt in world.rows(endpoint)[0].attempts] == [500, 200]


@pytest.mark.guards("webhook-runway-row-claim-excludes", case="narrow")
@pytest.mark.parametrize("becomes", ["wide", "narrow"])
def test_a_message_that_comes_twice_at_a_time_is_sent_once(becomes: str) -> None:
    world = WebhooksWorld()
    endpoint = wide(world)
    message = world.message_of(event(1))
    outcomes: list[str] = []

    def receive(_: Request) -> Answer:
        if becomes == "narrow":
            row = world.endpoint(endpoint)
            world.endpoints.change(row, replace(row, quick=0))
        outcomes.append(world.deliver(message).outcome)
        return OK

    world.receiver.behaves = receive
    assert world.deliver(message).outcome == "delivered"
    assert outcomes == ["leased"]
    assert len(world.receiver.requests) == 1
    assert world.endpoint(endpoint).flights == ()


def test_one_that_is_on_its_way_by_the_row_takes_no_runway(world: WebhooksWorld) -> None:
    endpoint = wide(world, quick=0)
    message = world.message_of(event(1))
    outcomes: list[str] = []

    def receive(_: Request) -> Answer:
        row = world.endpoint(endpoint)
        world.endpoints.change(row, replace(row, quick=MOST_QUICK))
        outcomes.append(world.deliver(message).outcome)
        return OK

    world.receiver.behaves = receive
    assert world.deliver(message).outcome == "delivered"
    assert outcomes == ["leased"]
    assert len(world.receiver.requests) == 1


def test_a_delivery_that_was_lost_on_its_runway_is_sent_after_a_minute() -> None:
    world = WebhooksWorld()
    endpoint = wide(world)
    message = world.message_of(event(1))
    lost = InFlight(
        delivery_id=message.delivery_id, claimed_by="somebody who died", until=world.now + FLIGHT_SECONDS * 1000
    )
    assert world.deliveries.take_place(endpoint.endpoint_id, lost, now=world.now, most=1) == "taken"
    assert world.deliver(message).outcome == "leased"
    world.run_for(3 * LOOK_SECONDS)
    assert [row.status for row in world.rows(endpoint)] == [DeliveryStatus.DELIVERED]


@pytest.mark.guards("webhook-runway-held-not-called", case="1")
@pytest.mark.guards("webhook-runway-held-others-later", case="2")
@pytest.mark.parametrize(("lost", "most"), [(1, 5), (2, 2 * FLIGHT_SECONDS)], ids=["1", "2"])
def test_those_that_were_lost_on_runways_do_not_call_one_another_until_their_time_is_over(lost: int, most: int) -> None:
    world = WebhooksWorld()
    endpoint = wide(world)
    world.tell(*(event(number) for number in range(lost)))
    until = world.now + FLIGHT_SECONDS * 1000
    for message in world.take():
        flight = InFlight(delivery_id=message.delivery_id, claimed_by="somebody who died", until=until)
        assert world.deliveries.take_place(endpoint.endpoint_id, flight, now=world.now, most=1) == "taken"
        row = world.endpoint(endpoint)
        world.endpoints.change(row, reserve_slot(row, message.delivery_id, now=world.now))
        world.delivery_queue.send(message)
    outcomes: list[str] = []
    while (messages := world.take()) and len(outcomes) < 20:
        outcomes += [world.deliver(message).outcome for message in messages]
    assert outcomes == ["leased"] * lost, "they call none that could do nothing either, or only after a second"
    outcomes += world.run_for(FLIGHT_SECONDS + LOOK_SECONDS)
    assert len(outcomes) <= most
    assert {row.status for row in world.rows(endpoint)} == {DeliveryStatus.DELIVERED}


def test_an_outage_at_the_end_of_a_claim_keeps_the_delivery_from_runways_for_a_minute() -> None:
    world, up = WebhooksWorld(), False
    throttled = Retryable("throttled")
    world.deliveries = failing(world.deliveries, "change", throttled, lambda before, after: not up)
    endpoint = wide(world, quick=0)
    message = world.message_of(event(1))
    with pytest.raises(Retryable):
        world.deliver(message)
    up = True
    row = world.endpoint(endpoint)
    world.endpoints.change(row, replace(row, quick=MOST_QUICK, flights=()))
    assert world.deliver(message).outcome == "leased"


def test_what_a_full_runway_does_not_take_goes_by_the_row(world: WebhooksWorld, endpoint: Endpoint) -> None:
    message = world.message_of(event(1))
    runway = world.deliveries.runways.setdefault((endpoint.endpoint_id, runway_of(message.delivery_id)), {})
    for number in range(RUNWAY_PLACES):
        flight = InFlight(delivery_id=f"another-{number}", claimed_by="w", until=world.now + 1)
        runway[flight.delivery_id] = flight
    assert world.deliver(message).outcome == "delivered"
    assert len(runway) == RUNWAY_PLACES


@pytest.mark.guards("webhook-runway-alone-at-host")
def test_an_endpoint_with_others_at_its_host_uses_no_runway(world: WebhooksWorld, endpoint: Endpoint) -> None:
    world.add(f"{endpoint.url}other")
    world.tell(*(event(number) for number in range(30)))
    messages = [message for message in world.take() if message.endpoint_id == endpoint.endpoint_id]
    assert at_the_same_time(world, messages) == MAX_FLIGHTS


@pytest.mark.guards("webhook-runway-row-rarely-written")
def test_while_all_is_well_the_row_is_written_once_a_minute(world: WebhooksWorld, endpoint: Endpoint) -> None:
    world.tell(*(event(number) for number in range(40)))
    messages = world.take()
    writes = calls_of(world.endpoints, "change")
    while messages[5:]:
        world.advance(1)
        world.deliver(messages.pop())
    assert writes == []
    world.advance(LOOK_SECONDS)
    while messages:
        world.deliver(messages.pop())
    assert len(writes) == 1
    assert world.endpoint(endpoint).last_success_at == world.now


def test_two_slow_ones_in_a_minute_are_too_many_and_one_in_each_is_not() -> None:
    world = WebhooksWorld()
    endpoint = wide(world)
    for number in range(5):
        world.receiver.behaves = lambda _: SLOW
        world.send(event(2 * number))
        world.advance(LOOK_SECONDS)
        world.receiver.behaves = lambda _: OK
        world.send(event(2 * number + 1))
        assert world.endpoint(endpoint).is_wide


@pytest.mark.guards("webhook-runway-look-calls", "webhook-runway-not-if-called")
def test_what_waits_at_a_wide_endpoint_without_messages_is_called_and_calls_the_next() -> None:
    world = WebhooksWorld()
    endpoint = wide(world)
    world.tell(*(event(number) for number in range(300)))
    world.take()  # and all are lost
    world.run_for(2 * LOOK_SECONDS)
    assert {row.status for row in world.rows(endpoint)} == {DeliveryStatus.DELIVERED}
    assert len(world.receiver.requests) == 300


@pytest.mark.guards("webhook-runway-kept-place-freed")
def test_a_place_that_the_row_kept_for_one_that_went_from_a_runway_is_free_again() -> None:
    world = WebhooksWorld()
    endpoint = wide(world)
    message = world.message_of(event(1))
    world.deliver(message)
    kept = InFlight(delivery_id=message.delivery_id, until=world.now + FLIGHT_SECONDS * 1000)
    row = world.endpoint(endpoint)
    world.endpoints.change(row, replace(row, flights=(kept,)))
    assert world.deliver(message).outcome == "ended"
    assert world.endpoint(endpoint).flights == ()


@pytest.mark.guards("webhook-new-url-no-points")
def test_of_another_address_nothing_is_known(world: WebhooksWorld, endpoint: Endpoint) -> None:
    change_webhook(world.manage(), TENANT, endpoint.endpoint_id, Change(url="https://other.example.com/"))
    assert not world.endpoint(endpoint).is_wide


@pytest.mark.guards("webhook-runway-healthy-row-only", case="stated0")
@pytest.mark.parametrize(
    "stated",
    [{"failing_since": 1}, {"successes": 5}, {"rests_until": 1}, {"quick": QUICK_TO_WIDEN - 1}, {"widened_at": None}],
)
def test_an_endpoint_that_an_older_version_saw_failing_is_not_wide(stated: dict[str, int | None]) -> None:
    assert not wide(WebhooksWorld(), **stated).is_wide


def test_an_attempt_on_a_runway_whose_row_goes_meanwhile_has_failed_and_is_not_given_up() -> None:
    world = WebhooksWorld()
    endpoint = wide(world)
    world.tell(event(1))
    (message,) = world.take()

    def receive(_: Request) -> Answer:
        world.deliveries.remove_all(endpoint.endpoint_id)
        return DOWN

    world.receiver.behaves = receive
    assert world.deliver(message).outcome == "failed"


@pytest.mark.guards("webhook-endpoints-read-once")
def test_the_endpoints_of_a_tenant_are_read_once_for_the_events_of_a_batch(world: WebhooksWorld) -> None:
    world.add()
    reads = calls_of(world.endpoints, "of_tenant")
    world.tell(*(event(number) for number in range(10)))
    assert len(reads) == 1


@pytest.mark.guards("webhook-runway-failure-closes")
def test_one_failure_takes_all_points(world: WebhooksWorld, endpoint: Endpoint) -> None:
    world.receiver.behaves = lambda _: DOWN
    world.send(event(1))
    world.receiver.behaves = lambda _: OK
    world.run_for(10)
    row = world.endpoint(endpoint)
    assert (row.failing_since, row.quick, row.is_wide) == (None, 1, False)


@pytest.mark.guards("webhook-endpoints-reread")
def test_endpoints_that_were_read_a_second_ago_are_read_again(world: WebhooksWorld) -> None:
    world.add()
    meanwhile(world.deliveries, "create", lambda _: world.advance(1))
    reads = calls_of(world.endpoints, "of_tenant")
    world.tell(event(1), event(2))
    assert len(reads) == 2


def test_the_sweeper_calls_no_more_than_there_is_room_for_at_a_host(world: WebhooksWorld, endpoint: Endpoint) -> None:
    world.add(f"{endpoint.url}other")
    world.tell(*(event(number) for number in range(10)))
    world.take()  # their messages are lost, so all of them wait
    world.advance(LOOK_SECONDS)
    world.sweep()
    assert world.endpoint(endpoint).flights == ()


def test_runways_fill_slowly_at_first() -> None:
    places = [wide(WebhooksWorld(), quick=quick).runway_places for quick in range(QUICK_TO_WIDEN, MOST_QUICK + 1)]
    assert places[0] == 1
    assert places == sorted(places)
    assert set(places) == set(range(1, RUNWAY_PLACES + 1))


@pytest.mark.guards("webhook-runway-slow-start")
def test_one_with_few_points_has_few_on_its_way(world: WebhooksWorld) -> None:
    wide(world, quick=QUICK_TO_WIDEN)
    world.tell(*(event(number) for number in range(60)))
    assert at_the_same_time(world, world.take(), lambda _: SLOW) == RUNWAYS + MAX_FLIGHTS
