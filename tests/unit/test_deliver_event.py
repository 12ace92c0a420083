"""Delivering events to endpoints: from the event to the receiver's answer."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import pytest

from darkroom.domain.kernel.errors import Retryable
from darkroom.domain.webhooks.delivery import (
    JITTER,
    LEASE_SECONDS,
    MAX_ATTEMPTS,
    RETRY_SECONDS,
    Answer,
    Delivery,
    DeliveryMessage,
    DeliveryStatus,
    blank,
    event_id_of,
    message_for,
)
from darkroom.domain.webhooks.endpoint import (
    DISABLE_SECONDS,
    FAILURES_TO_REST,
    FLIGHT_SECONDS,
    MAX_FLIGHTS,
    RAMP_SUCCESSES,
    ROTATION_SECONDS,
    WARN_SECONDS,
    DisabledBy,
    Endpoint,
    EndpointState,
    InFlight,
    disable,
    in_flight,
    pause,
    resume,
    scout_of,
)
from darkroom.domain.webhooks.endpoint_ids import place_of
from darkroom.domain.webhooks.webhook_signature import ID_HEADER, SIGNATURE_HEADER, TIMESTAMP_HEADER
from darkroom.operations.webhooks.change_endpoint import change_endpoint
from darkroom.operations.webhooks.manage_webhooks import (
    Change,
    change_webhook,
    list_webhooks,
    ping_webhook,
    recover_webhook,
    remove_webhook,
    resend_delivery,
    rotate_secret,
)
from darkroom.ports.kernel import Fenced, UnreadableRow
from darkroom.ports.webhooks import DueDelivery
from tests.failures import ANY_FAILURE
from tests.support.fakes.webhooks import OK, FakeDeliveries, FakeEndpoints, Request
from tests.support.fakes.world import TENANT, WebhooksWorld, event
from tests.support.faults import failing, meanwhile, raising

DOWN = Answer(milliseconds=9, status=500, body="no")
HOUR = 3600


def fails(_: Request) -> Answer:
    return DOWN


def signatures(request: Request) -> list[str]:
    return request.headers[SIGNATURE_HEADER].split(" ")


def expected_signature(secret: str, request: Request) -> str:
    key = base64.b64decode(secret.removeprefix("whsec_"))
    signed = f"{request.headers[ID_HEADER]}.{request.headers[TIMESTAMP_HEADER]}.".encode() + request.body
    return "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()


@pytest.fixture
def world() -> WebhooksWorld:
    return WebhooksWorld()


@pytest.fixture
def endpoint(world: WebhooksWorld) -> Endpoint:
    return world.add()


def test_an_event_goes_to_each_endpoint_that_wants_its_type(world: WebhooksWorld) -> None:
    world.add("https://a.example.com/", events=("image.done",))
    world.add("https://b.example.com/", events=("image.*",))
    world.add("https://c.example.com/", events=("image.failed", "webhook.*"))
    assert world.tell(event()).deliveries == 2
    assert world.run() == ["delivered", "delivered"]
    assert sorted(request.url for request in world.receiver.requests) == [
        "https://a.example.com/",
        "https://b.example.com/",
    ]


def test_a_request_has_the_events_id_bytes_and_a_signature(world: WebhooksWorld, endpoint: Endpoint) -> None:
    _, secret = rotate_secret(world.manage(), TENANT, endpoint.endpoint_id)
    world.send(event())
    (request,) = world.receiver.requests
    assert request.headers[ID_HEADER] == event().event_id == json.loads(request.body)["id"]
    assert request.headers[TIMESTAMP_HEADER] == str(world.now // 1000)
    assert request.headers["Content-Type"] == "application/json"
    assert signatures(request)[0] == expected_signature(secret, request)


@pytest.mark.guards("webhook-replaced-secret-signs")
def test_both_secrets_sign_for_a_day_after_a_rotation(world: WebhooksWorld, endpoint: Endpoint) -> None:
    _, first = rotate_secret(world.manage(), TENANT, endpoint.endpoint_id)
    world.advance(ROTATION_SECONDS)
    _, second = rotate_secret(world.manage(), TENANT, endpoint.endpoint_id)
    world.send(event(1))
    world.advance(ROTATION_SECONDS)
    world.send(event(2))
    during, after = world.receiver.requests
    assert signatures(during) == [expected_signature(second, during), expected_signature(first, during)]
    assert signatures(after) == [expected_signature(second, after)]


@pytest.mark.guards("webhook-delivery-ended-not-resent")
def test_an_event_that_comes_twice_is_delivered_once(world: WebhooksWorld) -> None:
    world.add()
    world.tell(event(), event())
    world.tell(event())
    assert sorted(world.run()) == ["delivered", "ended", "ended"] or len(world.receiver.requests) == 1
    world.send(event())
    assert len(world.receiver.requests) == 1


def test_an_event_that_cannot_be_noted_fails_alone(world: WebhooksWorld) -> None:
    world.add()
    throttled, second = Retryable("throttled"), event(2).event_id
    world.deliveries = failing(world.deliveries, "create", throttled, lambda delivery: delivery.event_id == second)
    created = world.tell(event(1), event(2), event(3))
    assert (created.deliveries, list(created.failures)) == (2, [1])


@pytest.mark.guards("webhook-event-one-endpoint")
def test_an_event_for_one_endpoint_goes_to_no_other(world: WebhooksWorld) -> None:
    world.add("https://a.example.com/")
    chosen = world.add("https://b.example.com/")
    world.send(event(notify=chosen.endpoint_id))
    assert [request.url for request in world.receiver.requests] == ["https://b.example.com/"]


def test_another_tenants_endpoint_hears_nothing(world: WebhooksWorld) -> None:
    world.add()
    assert world.tell(event(tenant_id="other")).deliveries == 0


def test_a_failed_delivery_is_tried_ten_times_at_its_times(world: WebhooksWorld, endpoint: Endpoint) -> None:
    world.receiver.behaves = fails
    world.send(event())
    world.run_for(80 * HOUR)
    (row,) = world.rows(endpoint)
    assert row.status is DeliveryStatus.FAILED
    assert [attempt.number for attempt in row.attempts] == list(range(1, MAX_ATTEMPTS + 1))
    started = [attempt.started_at for attempt in row.attempts]
    waits = [(later - earlier) / 1000 for earlier, later in pairwise(started)]
    for wait, usual in zip(waits, RETRY_SECONDS, strict=True):
        assert usual * (1 - JITTER) <= wait <= usual * (1 + JITTER) + 61, (wait, usual)


@pytest.mark.parametrize("unit_random", [0.0, 0.999])
def test_waits_differ_by_a_fifth_at_most(unit_random: float) -> None:
    world = WebhooksWorld(random=lambda: unit_random)
    endpoint = world.add()
    world.receiver.behaves = fails
    world.send(event())
    (row,) = world.rows(endpoint)
    assert row.due_at is not None
    wait = (row.due_at - world.now) / 1000
    assert wait == pytest.approx(RETRY_SECONDS[0] * (1 - JITTER + 2 * JITTER * unit_random), abs=0.001)


@pytest.mark.parametrize(
    ("answer", "wait"),
    [
        (Answer(milliseconds=1, status=503, retry_after_seconds=60), 60),
        (Answer(milliseconds=1, status=503, retry_after_seconds=100_000), RETRY_SECONDS[1]),
        (Answer(milliseconds=1, status=503, retry_after_seconds=1), RETRY_SECONDS[0]),
        (Answer(milliseconds=1, status=429), 60),
        (Answer(milliseconds=15_000, error="timeout", was_too_slow=True), 60),
    ],
)
def test_a_receiver_that_needs_a_pause_gets_one(answer: Answer, wait: int) -> None:
    world = WebhooksWorld()
    endpoint = world.add()
    world.receiver.behaves = lambda _: answer
    world.send(event())
    (row,) = world.rows(endpoint)
    assert row.due_at == world.now + wait * 1000


def test_a_redirect_is_a_failure(world: WebhooksWorld) -> None:
    world.add()
    world.receiver.behaves = lambda _: Answer(milliseconds=1, status=302)
    assert world.send(event()) == ["failed"]


def test_an_attempt_is_described_with_the_beginning_of_its_response(world: WebhooksWorld, endpoint: Endpoint) -> None:
    world.receiver.behaves = lambda _: Answer(milliseconds=7, status=500, body="x" * 5000)
    world.send(event())
    (attempt,) = world.rows(endpoint)[0].attempts
    assert (attempt.status, attempt.milliseconds, attempt.response) == (500, 7, "x" * 1024)


def test_at_most_four_deliveries_are_on_their_way_to_an_endpoint(world: WebhooksWorld, endpoint: Endpoint) -> None:
    most = 0

    def receive(_: Request) -> Answer:
        nonlocal most
        flying = len(in_flight(world.endpoint(endpoint), now=world.now))
        most = max(most, flying)
        while messages:  # the others arrive while this one is on its way
            world.deliver(messages.pop())
        return OK

    world.receiver.behaves = receive
    world.tell(*(event(number) for number in range(30)))
    messages = world.take()
    world.deliver(messages.pop())
    world.run()
    assert most == MAX_FLIGHTS
    assert {row.status for row in world.rows(endpoint)} == {DeliveryStatus.DELIVERED}
    assert len(world.receiver.requests) == 30


@pytest.mark.guards("webhook-called-takes-kept-place")
def test_what_found_no_room_is_called_when_there_is_some(world: WebhooksWorld, endpoint: Endpoint) -> None:
    row = world.endpoint(endpoint)
    world.tell(*(event(number) for number in range(6)))
    messages = world.take()
    held: list[Request] = []

    def hold(request: Request) -> Answer:
        held.append(request)
        if len(held) <= MAX_FLIGHTS - 1:
            world.deliver(messages[len(held)])
        elif len(held) == MAX_FLIGHTS:
            assert [world.deliver(message).outcome for message in messages[MAX_FLIGHTS:]] == ["busy", "busy"]
        return OK

    world.receiver.behaves = hold
    world.deliver(messages[0])
    assert len(held) == MAX_FLIGHTS
    world.run()  # nobody but those that ended has sent these
    assert len(world.receiver.requests) == 6
    world.run_for(60)
    assert world.endpoint(row).crowded_at is None


@dataclass
class SlowEndpoints(FakeEndpoints):
    """Gives the next reader the row of before: it has read then, and only now goes on."""

    before: Endpoint | None = None

    def of_tenant(self, tenant_id: str) -> Sequence[Endpoint | UnreadableRow]:
        before, self.before = self.before, None
        return super().of_tenant(tenant_id) if before is None else [before]


@dataclass
class SlowDeliveries(FakeDeliveries):
    """The same for deliveries."""

    before: Delivery | None = None

    def get(self, endpoint_id: str, delivery_id: str) -> Delivery | None:
        before, self.before = self.before, None
        return before or super().get(endpoint_id, delivery_id)


@dataclass
class LateIndex(FakeDeliveries):
    """Its index of due times shows a write so many seconds later."""

    world: WebhooksWorld = field(default_factory=WebhooksWorld)
    seconds: float = 3
    writes: list[tuple[int, DueDelivery, bool]] = field(default_factory=list)

    def create(self, delivery: Delivery) -> Delivery:
        kept = super().create(delivery)
        self._write(kept, is_there=True)
        return kept

    def change(self, before: Delivery, after: Delivery) -> Delivery:
        written = super().change(before, after)
        self._write(before, is_there=False)
        self._write(written, is_there=True)
        return written

    def _write(self, row: Delivery, *, is_there: bool) -> None:
        if row.due_at is not None:
            self.writes.append((self.world.now, DueDelivery(row.due_at, row.delivery_id), is_there))

    def due(self, endpoint_id: str, limit: int) -> Sequence[DueDelivery]:
        shown: set[DueDelivery] = set()
        for at, entry, is_there in self.writes:
            if at <= self.world.now - self.seconds * 1000:
                (shown.add if is_there else shown.discard)(entry)
        return sorted(shown)[:limit]


def world_with_a_late_index() -> WebhooksWorld:
    world = WebhooksWorld()
    world.deliveries = LateIndex(world=world)
    return world


def fill(world: WebhooksWorld, messages: list[DeliveryMessage]) -> list[str]:
    """Delivers four at the same time, and lets the others arrive meanwhile; returns what came of these."""
    outcomes: list[str] = []
    begun = 0

    def receive(_: Request) -> Answer:
        nonlocal begun
        begun += 1
        if begun < MAX_FLIGHTS:
            world.deliver(messages[begun])
        elif begun == MAX_FLIGHTS:
            outcomes.extend(world.deliver(message).outcome for message in messages[MAX_FLIGHTS:])
        return OK

    world.receiver.behaves = receive
    world.deliver(messages[0])
    return outcomes


@pytest.mark.guards("webhook-index-lag-looks-again")
def test_what_found_no_room_is_called_even_if_the_index_is_seconds_behind() -> None:
    world = world_with_a_late_index()
    endpoint = world.add()
    world.tell(*(event(number) for number in range(12)))
    assert fill(world, world.take()) == ["busy"] * 8
    world.run_for(8)
    assert len(world.receiver.requests) == 12
    assert {row.status for row in world.rows(endpoint)} == {DeliveryStatus.DELIVERED}
    world.run_for(40)
    assert world.endpoint(endpoint).crowded_at is None, "before the sweeper has looked"
    assert world.delivery_queue.sent == []


@pytest.mark.guards("webhook-ended-not-called")
def test_what_has_just_ended_is_not_called_because_the_index_still_lists_it() -> None:
    world = world_with_a_late_index()
    world.add()
    world.tell(*(event(number) for number in range(6)))
    messages = world.take()
    world.advance(5)
    assert fill(world, messages) == ["busy"] * 2
    assert [world.deliver(message).outcome for message in world.take()] == ["delivered"] * 2
    assert world.run() == []


@pytest.mark.guards("webhook-called-room-bound")
def test_however_many_call_no_more_are_called_than_there_is_room_for() -> None:
    world = WebhooksWorld(endpoints=SlowEndpoints())
    endpoint = world.add()
    world.tell(*(event(number) for number in range(40)))
    messages = world.take()
    assert set(fill(world, messages[:6])) == {"busy"}
    assert len(world.take()) == MAX_FLIGHTS, "called by those that ended"
    for _ in range(5):  # duplicates of the first message
        world.endpoints.before = replace(world.endpoint(endpoint), flights=(), version=1)
        assert world.deliver(messages[0]).outcome == "ended"
    assert world.take() == []
    assert world.deliver(messages[-1]).outcome == "busy", "the places are kept"
    assert len(in_flight(world.endpoint(endpoint), now=world.now)) == MAX_FLIGHTS


def test_a_place_is_kept_for_a_minute_if_the_message_is_lost(world: WebhooksWorld, endpoint: Endpoint) -> None:
    world.tell(*(event(number) for number in range(9)))
    fill(world, world.take())
    world.take()
    world.run_for(3 * 60)
    assert {row.status for row in world.rows(endpoint)} == {DeliveryStatus.DELIVERED}


@pytest.mark.guards("webhook-refused-place-returned")
def test_a_called_delivery_that_may_not_go_any_more_gives_its_place_back() -> None:
    world = WebhooksWorld()
    endpoint = world.add()
    world.tell(*(event(number) for number in range(6)))
    fill(world, world.take())
    called = world.take()
    assert len(called) == 2
    change_webhook(world.manage(), TENANT, endpoint.endpoint_id, Change(is_enabled=False))
    assert [world.deliver(message).outcome for message in called] == ["disabled"] * 2
    assert world.endpoint(endpoint).flights == ()


@pytest.mark.guards("webhook-resting-endpoint-one-probe")
def test_an_endpoint_that_fails_rests_and_one_delivery_tries_it(world: WebhooksWorld, endpoint: Endpoint) -> None:
    world.receiver.behaves = fails
    world.tell(*(event(number) for number in range(10)))
    outcomes = world.run()
    assert outcomes.count("failed") == FAILURES_TO_REST + 1, "and one other, in case that it is only these"
    row = world.endpoint(endpoint)
    assert row.probe == world.rows(endpoint)[0].delivery_id
    before = len(world.receiver.requests)
    world.run_for(4 * 60)
    assert [row.attempt for row in world.rows(endpoint)].count(0) == 5
    assert len(world.receiver.requests) == before + 2, "after five seconds, the oldest, and one other"
    world.receiver.behaves = lambda _: OK
    world.run_for(10 * 60)
    assert {delivered.status for delivered in world.rows(endpoint)} == {DeliveryStatus.DELIVERED}
    assert world.endpoint(endpoint).rests_until is None


def refuses(*numbers: int) -> Callable[[Request], Answer]:
    """A receiver that cannot take these events."""
    ids = {event(number).event_id for number in numbers}
    return lambda request: DOWN if request.headers[ID_HEADER] in ids else OK


@pytest.mark.guards("webhook-retries-cause-no-rest")
def test_an_event_that_always_fails_holds_up_no_other(world: WebhooksWorld, endpoint: Endpoint) -> None:
    world.receiver.behaves = refuses(1)
    world.tell(event(1))
    for number in range(2, 100):  # through all of its attempts
        world.run_for(HOUR)
        world.send(event(number))
        assert world.rows(endpoint)[-1].status is DeliveryStatus.DELIVERED
        assert world.endpoint(endpoint).rests_until is None
    assert world.rows(endpoint)[0].status is DeliveryStatus.FAILED


@pytest.mark.guards("webhook-probe-failure-calls-other")
def test_events_that_always_fail_hold_up_others_until_one_of_them_is_tried() -> None:
    world = WebhooksWorld()
    endpoint = world.add()
    world.receiver.behaves = refuses(1, 2, 3)
    world.send(event(1), event(2), event(3))
    assert world.endpoint(endpoint).rests_until is not None
    world.run_for(100)  # all three have been due before the others come
    assert world.send(event(4), event(5)) == []
    world.run_for(4 * 60)
    assert world.endpoint(endpoint).rests_until is None
    assert [row.status for row in world.rows(endpoint)[3:]] == [DeliveryStatus.DELIVERED] * 2


@pytest.mark.guards("webhook-called-may-pass-rest", "webhook-rest-begin-calls-other")
def test_events_that_always_fail_hold_up_nothing_that_waits_already(world: WebhooksWorld, endpoint: Endpoint) -> None:
    world.receiver.behaves = refuses(1, 2, 3)
    world.send(*(event(number) for number in range(1, 7)))
    assert [row.status for row in world.rows(endpoint)[3:]] == [DeliveryStatus.DELIVERED] * 3


@pytest.mark.guards("webhook-resting-newest-called")
def test_many_events_that_always_fail_hold_up_no_newer_one_for_long(world: WebhooksWorld, endpoint: Endpoint) -> None:
    bad = range(1, 21)
    world.receiver.behaves = refuses(*bad)
    world.send(*(event(number) for number in bad))
    world.run_for(100)
    world.send(event(21))
    world.run_for(5 * 60)
    assert world.rows(endpoint)[-1].status is DeliveryStatus.DELIVERED


@pytest.mark.guards("webhook-resting-few-attempts-first")
def test_of_those_that_wait_at_a_resting_endpoint_one_with_few_attempts_is_called() -> None:
    world = WebhooksWorld()
    endpoint = world.add()
    world.receiver.behaves = fails
    world.send(*(event(number) for number in range(6)))
    world.run_for(20 * 60)  # all have waited long enough for their next attempts
    attempts = [row.attempt for row in world.rows(endpoint)[1:]]
    assert max(attempts) - min(attempts) <= 1


@pytest.mark.guards("webhook-resting-one-other-called")
def test_an_endpoint_that_rests_is_tried_by_one_other_at_a_time(world: WebhooksWorld) -> None:
    world.add()
    world.receiver.behaves = fails
    world.tell(*(event(number) for number in range(10)))
    messages = world.take()
    for message in messages[:FAILURES_TO_REST]:
        world.deliver(message)
    (called,) = world.take()

    def hang(_: Request) -> Answer:
        world.receiver.behaves = fails
        world.advance(10)
        assert world.deliver(messages[0]).outcome == "failed", "the one that tries it"
        return DOWN

    world.receiver.behaves = hang
    assert world.deliver(called).outcome == "failed"
    assert world.take() == []


@pytest.mark.guards("webhook-call-expires")
def test_a_call_that_comes_too_late_is_none_any_more(world: WebhooksWorld) -> None:
    world.add()
    world.receiver.behaves = fails
    world.tell(*(event(number) for number in range(FAILURES_TO_REST + 1)))
    *messages, last = world.take()
    for message in messages:
        world.deliver(message)
    assert world.take() == [last]
    world.advance(FLIGHT_SECONDS)  # another may have been called since
    assert world.deliver(last).outcome == "resting"


@pytest.mark.guards("webhook-oldest-failed-is-probe", "webhook-sweep-respects-rest")
@pytest.mark.parametrize("is_lost", [False, True])
def test_the_oldest_that_has_failed_tries_at_its_own_times(is_lost: bool) -> None:
    world = WebhooksWorld()
    endpoint = world.add()
    world.receiver.behaves = fails
    world.send(event(1))
    world.run_for(100)  # it has failed twice, and is due in 205 seconds
    world.send(event(2), event(3))
    oldest = world.rows(endpoint)[0]
    row = world.endpoint(endpoint)
    assert (row.probe, row.rests_until) == (oldest.delivery_id, oldest.due_at)
    if is_lost:
        world.delivery_queue.sent.clear()
    world.run_for(206 + 60 * is_lost)
    assert world.rows(endpoint)[0].attempt == 3


@pytest.mark.guards("webhook-older-than-probe-tries", "webhook-probe-times-kept")
def test_one_that_is_older_than_the_one_that_tries_tries_as_well_and_does_not_take_its_place() -> None:
    world = WebhooksWorld()
    endpoint = world.add()
    world.receiver.behaves = refuses(1)
    world.send(event(1))
    world.run_for(100)
    world.receiver.behaves = lambda _: OK
    world.tell(event(2))  # until here, one event alone fails
    world.run()
    world.receiver.behaves = fails
    world.send(event(3), event(4), event(5))
    world.run_for(206)
    oldest, _, first_of_all = world.rows(endpoint)[:3]
    assert (oldest.attempt, world.endpoint(endpoint).probe) == (3, first_of_all.delivery_id)


@pytest.mark.guards("webhook-probe-first-attempt-only")
def test_after_a_short_outage_nothing_waits_for_an_event_that_is_always_refused() -> None:
    world = WebhooksWorld()
    endpoint = world.add()
    world.receiver.behaves = refuses(1)
    world.send(event(1))
    world.run_for(HOUR)
    world.send(event(2))
    while world.rows(endpoint)[0].attempt < 5:
        world.run_for(60)
    assert (world.rows(endpoint)[0].due_at or 0) - world.now > HOUR * 1000, "it has just been refused again"
    world.receiver.behaves = fails
    world.send(event(3), event(4), event(5))
    assert world.endpoint(endpoint).rests_until is not None
    world.run_for(60)
    world.receiver.behaves = refuses(1)
    world.tell(event(6))
    world.run_for(10 * 60)
    assert [row.status for row in world.rows(endpoint)[1:]] == [DeliveryStatus.DELIVERED] * 5


@pytest.mark.guards("webhook-sweep-sends-oldest")
def test_the_sweeper_has_the_one_that_tries_sent_and_the_oldest(world: WebhooksWorld, endpoint: Endpoint) -> None:
    world.receiver.behaves = fails
    world.send(event(1))
    world.run_for(100)
    world.receiver.behaves = lambda _: OK
    world.send(event(2))
    world.receiver.behaves = fails
    world.send(event(3), event(4), event(5))
    world.delivery_queue.sent.clear()  # all messages are lost
    world.advance(10 * 60)
    assert world.sweep().outcomes["sent"] == 1
    oldest, _, first_of_all, *_ = [row.delivery_id for row in world.rows(endpoint)]
    assert [message.delivery_id for message in world.take()] == [first_of_all, oldest]


@pytest.mark.guards("webhook-endpoint-flight-limit", "webhook-resting-flight-limit")
def test_at_most_two_deliveries_are_on_their_way_to_an_endpoint_that_rests() -> None:
    world = WebhooksWorld()
    endpoint = world.add()
    world.receiver.behaves = fails
    world.tell(*(event(number) for number in range(9)))
    messages = world.take()
    for message in messages[:FAILURES_TO_REST]:
        world.deliver(message)
    world.take()  # the one that was called is lost
    world.advance(61)
    outcomes: list[str] = []

    def hang(_: Request) -> Answer:
        while messages:
            outcomes.append(world.deliver(messages.pop()).outcome)
        return DOWN

    world.receiver.behaves = hang
    ping_webhook(world.manage(), TENANT, endpoint.endpoint_id)  # the newest tries it, and all others are older
    (ping,) = world.take()
    assert world.deliver(ping).outcome == "failed"
    assert outcomes.count("failed") == 1
    assert set(outcomes) == {"failed", "busy"}


def test_after_a_rest_an_endpoint_is_filled_slowly(world: WebhooksWorld, endpoint: Endpoint) -> None:
    world.receiver.behaves = fails
    world.send(*(event(number) for number in range(60)))
    flying: list[int] = []

    def receive(_: Request) -> Answer:
        flying.append(len(in_flight(world.endpoint(endpoint), now=world.now)))
        for message in world.take():
            world.deliver(message)
        return OK

    world.receiver.behaves = receive
    world.run_for(20 * 60)
    assert {row.status for row in world.rows(endpoint)} == {DeliveryStatus.DELIVERED}
    assert max(flying[:RAMP_SUCCESSES]) == 1
    assert max(flying) > 1


def test_an_endpoint_in_which_everything_fails_is_noted_after_a_day_and_disabled_after_five() -> None:
    world = WebhooksWorld()
    endpoint = world.add()
    world.receiver.behaves = fails
    world.send(event(1), event(2), event(3))
    world.run_for(WARN_SECONDS - HOUR)
    assert world.endpoint(endpoint).warned_at is None
    world.run_for(30 * HOUR)
    assert world.endpoint(endpoint).warned_at is not None
    world.run_for(DISABLE_SECONDS)
    row = world.endpoint(endpoint)
    assert (row.state, row.disabled_by) == (EndpointState.DISABLED, DisabledBy.FAILING)
    assert row.failing_since is not None
    assert row.disabled_at is not None
    assert row.disabled_at - row.failing_since >= DISABLE_SECONDS * 1000


@pytest.mark.guards("webhook-disabled-endpoint-refused")
def test_410_disables_an_endpoint(world: WebhooksWorld, endpoint: Endpoint) -> None:
    world.receiver.behaves = lambda _: Answer(milliseconds=1, status=410)
    assert world.send(event(1), event(2)) == ["failed", "disabled"]
    assert world.endpoint(endpoint).disabled_by is DisabledBy.GONE


def test_nothing_is_sent_to_a_disabled_endpoint_and_nothing_is_lost(world: WebhooksWorld, endpoint: Endpoint) -> None:
    change_webhook(world.manage(), TENANT, endpoint.endpoint_id, Change(is_enabled=False))
    world.send(*(event(number) for number in range(40)))
    world.run_for(3 * HOUR)
    assert world.receiver.requests == []
    change_webhook(world.manage(), TENANT, endpoint.endpoint_id, Change(is_enabled=True))
    world.run_for(10 * 60)
    assert len(world.receiver.requests) == 40
    assert {row.status for row in world.rows(endpoint)} == {DeliveryStatus.DELIVERED}


@pytest.mark.guards("webhook-paused-endpoint-refused", "webhook-sweep-paused-unsent", "webhook-resume-looks-again")
def test_nothing_is_sent_to_a_paused_endpoint_and_all_of_it_goes_on_after_that(
    world: WebhooksWorld, endpoint: Endpoint
) -> None:
    world.send(event(1))
    change_endpoint(world.endpoints, world.endpoint(endpoint), lambda row: pause(row, now=world.now))
    assert pause(world.endpoint(endpoint), now=world.now + 1) == world.endpoint(endpoint), "once"
    assert world.send(*(event(number) for number in range(2, 40))) == []
    assert world.deliver(message_for(world.rows(endpoint)[-1])).outcome == "paused", "a message that was under way"
    world.run_for(HOUR)
    world.now = world.endpoint(endpoint).due_at or 0
    swept = world.sweep()
    assert swept.outcomes == Counter(paused=1) and swept.paused_seconds >= HOUR, "an alarm reminds"
    assert len(world.receiver.requests) == 1
    change_endpoint(world.endpoints, world.endpoint(endpoint), lambda row: resume(row, now=world.now))
    assert resume(world.endpoint(endpoint), now=world.now + 1) == world.endpoint(endpoint), "once"
    world.run_for(10 * 60)
    assert len(world.receiver.requests) == 39
    assert {row.status for row in world.rows(endpoint)} == {DeliveryStatus.DELIVERED}


@pytest.mark.guards("webhook-pause-not-failing")
def test_the_time_of_a_pause_disables_no_endpoint(world: WebhooksWorld, endpoint: Endpoint) -> None:
    world.receiver.behaves = fails
    world.send(event(1), event(2), event(3))
    change_endpoint(world.endpoints, world.endpoint(endpoint), lambda row: pause(row, now=world.now))
    world.run_for(DISABLE_SECONDS)
    change_endpoint(world.endpoints, world.endpoint(endpoint), lambda row: resume(row, now=world.now))
    world.run_for(2 * HOUR)
    row = world.endpoint(endpoint)
    assert (row.is_enabled, row.warned_at) == (True, None)
    world.run_for(DISABLE_SECONDS + WARN_SECONDS)
    assert not world.endpoint(endpoint).is_enabled


def test_a_paused_endpoint_that_is_disabled_stays_so_and_holds_up_no_other_at_its_host(world: WebhooksWorld) -> None:
    resting, other, last = (world.endpoint(each) for each in unreached(world))
    assert scout_of((other, last, resting)) == resting
    assert scout_of((other, last, pause(resting, now=world.now))) is None
    disabled = disable(pause(other, now=world.now), DisabledBy.CLIENT, now=world.now)
    assert (resume(disabled, now=world.now).due_at, disabled.due_at) == (None, None)


@pytest.mark.guards("webhook-recovery-new-round")
def test_recovery_tries_what_has_failed_again(world: WebhooksWorld, endpoint: Endpoint) -> None:
    world.receiver.behaves = fails
    world.send(event(1), event(2))
    world.run_for(90 * HOUR)
    assert world.rows(endpoint)[0].status is DeliveryStatus.FAILED
    world.receiver.behaves = lambda _: OK
    recover_webhook(world.manage(), TENANT, endpoint.endpoint_id, since=event(2).time)
    world.run_for(HOUR)
    statuses = [row.status for row in world.rows(endpoint)]
    assert statuses == [DeliveryStatus.FAILED, DeliveryStatus.DELIVERED]
    recover_webhook(world.manage(), TENANT, endpoint.endpoint_id, since=0)
    world.run_for(HOUR)
    assert {row.status for row in world.rows(endpoint)} == {DeliveryStatus.DELIVERED}
    assert world.endpoint(endpoint).recovery is None


@pytest.mark.guards("webhook-look-written-before-send")
def test_a_large_recovery_goes_page_by_page(world: WebhooksWorld, endpoint: Endpoint) -> None:
    world.tell(*(event(number) for number in range(350)))
    rows = world.deliveries.rows[endpoint.endpoint_id]
    for delivery_id, row in rows.items():
        rows[delivery_id] = replace(row, status=DeliveryStatus.FAILED, attempt=MAX_ATTEMPTS, due_at=None)
    world.take()
    recover_webhook(world.manage(), TENANT, endpoint.endpoint_id, since=0)
    assert world.sweep().recovered == 100
    world.run()
    world.advance(61)
    assert world.sweep().recovered == 200
    world.run_for(HOUR)
    assert {delivered.status for delivered in world.rows(endpoint)} == {DeliveryStatus.DELIVERED}


def test_a_ping_reaches_an_endpoint_that_rests_and_ends_its_rest(world: WebhooksWorld) -> None:
    endpoint = world.add(events=("image.*",))
    world.receiver.behaves = fails
    world.send(*(event(number) for number in range(5)))
    assert world.endpoint(endpoint).rests_until is not None
    world.receiver.behaves = lambda _: OK
    ping_webhook(world.manage(), TENANT, endpoint.endpoint_id)
    assert world.run()[0] == "delivered"
    world.run_for(10 * 60)
    assert {row.status for row in world.rows(endpoint)} == {DeliveryStatus.DELIVERED}


@pytest.mark.guards("webhook-suspended-tenant-waits")
def test_a_suspended_tenants_deliveries_wait() -> None:
    world = WebhooksWorld(suspended={TENANT})
    endpoint = world.add()
    assert world.send(event()) == ["suspended"]
    world.run_for(2 * HOUR)
    assert world.receiver.requests == []
    world.suspended.clear()
    world.run_for(15 * 60)
    assert world.rows(endpoint)[0].status is DeliveryStatus.DELIVERED


def test_an_endpoint_may_be_removed_while_a_delivery_is_on_its_way(world: WebhooksWorld, endpoint: Endpoint) -> None:
    meanwhile(world.receiver, "behaves", lambda _: remove_webhook(world.manage(), TENANT, endpoint.endpoint_id))
    assert world.send(event()) == ["delivered"]


@pytest.mark.guards("webhook-new-delivery-watched")
def test_a_lost_message_is_sent_again_by_the_sweeper(world: WebhooksWorld, endpoint: Endpoint) -> None:
    world.tell(event())
    world.delivery_queue.sent.clear()
    world.run_for(3 * 60)
    assert world.rows(endpoint)[0].status is DeliveryStatus.DELIVERED


@pytest.mark.guards("webhook-delivery-lease")
def test_a_worker_that_died_costs_one_attempt(world: WebhooksWorld, endpoint: Endpoint) -> None:
    world.receiver.behaves = raising(MemoryError)
    message = world.message_of(event())
    with pytest.raises(MemoryError):
        world.deliver(message)
    assert world.deliver(message).outcome == "leased"
    world.receiver.behaves = lambda _: OK
    world.run_for(3 * 60)
    (row,) = world.rows(endpoint)
    assert (row.status, [attempt.status for attempt in row.attempts]) == (DeliveryStatus.DELIVERED, [None, 200])
    assert in_flight(world.endpoint(endpoint), now=world.now) == ()


@pytest.mark.guards("webhook-delivery-attempt-limit")
def test_workers_that_die_in_every_attempt_end_it(world: WebhooksWorld, endpoint: Endpoint) -> None:
    world.receiver.behaves = raising(MemoryError)
    world.tell(event())
    for _ in range(MAX_ATTEMPTS):
        with pytest.raises(MemoryError):
            world.deliver(message_for(world.rows(endpoint)[0]))
        world.advance(61)
    assert world.deliver(message_for(world.rows(endpoint)[0])).outcome == "gave_up"
    assert world.rows(endpoint)[0].status is DeliveryStatus.FAILED


@pytest.mark.guards("webhook-second-worker-place-freed")
def test_of_two_workers_with_one_delivery_one_sends_it(world: WebhooksWorld, endpoint: Endpoint) -> None:
    message = world.message_of(event())
    (row,), change = world.rows(endpoint), world.deliveries.change
    taken = replace(row, claimed_by="another", status=DeliveryStatus.SENDING)
    meanwhile(world.deliveries, "change", lambda *_: change(row, taken), times=1)
    assert world.deliver(message).outcome == "leased"
    assert world.receiver.requests == []
    assert world.endpoint(endpoint).flights == ()


@pytest.mark.guards("webhook-flight-names-receipt")
def test_of_two_messages_of_one_delivery_in_one_millisecond_neither_ends_the_others_way() -> None:
    world = WebhooksWorld(endpoints=SlowEndpoints(), deliveries=SlowDeliveries())
    endpoint = world.add()
    message = world.message_of(event())
    rows = world.endpoint(endpoint), world.rows(endpoint)[0]

    def receive(_: Request) -> Answer:
        flights = world.endpoint(endpoint).flights
        world.endpoints.before, world.deliveries.before = rows
        assert world.deliver(message).outcome == "busy"
        assert world.endpoint(endpoint).flights == flights
        return OK

    world.receiver.behaves = receive
    assert world.deliver(message).outcome == "delivered"
    assert len(world.receiver.requests) == 1


@pytest.mark.guards("webhook-secret-before-claim")
def test_without_the_master_secret_nothing_is_claimed(world: WebhooksWorld, endpoint: Endpoint) -> None:
    world.tell(event())
    world.master_secret.is_down = True
    (message,) = world.take()
    with pytest.raises(Retryable):
        world.deliver(message)
    (row,) = world.rows(endpoint)
    assert (row.attempt, world.endpoint(endpoint).flights) == (0, ())


def test_an_endpoint_that_changes_all_the_time_is_tried_again_later(world: WebhooksWorld, endpoint: Endpoint) -> None:
    message = world.message_of(event())
    world.endpoints = failing(world.endpoints, "change", Fenced(endpoint))
    with pytest.raises(Retryable):
        world.deliver(message)
    assert world.rows(endpoint)[0].attempt == 0


@pytest.mark.guards("webhook-due-look-not-postponed")
def test_a_stream_of_new_deliveries_does_not_put_the_sweeper_off(world: WebhooksWorld, endpoint: Endpoint) -> None:
    world.tell(event(0))
    world.delivery_queue.sent.clear()  # its message is lost
    looked = 0
    for number in range(1, 200):
        world.advance(1)
        world.tell(event(number))
        world.delivery_queue.sent.clear()
        if number % 60 == 0:
            looked += world.sweep().outcomes["sent"]
            world.run()
    assert looked == 3
    assert world.rows(endpoint)[0].status is DeliveryStatus.DELIVERED


@pytest.mark.guards("webhook-wake-once-a-second")
def test_many_events_at_a_time_write_their_endpoints_row_once_a_second() -> None:
    world = WebhooksWorld()
    endpoint = world.add()
    world.tell(event(0))
    world.advance(59)  # a look is near, and could miss what comes now
    before = world.endpoint(endpoint).version
    for number in range(1, 100):
        world.tell(event(number))
        world.now += 10
    assert world.endpoint(endpoint).version == before + 1
    world.tell(event(100))
    assert world.endpoint(endpoint).version == before + 1
    world.now += 10
    world.tell(event(101))
    assert world.endpoint(endpoint).version == before + 2
    world.advance(1)
    world.sweep()
    assert world.endpoint(endpoint).due_at == world.now + 60_000, "what has come just before is looked for again"


def test_a_message_for_what_is_gone_does_nothing(world: WebhooksWorld, endpoint: Endpoint) -> None:
    message = DeliveryMessage(tenant_id=TENANT, endpoint_id=endpoint.endpoint_id, delivery_id="none")
    assert world.deliver(message).outcome == "gone"


@pytest.mark.guards("webhook-delivery-not-early")
def test_a_message_that_comes_before_the_next_attempt_does_nothing(world: WebhooksWorld) -> None:
    world.add()
    world.receiver.behaves = fails
    message = world.message_of(event())
    assert world.deliver(message).outcome == "failed"
    assert world.deliver(message).outcome == "early"
    assert len(world.receiver.requests) == 1


# ── Two at the same row ──────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.guards("webhook-late-worker-fenced")
def test_a_worker_that_took_too_long_leaves_what_another_has_recorded(world: WebhooksWorld, endpoint: Endpoint) -> None:
    message = world.message_of(event())

    def slow(_: Request) -> Answer:
        world.receiver.behaves = lambda _: OK
        world.advance(LEASE_SECONDS + 1)
        assert world.deliver(message).outcome == "delivered"
        return DOWN

    world.receiver.behaves = slow
    assert world.deliver(message).outcome == "failed"
    (row,) = world.rows(endpoint)
    assert row.status is DeliveryStatus.DELIVERED


def planted(world: WebhooksWorld, endpoint: Endpoint, **stated: Any) -> None:
    """Its deliveries become what these fields say."""
    rows = world.deliveries.rows[endpoint.endpoint_id]
    for delivery_id, row in rows.items():
        rows[delivery_id] = replace(row, **stated)


class Overtaken(FakeDeliveries):
    """Another write of the same delivery comes before the first that is tried."""

    def change(self, before: Delivery, after: Delivery) -> Delivery:
        if before.version == self.get(before.endpoint_id, before.delivery_id).version:  # type: ignore[union-attr]
            self.rows[before.endpoint_id][before.delivery_id] = replace(before, version=before.version + 1)
        raise Fenced(self.get(before.endpoint_id, before.delivery_id))


@pytest.mark.guards("webhook-give-up-fenced")
def test_a_worker_that_gives_up_what_another_has_written_meanwhile_tries_it_no_more() -> None:
    world = WebhooksWorld()
    endpoint = world.add()
    message = world.message_of(event())
    planted(
        world, endpoint, status=DeliveryStatus.SENDING, attempt=MAX_ATTEMPTS, lease_until=world.now, due_at=world.now
    )
    world.deliveries = Overtaken(rows=world.deliveries.rows)
    assert world.deliver(message).outcome == "gave_up"
    assert world.receiver.requests == []


@pytest.mark.guards("webhook-recovery-survives-fence")
def test_a_recovery_leaves_what_another_has_written_meanwhile_and_goes_on() -> None:
    world = WebhooksWorld()
    endpoint = world.add()
    world.tell(event(1), event(2))
    world.take()
    planted(world, endpoint, status=DeliveryStatus.FAILED, attempt=MAX_ATTEMPTS, due_at=None)
    recover_webhook(world.manage(), TENANT, endpoint.endpoint_id, since=0)
    stored, world.deliveries = world.deliveries, Overtaken(rows=world.deliveries.rows)
    sweep = world.sweep()
    assert (sweep.recovered, sweep.errors, sweep.outcomes["fenced"]) == (0, {}, 0)
    world.deliveries = stored
    assert world.endpoint(endpoint).recovery is None


@pytest.mark.guards("webhook-recovery-retries-blanked")
def test_a_recovery_opens_what_was_blanked_at_that_moment(world: WebhooksWorld, endpoint: Endpoint) -> None:
    world.tell(event())
    world.take()
    planted(world, endpoint, status=DeliveryStatus.FAILED, attempt=MAX_ATTEMPTS, due_at=None)
    recover_webhook(world.manage(), TENANT, endpoint.endpoint_id, since=0)
    change = world.deliveries.change
    meanwhile(world.deliveries, "change", lambda before, _: change(before, blank(before)), times=1)
    assert world.sweep().recovered == 1
    (row,) = world.rows(endpoint)
    assert (row.status, row) == (DeliveryStatus.WAITING, blank(row))


@pytest.mark.guards("webhook-not-due-watched")
def test_whoever_meets_a_delivery_that_is_not_due_sees_that_the_sweeper_looks_in_time() -> None:
    world = WebhooksWorld()
    endpoint = world.add()
    world.receiver.behaves = fails
    message = world.message_of(event())
    world.deliver(message)
    place = (endpoint.tenant_id, place_of(endpoint.endpoint_id))
    # As if the worker had died before it could say so.
    world.endpoints.rows[place] = replace(world.endpoint(endpoint), due_at=world.now + HOUR * 1000)
    assert world.deliver(message).outcome == "early"
    (row,) = world.rows(endpoint)
    assert row.due_at is not None
    assert (world.endpoint(endpoint).due_at or 0) <= row.due_at


@pytest.mark.guards("webhook-sweep-bug-isolated", "webhook-sweep-bug-postponed")
def test_an_endpoint_that_trips_a_bug_keeps_the_sweeper_from_no_other(world: WebhooksWorld) -> None:
    broken, healthy = world.add("https://a.example.com/"), world.add("https://b.example.com/")
    world.tell(event())
    world.delivery_queue.sent.clear()
    world.advance(61)
    bug = ZeroDivisionError("a bug")
    world.endpoints = failing(
        world.endpoints, "change", bug, lambda before, after: before.endpoint_id == broken.endpoint_id
    )
    sweep = world.sweep()
    assert (list(sweep.errors), sweep.outcomes["sent"]) == ([broken.endpoint_id], 1)
    assert [message.endpoint_id for message in world.take()] == [healthy.endpoint_id]
    assert world.sweep().errors == {}, "it is postponed"


@pytest.mark.guards("webhook-look-decided-again")
def test_a_look_that_another_write_comes_before_is_decided_again(world: WebhooksWorld) -> None:
    world.add()
    world.tell(event())
    world.delivery_queue.sent.clear()
    world.advance(61)
    change = world.endpoints.change
    meanwhile(
        world.endpoints, "change", lambda before, _: change(before, replace(before, crowded_at=world.now)), times=1
    )
    sweep = world.sweep()
    assert (sweep.errors, sweep.outcomes) == ({}, {"sent": 1})
    assert len(world.take()) == 1


@pytest.mark.guards("bookkeeping-next-delivery-isolated")
@ANY_FAILURE
@pytest.mark.parametrize(("answer", "outcome"), [(OK, "delivered"), (DOWN, "failed")])
def test_what_cannot_be_sent_after_a_delivery_leaves_its_outcome(
    world: WebhooksWorld, endpoint: Endpoint, failure: Exception, answer: Answer, outcome: str
) -> None:
    message = world.message_of(event())
    world.endpoints.change(world.endpoint(endpoint), replace(world.endpoint(endpoint), crowded_at=world.now))
    world.deliveries.due = world.delivery_queue.send = raising(failure)
    world.receiver.behaves = lambda _: answer
    assert world.deliver(message).outcome == outcome


# ── Rows of a newer version ──────────────────────────────────────────────────────────────────────────────────────────


def hide(world: WebhooksWorld, endpoint: Endpoint, *numbers: int) -> None:
    """A newer version has written the deliveries of these events."""
    rows = world.deliveries.rows[endpoint.endpoint_id].values()
    ids = {event(number).event_id for number in numbers}
    world.deliveries.unreadable |= {(row.endpoint_id, row.delivery_id) for row in rows if row.event_id in ids}


def statuses(world: WebhooksWorld, endpoint: Endpoint) -> set[DeliveryStatus]:
    """The states of its deliveries that can be read."""
    return {row.status for row in world.rows(endpoint) if isinstance(row, Delivery)}


@pytest.mark.guards("unreadable-endpoint-rest-ends")
def test_a_healed_endpoint_leaves_its_rest_though_the_delivery_that_tries_it_cannot_be_read() -> None:
    world = WebhooksWorld()
    endpoint = world.add()
    world.receiver.behaves = fails
    world.send(*(event(number) for number in range(10)))
    hide(world, endpoint, 0)
    assert world.endpoint(endpoint).probe == min(world.deliveries.rows[endpoint.endpoint_id])
    world.receiver.behaves = lambda _: OK
    world.run_for(10 * 60)
    assert world.endpoint(endpoint).rests_until is None
    assert statuses(world, endpoint) == {DeliveryStatus.DELIVERED}
    world.deliveries.unreadable.clear()
    world.run_for(2 * HOUR)
    assert world.rows(endpoint)[0].status is DeliveryStatus.DELIVERED


@pytest.mark.guards("unreadable-delivery-no-probe")
def test_unreadable_deliveries_that_come_first_keep_a_resting_endpoint_from_no_other() -> None:
    world = WebhooksWorld()
    endpoint = world.add()
    world.receiver.behaves = fails
    world.send(*(event(number) for number in range(40)))
    world.delivery_queue.sent.clear()
    hide(world, endpoint, *range(35))
    world.receiver.behaves = lambda _: OK
    world.advance(300)
    sweep = world.sweep()
    assert len(sweep.unreadable) == 35, "all that it met before one that can be read"
    (message,) = world.take()
    assert event_id_of(message.delivery_id) == event(35).event_id
    assert world.deliver(message).outcome == "delivered"


@pytest.mark.guards("unreadable-delivery-postponed", case="30")
@pytest.mark.parametrize("count", [4, 30])
def test_unreadable_deliveries_that_come_first_fill_one_look_and_not_each(count: int) -> None:
    world = WebhooksWorld()
    endpoint = world.add()
    world.tell(*(event(number) for number in range(count + 8)))
    world.delivery_queue.sent.clear()
    hide(world, endpoint, *range(count))
    world.run_for(20 * 60)
    assert statuses(world, endpoint) == {DeliveryStatus.DELIVERED}
    row = world.deliveries.rows[endpoint.endpoint_id]
    assert all((row[delivery_id].due_at or 0) > world.now for _, delivery_id in world.deliveries.unreadable), (
        "they have moved on"
    )


@pytest.mark.guards("unreadable-delivery-place-freed")
def test_a_message_of_an_unreadable_delivery_frees_its_place_and_its_office() -> None:
    world = WebhooksWorld()
    endpoint = world.add()
    world.send(event(), event(2))
    (first, second) = world.rows(endpoint)
    hide(world, endpoint, 1)
    row = world.endpoint(endpoint)
    flight = InFlight(delivery_id=first.delivery_id, until=world.now + 60_000)
    world.endpoints.change(row, replace(row, probe=first.delivery_id, probe_at=1, flights=(flight,)))
    delivered = world.deliver(message_for(first))
    assert (delivered.outcome, len(delivered.unreadable)) == ("unreadable", 1)
    row = world.endpoint(endpoint)
    assert (row.probe, row.probe_at, row.flights) == (None, None, ())
    assert world.deliver(message_for(second)).outcome == "ended"


@pytest.mark.guards("unreadable-claim-keeps-no-place")
def test_a_worker_that_meets_a_newer_one_at_its_claim_keeps_no_place(world: WebhooksWorld, endpoint: Endpoint) -> None:
    world.tell(event())
    world.deliveries = failing(world.deliveries, "change", UnreadableRow("a delivery", "invented later"))
    assert world.run() == ["leased"]
    assert world.endpoint(endpoint).flights == ()


@pytest.mark.guards("unreadable-attempt-still-counts")
def test_an_attempt_whose_delivery_a_newer_version_has_taken_counts_for_its_endpoint() -> None:
    world = WebhooksWorld()
    endpoint = world.add()
    world.tell(event())
    newer = UnreadableRow("a delivery", "invented later")
    world.deliveries = failing(
        world.deliveries, "change", newer, lambda before, after: after.status is DeliveryStatus.DELIVERED
    )
    assert world.run() == ["delivered"]
    row = world.endpoint(endpoint)
    assert (row.flights, row.last_success_at) == ((), world.now)


def test_an_unreadable_endpoint_keeps_the_sweeper_from_no_other_and_is_looked_at_again_later() -> None:
    world = WebhooksWorld()
    bad, good = world.add("https://a.example.com/"), world.add("https://b.example.com/")
    world.tell(event())
    world.delivery_queue.sent.clear()
    world.endpoints.unreadable.add(bad.endpoint_id)
    world.advance(61)
    sweep = world.sweep()
    assert ([row.row_id for row in sweep.unreadable], sweep.outcomes["sent"]) == ([bad.endpoint_id], 1)
    assert [message.endpoint_id for message in world.take()] == [good.endpoint_id]
    assert world.sweep().unreadable == []


# ── Several endpoints of a tenant at one host ────────────────────────────────────────────────────────────────────────

UNREACHED = Answer(milliseconds=9, error="connect: the host does not accept connections", was_unreached=True)


def at_host(world: WebhooksWorld, count: int = 10, url: str = "https://hooks.example.com/?n=") -> list[Endpoint]:
    return [world.add(f"{url}{number}") for number in range(count)]


@dataclass
class Sent:
    """Delivers messages while others are on their way: each request is answered after all that can begin meanwhile."""

    world: WebhooksWorld
    answer: Answer = OK
    most: int = 0
    outcomes: list[str] = field(default_factory=list)
    _flying: int = 0

    def __post_init__(self) -> None:
        self.world.receiver.behaves = self

    def __call__(self, _: Request) -> Answer:
        self._flying += 1
        self.most = max(self.most, self._flying)
        self.all()
        self._flying -= 1
        return self.answer

    def all(self) -> None:
        while messages := [message for message, delay in self.world.delivery_queue.sent if delay == 0]:
            self.world.delivery_queue.sent.remove((messages[0], 0))
            self.outcomes.append(self.world.deliver(messages[0]).outcome)


@pytest.mark.guards("webhook-host-normalized")
@pytest.mark.parametrize(
    ("urls", "most"),
    [
        (["https://hooks.example.com/?n=%d"], MAX_FLIGHTS),
        (["https://hooks.example.com/%d", "https://HOOKS.example.com:443/?n=%d", "https://hooks.example.com./%d"], 4),
        (["https://hooks.example.com/%d", "https://hooks.example.com:8443/%d"], 2 * MAX_FLIGHTS),
        (["https://hooks.example.com/%d", "https://hook.example.com/%d"], 2 * MAX_FLIGHTS),
    ],
)
def test_at_most_four_deliveries_of_a_tenant_are_on_their_way_to_a_host(urls: list[str], most: int) -> None:
    world = WebhooksWorld()
    added = [world.add(urls[number % len(urls)] % number) for number in range(10)]
    sent = Sent(world)
    for number in range(3):
        world.tell(event(number))
    sent.all()
    world.run_for(30)
    assert sent.most == most
    assert sorted(request.url for request in world.receiver.requests) == sorted([row.url for row in added] * 3)
    assert {row.status for endpoint in added for row in world.rows(endpoint)} == {DeliveryStatus.DELIVERED}


def test_what_another_tenant_sends_to_the_host_takes_no_room(world: WebhooksWorld) -> None:
    at_host(world, 4)
    for row in list(world.endpoints.rows.values()):
        other = replace(row, tenant_id="other", endpoint_id=row.endpoint_id[:-1] + "z", created_at=1)
        assert world.endpoints.create(other)
    sent = Sent(world)
    world.tell(event(1), event(2, tenant_id="other"))
    sent.all()
    assert (sent.most, sent.outcomes) == (2 * MAX_FLIGHTS, ["delivered"] * 2 * MAX_FLIGHTS)


@pytest.mark.guards("webhook-host-fewest-flights-first")
def test_a_slow_endpoint_keeps_no_other_at_its_host_from_its_turn(world: WebhooksWorld) -> None:
    slow, quick = at_host(world, 2)
    world.tell(*(event(number, notify=slow.endpoint_id) for number in range(20)))
    sent = Sent(world)
    world.tell(event(99, notify=quick.endpoint_id))
    sent.all()
    urls = [request.url for request in world.receiver.requests]
    assert len(urls) == 21
    assert urls.index(quick.url) <= MAX_FLIGHTS


@dataclass
class Racing(FakeEndpoints):
    """Others take off between a worker's first look and its write, for as many looks as are told."""

    meanwhile: list[Callable[[], object]] = field(default_factory=list)

    def of_tenant(self, tenant_id: str) -> Sequence[Endpoint | UnreadableRow]:
        rows = super().of_tenant(tenant_id)
        if self.meanwhile:
            self.meanwhile.pop(0)()
        return rows


def fly(world: WebhooksWorld, endpoint: Endpoint, count: int) -> None:
    """So many deliveries to the endpoint are on their way, and nothing is heard of them."""
    row = world.endpoint(endpoint)
    until = world.now + FLIGHT_SECONDS * 1000
    flights = [InFlight(delivery_id=f"{number}", claimed_by=f"{number}", until=until) for number in range(count)]
    world.endpoints.change(row, replace(row, flights=tuple(flights)))


@pytest.mark.guards("webhook-host-flight-taken-back")
def test_of_those_that_take_off_at_the_same_time_the_last_takes_its_flight_back() -> None:
    world = WebhooksWorld(endpoints=Racing())
    mine, other = at_host(world, 2)
    message = world.message_of(event(notify=mine.endpoint_id))
    world.endpoints.meanwhile = [lambda: fly(world, other, MAX_FLIGHTS)]
    assert world.deliver(message).outcome == "busy"
    assert world.receiver.requests == []
    row = world.endpoint(mine)
    assert (row.flights, row.crowded_at) == ((), world.now), "the next that ends calls it"


@pytest.mark.guards("webhook-host-flight-limit")
def test_a_delivery_that_finds_its_host_full_marks_its_row_once_and_takes_nothing_back(world: WebhooksWorld) -> None:
    mine, other = at_host(world, 2)
    fly(world, other, MAX_FLIGHTS)
    world.tell(event(notify=mine.endpoint_id))
    before = world.endpoint(mine).version
    assert world.run() == ["busy"]
    assert world.endpoint(mine).version == before + 1


@pytest.mark.guards("webhook-host-looks-after-mark")
def test_what_ends_between_a_look_and_the_mark_makes_room_for_the_one_that_looked() -> None:
    world = WebhooksWorld(endpoints=Racing())
    mine, other = at_host(world, 2)
    message = world.message_of(event(notify=mine.endpoint_id))
    fly(world, other, MAX_FLIGHTS)
    world.endpoints.meanwhile = [lambda: fly(world, other, 0)]
    assert world.deliver(message).outcome == "delivered"


@pytest.mark.guards("webhook-host-collision-retried")
def test_those_that_always_take_off_at_the_same_time_try_again_a_moment_later() -> None:
    world = WebhooksWorld(endpoints=Racing())
    mine, other = at_host(world, 2)
    message = world.message_of(event(notify=mine.endpoint_id))
    world.endpoints.meanwhile = [lambda: fly(world, other, MAX_FLIGHTS), lambda: fly(world, other, 0)] * 9
    assert world.deliver(message).outcome == "busy"
    world.endpoints.meanwhile = []
    assert [sent for sent, delay in world.delivery_queue.sent if delay > 0] == [message]


def test_a_worker_that_died_makes_room_at_its_host_when_its_lease_is_over(world: WebhooksWorld) -> None:
    mine, other = at_host(world, 2)
    fly(world, other, MAX_FLIGHTS)
    assert world.send(event(notify=mine.endpoint_id)) == ["busy"]
    world.run_for(FLIGHT_SECONDS + 61)
    assert [request.url for request in world.receiver.requests] == [mine.url]


@pytest.mark.guards("webhook-host-single-scout")
def test_three_deliveries_without_a_connection_make_all_endpoints_of_the_host_rest_and_one_tries_it() -> None:
    world = WebhooksWorld()
    added = at_host(world)

    sent = Sent(world, UNREACHED)
    world.tell(event(1))
    sent.all()
    assert len(world.receiver.requests) < MAX_FLIGHTS + FAILURES_TO_REST, "those that are on their way at the third"

    tried: list[str] = []
    for _ in range(3):
        world.receiver.requests.clear()
        until = {resting.rests_until for resting in listed(world)}
        rest_ends = until.pop()
        assert not until and rest_ends is not None, "each is shown at rest until the one that tries it does"
        world.tell(event(len(tried) + 2))
        world.run_for((rest_ends - world.now) / 1000 + 65)
        tried += [request.url for request in world.receiver.requests]
        assert len(world.receiver.requests) <= 2, "nothing else is sent"
    assert len(set(tried)) == 1
    sent.answer = OK
    world.run_for(2 * HOUR)
    assert {row.status for endpoint in added for row in world.rows(endpoint)} == {DeliveryStatus.DELIVERED}
    assert {(world.endpoint(endpoint).unreached, world.endpoint(endpoint).rests_until) for endpoint in added} == {
        (0, None)
    }


def listed(world: WebhooksWorld) -> Sequence[Endpoint]:
    return list_webhooks(world.manage(), TENANT)[0]


def unreached(world: WebhooksWorld, count: int = 3) -> list[Endpoint]:
    """Endpoints of a host to which three deliveries have found no connection: the one that tries it, then the others,
    of which each has a delivery that waits."""
    added = at_host(world, count)
    world.receiver.behaves = lambda _: UNREACHED
    world.send(event(1))
    (scout,) = [endpoint for endpoint in added if world.endpoint(endpoint).rests_until is not None]
    for number in range(2, 4):
        world.tell(event(number))
    world.run()
    world.receiver.requests.clear()
    return [scout, *(endpoint for endpoint in added if endpoint != scout)]


@pytest.mark.guards("webhook-host-rest-unreached-only")
@pytest.mark.parametrize(
    "answer", [DOWN, Answer(milliseconds=15_000, error="timeout: the time was up while reading", was_too_slow=True)]
)
def test_what_a_path_answers_makes_no_other_of_its_host_rest(world: WebhooksWorld, answer: Answer) -> None:
    bad, good = at_host(world, 2)
    world.receiver.behaves = lambda request: answer if request.url == bad.url else OK
    world.send(*(event(number) for number in range(6)))
    world.run_for(600)
    assert [endpoint.rests_until is not None for endpoint in listed(world)] == [True, False]
    assert {row.status for row in world.rows(good)} == {DeliveryStatus.DELIVERED}


def test_no_tenant_rests_for_what_another_could_not_reach(world: WebhooksWorld) -> None:
    unreached(world)
    other = replace(world.endpoint(listed(world)[0]), tenant_id="other", rests_until=None, unreached=0, failures=0)
    world.endpoints.rows["other", place_of(other.endpoint_id)] = other
    world.receiver.behaves = lambda _: OK
    assert world.send(event(9, tenant_id="other")) == ["delivered"]


@pytest.mark.guards("webhook-answer-ends-host-rest")
@pytest.mark.parametrize("answer", [OK, DOWN])
def test_any_answer_of_the_host_lets_all_its_endpoints_go_on(world: WebhooksWorld, answer: Answer) -> None:
    scout, *others = unreached(world)
    world.receiver.behaves = lambda request: answer if request.url == scout.url else OK
    world.run_for(6)
    assert {row.status for endpoint in others for row in world.rows(endpoint)} == {DeliveryStatus.DELIVERED}, (
        "and no sweep has come"
    )
    assert [endpoint.unreached for endpoint in listed(world)] == [0, 0, 0]


@pytest.mark.guards("webhook-scout-is-enabled", case="disabled")
@pytest.mark.guards("webhook-scout-has-probe", case="gives up")
@pytest.mark.parametrize("how", ["removed", "disabled", "unreadable", "gives up", "at another host"])
def test_the_others_go_on_when_the_one_that_tries_their_host_does_not_any_more(world: WebhooksWorld, how: str) -> None:
    scout, *others = unreached(world)
    world.receiver.behaves = lambda _: OK
    if how == "removed":
        remove_webhook(world.manage(), TENANT, scout.endpoint_id)
    elif how == "disabled":
        change_webhook(world.manage(), TENANT, scout.endpoint_id, Change(is_enabled=False))
    elif how == "unreadable":
        world.endpoints.unreadable.add(scout.endpoint_id)
        world.delivery_queue.sent.clear()
    elif how == "at another host":
        change_webhook(world.manage(), TENANT, scout.endpoint_id, Change(url="https://elsewhere.example.com/"))
    else:
        row = world.endpoint(scout)
        world.endpoints.change(row, replace(row, probe=None))
        world.deliveries.rows[scout.endpoint_id].clear()
    world.run_for(600)
    assert {row.status for endpoint in others for row in world.rows(endpoint)} == {DeliveryStatus.DELIVERED}


@pytest.mark.guards("webhook-enable-ends-host-rest", case="enable")
@pytest.mark.guards("webhook-called-tries-resting-host", case="ping")
@pytest.mark.parametrize("what", ["ping", "enable", "recover", "resend"])
def test_who_tries_an_endpoint_that_rests_with_its_host_is_sent_it_at_once_and_ends_the_rest_of_all(what: str) -> None:
    world = WebhooksWorld()
    _, mine, *_ = unreached(world)
    world.receiver.behaves = lambda _: OK
    if what == "ping":
        ping_webhook(world.manage(), TENANT, mine.endpoint_id)
    elif what == "enable":
        change_webhook(world.manage(), TENANT, mine.endpoint_id, Change(is_enabled=True))
    elif what == "recover":
        recover_webhook(world.manage(), TENANT, mine.endpoint_id, since=0)
    else:
        world.advance(4)
        resend_delivery(world.manage(), TENANT, mine.endpoint_id, world.rows(mine)[-1].delivery_id)
    if what in ("enable", "recover"):
        world.sweep()
    world.run()
    assert mine.url in [request.url for request in world.receiver.requests]
    assert [endpoint.rests_until for endpoint in listed(world)] == [None] * 3


@pytest.mark.guards("webhook-held-endpoint-fails-too")
def test_what_rests_with_its_host_is_warned_and_disabled_like_the_one_that_tries_it(world: WebhooksWorld) -> None:
    unreached(world)
    world.run_for(WARN_SECONDS + 10 * HOUR)
    assert [endpoint.warned_at is not None for endpoint in listed(world)] == [True] * 3
    world.run_for(DISABLE_SECONDS)
    assert [endpoint.disabled_by for endpoint in listed(world)] == [DisabledBy.FAILING] * 3


@pytest.mark.guards("webhook-no-message-while-held", "webhook-sweep-skips-held-endpoint")
def test_no_messages_are_sent_for_what_rests_with_its_host(world: WebhooksWorld) -> None:
    _, mine, *_ = unreached(world)
    world.tell(event(5))
    assert world.take() == []
    world.advance(61)
    world.sweep()
    assert mine.endpoint_id not in [message.endpoint_id for message in world.take()]


@pytest.mark.guards("webhook-lost-worker-host-unknown")
def test_nothing_is_learnt_of_a_host_from_a_worker_that_died(world: WebhooksWorld) -> None:
    scout, *_ = unreached(world)
    (first, *_) = world.rows(scout)
    world.deliveries.rows[scout.endpoint_id][first.delivery_id] = replace(
        first, status=DeliveryStatus.SENDING, attempt=MAX_ATTEMPTS, lease_until=world.now, due_at=world.now
    )
    before = world.endpoint(scout)
    assert world.deliver(message_for(first)).outcome == "gave_up"
    assert world.endpoint(scout).unreached == before.unreached
