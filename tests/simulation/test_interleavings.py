"""Processes that pause between two of their calls while others run: the fences decide, each shown by a history."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from darkroom.domain.images.image import Attempt, DeadLetterState, Image, Status
from tests.simulation.model.processes import Call, Fault
from tests.simulation.model.world import REUSE, Counts, Model, pretended_engine
from tests.support.fakes.world import TIMEOUT_SECONDS

pytestmark = pytest.mark.promise("interleavings")

GOOD, _, _, POISON, KILLER = range(5)

CLAIM, FINISH = (Call(store="images", number=number) for number in range(2))
"""A worker's calls for the first attempt."""

CLAIM_AGAIN, FINISH_AGAIN = (Call(store="images", number=number) for number in (1, 2))
"""Those for any other attempt, for which the first call finds no row that it may claim unseen."""


@pytest.fixture
def model() -> Iterator[Model]:
    """A Darkroom that raises when a promise is broken, on the write that breaks it or when it settles."""
    model = Model(pretended_engine(), Counts())
    yield model
    model.close()


def submitted(model: Model, which: int = GOOD) -> str:
    model.submit(model.engine.photos[which], "acme", 0, None)
    return next(reversed(model.images.rows))


def row(model: Model, image_id: str) -> Image:
    return model.images.rows[image_id]


def test_of_two_workers_at_once_one_claims(model: Model) -> None:
    image_id = submitted(model)
    (message,) = model.lanes.messages
    model.lanes.send(message.message)
    for received in list(model.lanes.messages):
        model.deliver(received, stops_at=CLAIM)
    model.go_on()
    assert model.counts.deliveries["done"] == 1 == row(model, image_id).attempt
    model.settle()


@pytest.mark.guards("fence-on-claim")
def test_of_two_workers_that_read_the_same_row_one_claims(model: Model) -> None:
    image_id = submitted(model)
    earlier = Attempt(run=1, number=1, request_id="r", started_at=0)
    model.images.rows[image_id] = replace(row(model, image_id), attempt=1, attempts=(earlier,))
    (message,) = model.lanes.messages
    model.lanes.send(message.message)
    for received in list(model.lanes.messages):
        model.deliver(received, stops_at=CLAIM_AGAIN)
    model.go_on()
    assert (model.counts.deliveries["fenced"], model.counts.deliveries["done"]) == (1, 1)
    assert row(model, image_id).attempt == 2
    model.settle()


@pytest.mark.guards("reuse-lost-race-asks-again")
def test_of_two_uploads_that_reuse_one_makes_the_image_and_if_it_is_deleted_the_other_the_next(model: Model) -> None:
    photo = model.engine.photos[GOOD]
    model.submit(photo, "acme", 0, REUSE, stops_at=Call(store="images", number=1))
    model.submit(photo, "acme", 0, REUSE)
    (first,) = model.images.rows
    model.delete(first, "acme")
    model.go_on()
    (second,) = model.images.rows.keys() - {first}
    model.submit(photo, "acme", 0, REUSE)
    assert [image_id for image_id in model.images.rows if not row(model, image_id).is_deleted] == [second]
    model.settle()


@pytest.mark.guards("fence-on-terminal-write")
def test_a_worker_does_not_finish_what_was_withdrawn_meanwhile(model: Model) -> None:
    image_id = submitted(model)
    model.deliver(model.lanes.messages[0], stops_at=FINISH)
    model.delete(image_id, "acme")
    model.go_on()
    assert row(model, image_id).status is Status.CANCELLED
    assert model.outputs.objects == {}
    model.settle()


@pytest.mark.guards("fence-on-failed-attempt")
def test_a_failed_attempt_does_not_put_back_what_was_withdrawn_meanwhile(model: Model) -> None:
    image_id = submitted(model, POISON)
    model.deliver(model.lanes.messages[0], stops_at=FINISH)
    model.delete(image_id, "acme")
    model.go_on()
    assert row(model, image_id).status is Status.CANCELLED
    model.settle()


@pytest.mark.guards("fence-on-withdrawal")
def test_a_withdrawal_does_not_cancel_what_was_done_meanwhile(model: Model) -> None:
    image_id = submitted(model)
    model.delete(image_id, "acme", stops_at=Call(store="images", number=1))
    model.deliver(model.lanes.messages[0])
    model.go_on()
    assert row(model, image_id).status is Status.DONE and row(model, image_id).is_deleted
    model.settle()


@pytest.mark.guards("fence-on-sweep")
def test_a_sweep_does_not_mark_what_was_done_meanwhile(model: Model) -> None:
    image_id = submitted(model)
    model.pass_time(1200)
    model.sweep(stops_at=Call(store="images", number=1))
    model.deliver(model.lanes.messages[0])
    model.go_on()
    assert model.counts.looks["fenced"] == 1
    assert row(model, image_id).due_at is None
    model.settle()


@pytest.mark.guards("sweeper-second-removal")
def test_what_a_worker_writes_after_the_first_removal_goes_with_the_second(model: Model) -> None:
    image_id = submitted(model)
    model.deliver(
        model.lanes.messages[0],
        stops_at=Call(store="outputs", number=0),
        fault=Fault(at=Call(store="outputs", number=1), mode="dies before"),
    )
    model.delete(image_id, "acme")
    model.sweep()
    model.go_on()
    assert len(model.outputs.objects) == 1, "until the last look"
    model.settle()


@pytest.mark.guards("claim-lease-outlasts-function")
def test_a_live_lease_outlasts_its_function(model: Model) -> None:
    image_id = submitted(model)
    model.deliver(model.lanes.messages[0], stops_at=FINISH)
    model.lanes.hide(model.lanes.messages[0], 0)
    lease_until = row(model, image_id).lease_until
    assert lease_until is not None and lease_until > model.now + TIMEOUT_SECONDS * 1000
    model.skew("worker", TIMEOUT_SECONDS + 5)  # another worker's clock is ahead by a little
    model.deliver(model.lanes.messages[0])
    assert model.counts.deliveries["leased"] == 1
    model.skew("worker", 0)
    model.go_on()
    assert row(model, image_id).status is Status.DONE
    model.settle()


@pytest.mark.guards("objects-run-in-output-key")
def test_what_a_run_before_remembered_is_not_this_runs_output(model: Model) -> None:
    image_id = submitted(model)

    def deliver_next(fault: Fault) -> None:
        while not model.lanes.visible():
            model.pass_time(60)
            model.sweep()
        model.deliver(model.lanes.visible()[0], fault=fault)

    deliver_next(Fault(at=FINISH, mode="throttled"))  # so it keeps what it has made
    for _ in range(4):  # every other is lost, until the sweeper gives the run up
        deliver_next(Fault(at=FINISH_AGAIN, mode="dies before"))
    while row(model, image_id).dead_letter is not DeadLetterState.KEPT:
        model.pass_time(60)
        model.sweep()
    model.replay("slow", "letters", image_id)
    while row(model, image_id).attempt == 0:  # a message of the run before is still there
        deliver_next(Fault(at=Call(store="outputs", number=1), mode="dies before"))
    while row(model, image_id).status is not Status.DONE:
        model.let_run(1)
    assert {variant.key.split("/")[2] for variant in row(model, image_id).variants} == {"2"}
    model.settle()


def test_two_sweeps_at_once_leave_one_dead_letter(model: Model) -> None:
    image_id = submitted(model, POISON)
    while row(model, image_id).status is not Status.FAILED:
        model.pass_time(60)
        for message in model.lanes.visible():
            model.deliver(message)
    model.sweep_twice([1] * 12, stops_at=Call(store="dead_letters", number=0))
    assert len(model.dead_letters.all()) == 1
    model.settle()


def test_an_image_that_kills_its_workers_ends_with_one_dead_letter_that_explains_itself(model: Model) -> None:
    submitted(model, KILLER)
    model.settle()
    (dead_letter,) = model.dead_letters.all()
    assert dead_letter.explanation is not None and '"cause": "worker_lost"' in dead_letter.explanation
