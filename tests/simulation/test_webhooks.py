"""Webhooks amid faults: nothing is lost, and nothing is sent twice but where a fault is to blame."""

from __future__ import annotations

from collections import Counter
from typing import Any
from unittest.mock import patch

import pytest

from darkroom.domain.events.event import EventType
from darkroom.domain.webhooks.delivery import (
    LEASE_SECONDS,
    MAX_ATTEMPTS,
    REMEMBERED_ATTEMPTS,
    DeliveryAttempt,
    DeliveryStatus,
)
from darkroom.domain.webhooks.endpoint import FAILURES_TO_REST, FLIGHT_SECONDS, LAG_SECONDS, MAX_FLIGHTS
from darkroom.operations.webhooks import change_endpoint, create_deliveries, sweep_due_endpoints
from tests.simulation.crashes import deployment
from tests.simulation.model.__main__ import play
from tests.simulation.model.processes import MODES, Call, Fault, Process
from tests.simulation.model.stores import Broken
from tests.simulation.webhooks.__main__ import main, never_happened
from tests.simulation.webhooks.generated import COUNTS, Histories
from tests.simulation.webhooks.histories import HISTORIES, sample, strike
from tests.simulation.webhooks.histories import play as play_struck
from tests.simulation.webhooks.world import DOWN, MAX_RECEIVES, TIMEOUT_SECONDS, VISIBILITY_SECONDS, Model
from tests.support.fakes.webhooks import OK
from tests.support.fakes.world import TENANT

pytestmark = pytest.mark.promise("webhook-faults")

POST = Call(store="receiver", number=0)

LONGEST = (
    *("more than may be on their way to one host", "of an image that is deleted", "resting and tried by its owner"),
    *("resting for their host", "resting with an unreadable probe"),
    "sent again while it waits and its endpoint rests",
)
"""Histories of many calls, which begin as shorter ones do."""


def in_form(history: str, *long: str) -> Any:
    return pytest.param(history, marks=[pytest.mark.long] if history in long else [])


@pytest.mark.guards("webhook-runway-outcome-recorded", case="from runways until it fails")
@pytest.mark.parametrize("history", [in_form(history, *LONGEST) for history in HISTORIES])
def test_every_event_is_delivered_whatever_fault_strikes_any_one_call(history: str) -> None:
    findings = strike(history, faults=1)
    assert [str(violation) for violation in findings.violations] == []
    assert findings.struck == findings.offered > len(findings.points) > 0
    assert findings.repeated <= 1, "a fault costs a receiver one request at most that it had taken"
    assert findings.resent == (history == "sent again although it was delivered")


@pytest.mark.parametrize(
    "history",
    [in_form(name, "removed") for name in ("delivered", "an event twice", "two workers with one message", "removed")],
)
def test_every_event_is_delivered_whatever_two_faults_strike(history: str) -> None:
    findings = strike(history, faults=2, every=20)
    assert [str(violation) for violation in findings.violations] == []
    assert findings.struck == findings.offered > 0


@pytest.mark.parametrize("history", ["delivered", "from runways"])
def test_a_fault_that_is_left_out_ends_a_history_as_another_does(history: str) -> None:
    undisturbed, _ = play_struck(history, {})
    endings: dict[bool, set[str]] = {True: set(), False: set()}
    for point, distinct in enumerate(undisturbed.surroundings.modes):
        for mode in MODES:
            model, violation = play_struck(history, {point: mode})
            assert violation is None
            taken = {key: len(senders) for key, senders in model.receiver.taken.items()}
            endings[mode in distinct].add(repr((model.now, model.endpoints.rows, model.deliveries.rows, taken)))
    assert endings[False] <= endings[True]
    assert endings[False]


@pytest.mark.parametrize("calls", [1, 2, 24, 41, 99, 100, 101, 300])
def test_every_sample_of_pairs_has_a_first_call_that_another_comes_after(calls: int) -> None:
    for first in range(100):
        chosen = sample(calls, 100, first)
        assert chosen
        assert chosen[0] < calls - 1 or calls == 1
    assert {number for start in range(100) for number in sample(300, 100, start)} == set(range(300))


def test_what_only_waits_with_a_place_kept_for_it_does_not_count_as_sent() -> None:
    histories = Histories()
    histories.begin(count=5, two=True, is_wide=True)
    before = Call(store="endpoints", number=0)
    histories.deliver(("deliver", 0), {"fault": None, "stops_at": before})
    histories.while_a_worker_stands(
        (("deliver", 0), {"fault": None, "stops_at": Call(store="endpoints", number=1)}), [("deliver", 0)]
    )
    kept = [slot for row in histories.model.endpoints.all() for slot in row.flights if slot.claimed_by is None]
    assert len(kept) == MAX_FLIGHTS, "and one more was sent"
    histories.teardown()


def test_a_call_that_is_new_is_struck_too_without_being_named(monkeypatch: pytest.MonkeyPatch) -> None:
    before = strike("delivered", faults=1)
    watch = change_endpoint.watch

    def watches_after_another_look(endpoints, endpoint, at, clock):  # type: ignore[no-untyped-def]
        endpoints.get(endpoint.tenant_id, endpoint.endpoint_id)
        watch(endpoints, endpoint, at, clock)

    monkeypatch.setattr(create_deliveries, "watch", watches_after_another_look)
    after = strike("delivered", faults=1)
    assert len(after.points) == len(before.points) + 1
    assert after.struck == before.struck + 1, "it changes nothing: it is only throttled"


def test_a_history_can_be_replayed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--replay", "delivered: throttled at 2; dies before at 9"]) == 0
    assert "every promise held" in capsys.readouterr().out
    model, violation = play_struck("delivered", {2: "throttled", 9: "dies before"})
    assert violation is None
    assert (model.counts["fault: throttled"], model.counts["fault: dies before"]) == (1, 1)


@pytest.mark.parametrize("histories", [100, pytest.param(800, marks=pytest.mark.long)])
def test_nothing_is_lost_doubled_or_stuck_in_hundreds_of_histories(histories: int) -> None:
    before = COUNTS.copy()
    play(Histories, histories=histories)
    counts = COUNTS - before
    assert counts["histories"] >= histories
    assert histories < 800 or never_happened(counts) == [], "a few histories may leave out what is rare"


# ── Some of them, told ───────────────────────────────────────────────────────────────────────────────────────────────


def model_with_events(*numbers: int, endpoints: int = 1) -> Model:
    """A world that has heard of these events, whose messages nobody has received yet."""
    model = Model(counts=Counter())
    for _ in range(endpoints):
        model.add()
    for number in numbers:
        model.tell(number, EventType.DONE)
    for message in model.events.visible():
        model.hear(message)
    return model


@pytest.mark.guards("webhook-recovery-looks-again")
def test_what_a_recovery_has_opened_is_tried_soon_though_its_index_is_behind() -> None:
    model = model_with_events(1)
    model.queue.messages.clear()
    model.plant(status=DeliveryStatus.FAILED, attempt=MAX_ATTEMPTS, due_at=None)
    model.pass_time(3600)
    model.deliveries.lag = (LAG_SECONDS - 1) * 1000
    (endpoint,) = model.endpoints.all()
    model.insist("recover", endpoint.endpoint_id)
    model.sweep()
    model.let_run(3)
    assert [row.status for row in model.deliveries.all()] == [DeliveryStatus.DELIVERED]


@pytest.mark.guards("webhook-enable-looks-again")
def test_what_came_just_before_an_endpoint_was_enabled_is_tried_soon_though_its_index_is_behind() -> None:
    model = Model(counts=Counter())
    endpoint = model.add()
    model.insist("disable", endpoint.endpoint_id)
    model.tell(1)
    model.drain()
    model.deliveries.lag = (LAG_SECONDS - 1) * 1000
    model.insist("enable", endpoint.endpoint_id)
    model.sweep()
    model.let_run(3)
    assert [row.status for row in model.deliveries.all()] == [DeliveryStatus.DELIVERED]


def test_a_message_calls_no_other_again_and_again_while_the_index_is_behind() -> None:
    model = model_with_events(*range(MAX_FLIGHTS + 4))
    for message in model.queue.visible():
        model.deliver(message, stops_at=POST)
    model.deliveries.lag = (LAG_SECONDS - 1) * 1000
    model.go_on()
    model.drain()
    model.settle()


def test_a_worker_that_dies_makes_room_when_its_lease_is_over_and_not_before() -> None:
    model = model_with_events(1)
    model.deliver(model.queue.visible()[0], stops_at=POST)
    (process,) = model.stopped
    model.kill(process)
    model.pass_time(min(LEASE_SECONDS, FLIGHT_SECONDS) - 1)
    model.queue.send(model.queue.messages[0].message)
    model.drain()
    assert model.counts["delivery: leased"] == 1
    model.settle()
    assert model.counts["delivery: delivered"] == 1


def test_a_worker_is_dead_before_another_may_have_its_delivery() -> None:
    assert min(LEASE_SECONDS, FLIGHT_SECONDS) > TIMEOUT_SECONDS


def test_a_receiver_that_took_it_gets_it_again_only_if_nobody_could_record_it() -> None:
    model = model_with_events(1)
    model.deliver(model.queue.visible()[0], fault=Fault(at=POST, mode="dies after"))
    model.settle()
    (senders,) = model.receiver.taken.values()
    assert [sender.is_struck for sender in senders] == [True, False]


def test_a_request_that_arrives_late_may_come_after_the_attempt_that_made_up_for_it() -> None:
    model = model_with_events(1)
    model.plant(attempt=MAX_ATTEMPTS - 1)
    for message in model.queue.visible():
        model.deliver(message, fault=Fault(at=POST, mode="applied late"))
    (endpoint,) = model.endpoints.all()
    model.insist("recover", endpoint.endpoint_id)
    model.sweep()
    for message in model.queue.visible():
        model.deliver(message)
    assert [row.status for row in model.deliveries.all()] == [DeliveryStatus.DELIVERED]
    model.settle()
    (senders,) = model.receiver.taken.values()
    assert [sender.is_struck for sender in senders] == [False, True]


def test_a_struck_sender_may_not_send_again_what_has_arrived() -> None:
    model = model_with_events(1)
    model.deliver(model.queue.visible()[0])
    ((url, event_id),) = model.receiver.taken
    sender = Process("struck", model.surroundings, lambda: None)
    sender.die()
    with pytest.raises(Broken, match="nothing is sent twice"):
        model.receiver.post(
            url, headers={"webhook-id": event_id}, body=model.receiver.bodies[url, event_id], sender=sender
        )


@pytest.mark.guards("webhook-message-only-if-waiting")
def test_an_event_that_comes_again_when_it_is_delivered_sends_no_message() -> None:
    model = model_with_events(1)
    model.drain()
    model.tell(1)
    for message in model.events.visible():
        model.hear(message)
    assert model.queue.messages == []
    model.settle()


def test_a_look_that_comes_at_once_may_not_see_what_it_is_for_and_another_follows() -> None:
    model = model_with_events(1)
    model.drain()
    (endpoint,) = model.endpoints.all()
    model.pass_time(55)  # the look is five seconds away
    model.tell(2)
    for message in model.events.visible():
        model.hear(message)
    model.queue.messages.clear()
    model.deliveries.lag = (LAG_SECONDS - 1) * 1000
    model.pass_time(5)
    model.sweep()
    assert model.counts["look: quiet"] == 1
    model.let_run(2)
    assert {row.status for row in model.deliveries.all()} == {DeliveryStatus.DELIVERED}
    assert model.endpoints.get(TENANT, endpoint.endpoint_id) is not None


def test_of_two_sweeps_one_has_a_delivery_tried() -> None:
    model = model_with_events(1)
    model.queue.messages.clear()
    model.pass_time(60)
    model.sweep(stops_at=Call(store="index", number=0))
    model.pass_time(1)
    model.sweep()
    model.go_on()
    assert len(model.queue.messages) == 1
    model.settle()


@pytest.mark.guards("webhook-sweep-suspended-later", "webhook-sweep-suspended-unsent")
def test_what_waits_for_a_suspended_tenant_is_not_sent_to_workers() -> None:
    model = model_with_events(1)
    model.queue.messages.clear()
    model.tenants.suspended.add(TENANT)
    model.let_run(5)
    assert model.counts["look: suspended"] == 1
    assert model.queue.messages == []
    model.settle()


def test_a_disabled_endpoint_is_not_looked_at() -> None:
    model = model_with_events(1)
    (endpoint,) = model.endpoints.all()
    model.insist("disable", endpoint.endpoint_id)
    model.tell(2)
    model.drain()
    (endpoint,) = model.endpoints.all()
    assert endpoint.due_at is None
    model.settle()


def test_a_recovery_opens_each_delivery_once() -> None:
    model = model_with_events(1, 2, 3)
    model.queue.messages.clear()
    model.plant(status=DeliveryStatus.FAILED, attempt=MAX_ATTEMPTS, due_at=None)
    model.receiver.answer = DOWN
    (endpoint,) = model.endpoints.all()
    model.insist("recover", endpoint.endpoint_id)
    with patch.object(sweep_due_endpoints, "RECOVERED_FIRST", 1):
        model.let_run(3)
    assert model.counts["opened again"] == 3
    model.settle()


@pytest.mark.guards("webhook-recovery-skips-due")
def test_a_recovery_leaves_what_is_due_anyway_as_it_is() -> None:
    model = model_with_events(1)
    model.receiver.answer = DOWN
    model.drain()
    model.pass_time(6)
    (endpoint,) = model.endpoints.all()
    model.insist("recover", endpoint.endpoint_id)
    model.sweep()
    assert model.counts["opened again"] == 0
    assert [row.attempt for row in model.deliveries.all()] == [1]
    model.settle()


def test_the_oldest_of_those_that_fail_tries_an_endpoint_that_rests() -> None:
    model = model_with_events(*range(MAX_FLIGHTS))
    for message in model.queue.visible():
        model.deliver(message, stops_at=POST)
    model.receiver.answer = DOWN
    model.go_on()
    (endpoint,) = model.endpoints.all()
    assert endpoint.probe == min(row.delivery_id for row in model.deliveries.all())
    model.settle()


def test_a_last_attempt_lets_another_delivery_try_an_endpoint_that_rests() -> None:
    model = model_with_events(*range(FAILURES_TO_REST))
    model.receiver.answer = DOWN
    model.drain()
    model.plant(attempt=MAX_ATTEMPTS - 1)
    (resting,) = model.endpoints.all()
    assert resting.probe is not None
    model.pass_time(60)
    model.drain()
    (endpoint,) = model.endpoints.all()
    assert (endpoint.rests_until, endpoint.probe) == (model.now, None)
    model.settle()


def test_an_event_that_is_refused_for_hours_makes_no_rest_long() -> None:
    model = model_with_events(1)
    model.receiver.answer = DOWN
    model.drain()
    model.queue.messages.clear()
    model.plant(attempt=6)
    model.receiver.answer = OK
    model.tell(2)
    model.drain()
    model.receiver.answer = DOWN
    model.plant(due_at=model.now)
    model.let_run(2)
    for number in range(3, 3 + FAILURES_TO_REST):
        model.tell(number)
    model.drain()
    (endpoint,) = model.endpoints.all()
    assert endpoint.rests_until is not None, "and the stores have checked for how long"
    model.receiver.answer = OK
    model.settle()


@pytest.mark.guards("webhook-attempts-remembered-bound")
def test_a_row_describes_its_last_attempts_alone() -> None:
    model = model_with_events(1)
    earlier = tuple(DeliveryAttempt(number=1, started_at=number) for number in range(REMEMBERED_ATTEMPTS + 5))
    model.plant(attempts=earlier)
    model.drain()
    assert [len(row.attempts) for row in model.deliveries.all()] == [REMEMBERED_ATTEMPTS]


def test_messages_do_not_multiply() -> None:
    model = model_with_events(*range(6 * MAX_FLIGHTS))
    model.queue.messages[MAX_FLIGHTS + 2 :] = []
    for message in model.queue.visible():
        model.deliver(message, stops_at=POST)
    model.go_on()
    assert len(model.queue.messages) == MAX_FLIGHTS
    model.settle()


def test_what_the_model_takes_for_granted_is_what_the_template_says() -> None:
    queue = deployment.of_type("AWS::SQS::Queue")["DeliveryQueue"]
    assert deployment.functions()["deliver_event"].timeout_seconds == TIMEOUT_SECONDS
    assert queue["VisibilityTimeout"] == VISIBILITY_SECONDS
    assert queue["RedrivePolicy"]["maxReceiveCount"] == MAX_RECEIVES


def test_a_broken_promise_is_told() -> None:
    model = model_with_events(1)
    (row,) = model.deliveries.all()
    del model.deliveries.rows[row.endpoint_id][row.delivery_id]
    with pytest.raises(Broken, match="every event that was heard has its delivery"):
        model.settle()
