"""Which deliveries count for the service level of webhooks, how long they took, and which of them are bad."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from darkroom.domain.images.service_level import SLOW_BURN
from darkroom.domain.webhooks.delivery import Answer, Delivery, DeliveryAttempt, claim
from darkroom.domain.webhooks.endpoint import HOUR, LOOK_SECONDS, MOST_QUICK, SECOND, InFlight, reserve_slot
from darkroom.domain.webhooks.first_attempts import (
    BURN,
    LATE_SECONDS,
    MOST_OVER,
    UNTAKEN_SECONDS,
    FirstAttempt,
    bad_of,
    burn_of,
    first_attempt,
)
from tests.support.fakes.webhooks import OK
from tests.support.fakes.world import WebhooksWorld, event
from tests.support.webhooks import delivery, endpoint

EVENT_AT = 1_795_251_630_000
DOWN, GONE = Answer(milliseconds=9, status=500), Answer(milliseconds=9, status=410)
GOOD, BAD = FirstAttempt(seconds=1.0, is_bad=False), FirstAttempt(seconds=1.0, is_bad=True)
HEARD = DeliveryAttempt(number=1, started_at=EVENT_AT, milliseconds=9, status=500)
LOST = DeliveryAttempt(number=1, started_at=EVENT_AT)


def counted(
    answer: Answer = OK, *, after: float = 1.0, earlier: tuple[DeliveryAttempt, ...] = (), **row: Any
) -> FirstAttempt | None:
    """How an attempt counts whose answer came so many seconds after its event."""
    now = EVENT_AT + round(after * 1000)
    waiting = replace(delivery(), delivery_id=f"{EVENT_AT:014}-event", due_at=EVENT_AT, attempts=earlier)
    claimed = claim(replace(waiting, attempt=len(earlier)), claimed_by="me", now=EVENT_AT)
    assert isinstance(claimed, Delivery)
    well = endpoint(**{"last_success_at": now - HOUR, **row})
    return first_attempt(well, claimed, answer, now=now)


@pytest.mark.guards("webhook-objective-first-answer-only", case="tried again")
@pytest.mark.guards("webhook-objective-well-receiver", case="quiet for an hour")
@pytest.mark.guards("webhook-objective-gone-not-counted", case="gone")
@pytest.mark.guards("webhook-objective-turn-not-late", case="late after its turn")
@pytest.mark.parametrize(
    ("stated", "counts"),
    [
        ({}, GOOD),
        ({"answer": DOWN}, BAD),
        ({"answer": GONE}, None),
        ({"after": LATE_SECONDS}, FirstAttempt(seconds=LATE_SECONDS, is_bad=False)),
        ({"after": LATE_SECONDS + 1}, FirstAttempt(seconds=LATE_SECONDS + 1, is_bad=True)),
        ({"after": 3600, "crowded_at": EVENT_AT}, FirstAttempt(seconds=3600, is_bad=False)),
        ({"answer": DOWN, "crowded_at": EVENT_AT}, BAD),
        ({"failing_since": EVENT_AT}, None),
        ({"last_success_at": EVENT_AT - HOUR}, None),
        ({"last_success_at": None}, None),
        ({"earlier": (HEARD,)}, None),
        ({"earlier": (LOST,)}, BAD),
        ({"earlier": (LOST, HEARD)}, None),
    ],
    ids=[
        *("taken", "refused", "gone", "just in time", "late", "late after its turn", "refused in its turn", "failing"),
        *("quiet for an hour", "never answered", "tried again", "lost with its worker", "lost and tried again"),
    ],
)
def test_a_delivery_counts_once_by_the_first_answer_of_a_receiver_that_answers_well(
    stated: dict[str, Any], counts: FirstAttempt | None
) -> None:
    assert counted(**stated) == counts


def sent(world: WebhooksWorld, number: int) -> list[FirstAttempt | None]:
    """How what is sent to the endpoints of an event counts."""
    world.tell(event(number, time=world.now))
    return [world.deliver(message).first for message in world.take()]


@pytest.mark.parametrize("is_wide", [False, True], ids=["usual", "from a runway"])
def test_a_receiver_that_breaks_down_counts_by_the_delivery_that_was_on_its_way(is_wide: bool) -> None:
    world = WebhooksWorld()
    world.add()
    assert sent(world, 1) == [None], "it has not answered yet"
    (row,) = world.endpoints.rows.values()
    if is_wide:
        row = replace(row, quick=MOST_QUICK, widened_at=world.now, crowded_at=world.now)
        world.endpoints.rows.update(dict.fromkeys(world.endpoints.rows, row))
    assert [first and first.is_bad for first in sent(world, 2)] == [False]
    world.receiver.behaves = lambda _: DOWN
    assert [first and first.is_bad for first in sent(world, 3)] == [True]
    assert sent(world, 4) == [None], "it is known to fail"


def test_an_attempt_after_one_of_which_nothing_was_heard_may_repeat_it() -> None:
    world = WebhooksWorld()
    world.add()
    world.tell(event())
    (message,) = world.take()
    ((row,),) = (rows.values() for rows in world.deliveries.rows.values())
    lost = claim(row, claimed_by="another", now=world.now)
    assert isinstance(lost, Delivery)
    world.deliveries.change(row, lost)
    world.advance(2 * LOOK_SECONDS)
    repeated = world.deliver(message)
    assert (repeated.outcome, repeated.may_repeat) == ("delivered", True)
    assert not world.deliver(message).may_repeat


@pytest.mark.parametrize("is_called", [False, True], ids=["from the runway", "called"])
def test_an_attempt_after_one_that_was_lost_on_a_runway_may_repeat_it(is_called: bool) -> None:
    world = WebhooksWorld()
    world.add()
    world.tell(event())
    (message,) = world.take()
    ((place, row),) = world.endpoints.rows.items()
    row = replace(row, quick=MOST_QUICK, widened_at=world.now - 1, last_success_at=world.now, crowded_at=world.now)
    lost = InFlight(delivery_id=message.delivery_id, claimed_by="another", until=world.now)
    assert world.deliveries.take_place(message.endpoint_id, lost, now=world.now - 1, most=1) == "taken"
    world.endpoints.rows[place] = reserve_slot(row, message.delivery_id, now=world.now) if is_called else row
    repeated = world.deliver(message)
    assert (repeated.outcome, repeated.may_repeat) == ("delivered", True)


@pytest.mark.parametrize(
    ("counted", "bad", "rings"),
    [(9, 9, False), (10, 10, True), (100_000, 600, False), (100_000, 610, True)],
    ids=["nine of nine", "ten of ten", "six of a thousand", "more, by ten"],
)
def test_ten_bad_ones_ring_that_are_more_than_six_of_a_thousand(counted: int, bad: int, rings: bool) -> None:
    burn = bad * burn_of(is_bad=True) + (counted - bad) * burn_of(is_bad=False)
    assert (burn >= MOST_OVER) is rings
    assert bad_of(burn, counted) == bad
    assert BURN == SLOW_BURN


AGO = WebhooksWorld().now - UNTAKEN_SECONDS * SECOND - 1


@pytest.mark.guards("webhook-untaken-unheard", case="answered lately")
@pytest.mark.guards("webhook-untaken-not-just-opened", case="resumed")
@pytest.mark.parametrize(
    ("due_at", "row", "untaken"),
    [
        (AGO, {}, 1),
        (AGO + 1, {}, 0),
        (AGO, {"last_success_at": AGO + 1}, 0),
        (AGO, {"last_failure_at": AGO + 1}, 0),
        (AGO, {"last_success_at": AGO, "last_failure_at": AGO}, 1),
        (AGO, {"successes": 0}, 0),
        (AGO, {"paused_at": AGO}, 0),
        (AGO, {"rests_until": AGO}, 0),
    ],
    ids=["late", "not yet", "answered lately", "failed lately", "answered before", "resumed", "paused", "resting"],
)
def test_a_delivery_that_no_worker_takes_counts_as_bad_with_each_look(
    due_at: int, row: dict[str, Any], untaken: int
) -> None:
    world = WebhooksWorld()
    world.add()
    world.tell(event())
    ((place, made),) = world.endpoints.rows.items()
    world.endpoints.rows[place] = replace(made, due_at=world.now, **row)
    (of_endpoint,) = world.deliveries.rows.values()
    of_endpoint.update({name: replace(waiting, due_at=due_at) for name, waiting in of_endpoint.items()})
    assert world.sweep().untaken == untaken
