"""The transition table, and every decision that moves an image along it."""

from dataclasses import replace
from typing import Any

import pytest

from darkroom.domain.images.claim import Claim, Expire, GiveUp, Lease, NothingToDo, Redriven, TooEarly, claim
from darkroom.domain.images.image import (
    DUE_SHARD_NAMES,
    Attempt,
    DeadLetterState,
    Image,
    Source,
    Status,
    Variant,
    due_shard_of,
    has_expired,
    message_for,
)
from darkroom.domain.images.transitions import (
    ARRIVAL_GRACE_SECONDS,
    TRANSITIONS,
    UPLOAD_SECONDS,
    TransitionRefused,
    arrive,
    await_upload,
    complete,
    delete,
    escalate,
    expire_upload,
    give_up,
    put_back,
    reject,
    renew_upload,
)
from darkroom.domain.kernel.message import Message
from darkroom_cli.operator.domain.next_run import redo, replay
from tests.support.images import CAUSE, DUE_AT, LEASE_UNTIL, NOT_BEFORE, NOW, awaiting, pending, processing


def in_status(status: Status) -> Image:
    return pending(status=status, due_at=None if status.is_terminal else NOW)


def try_claim(
    image: Image, message: Message | None = None, now: int = NOW
) -> Claim | GiveUp | Expire | Redriven | TooEarly | NothingToDo:
    lease = Lease(
        claimed_by="me",
        request_id="request",
        now=now,
        lease_until=LEASE_UNTIL,
        not_before=NOT_BEFORE,
        due_at=DUE_AT,
    )
    return claim(image, message or message_for(image), lease)


def test_every_status_can_be_reached_and_every_unfinished_one_can_end() -> None:
    assert set(TRANSITIONS) == set(Status)
    reached = set().union(*TRANSITIONS.values())
    assert reached | {Status.AWAITING_UPLOAD} == set(Status)
    for status in Status:
        if not status.is_terminal:
            assert any(target.is_terminal for target in TRANSITIONS[status]), status


@pytest.mark.guards("terminal-state-next-run-only")
def test_only_a_replay_and_a_redo_leave_a_terminal_state() -> None:
    leaving = {status: TRANSITIONS[status] for status in Status if status.is_terminal and TRANSITIONS[status]}
    assert leaving == {Status.FAILED: {Status.PENDING}, Status.DONE: {Status.PENDING}}
    for ended in (in_status(Status.FAILED), in_status(Status.DONE)):
        with pytest.raises(TransitionRefused, match=f"{ended.status} to pending"):
            put_back(ended, now=NOW, delay_seconds=1, cause=CAUSE)
        with pytest.raises(TransitionRefused, match=f"{ended.status} to pending"):
            arrive(ended, CAME, now=NOW)


def test_an_accepted_image_is_pending_and_due_after_twice_its_lanes_service_level() -> None:
    image = pending()
    assert (image.status, image.run, image.attempt, image.schedule) == (Status.PENDING, 1, 0, 0)
    assert image.due_at == NOW + 2 * 600 * 1000


def test_the_first_delivery_claims() -> None:
    claimed = try_claim(pending())
    assert isinstance(claimed, Claim)
    assert claimed.image.status is Status.PROCESSING
    assert claimed.image.attempt == 1
    assert (claimed.image.claimed_by, claimed.image.lease_until, claimed.image.due_at) == ("me", LEASE_UNTIL, DUE_AT)


@pytest.mark.guards("claim-live-lease")
def test_a_delivery_during_anothers_lease_has_nothing_to_do() -> None:
    assert try_claim(processing(), now=LEASE_UNTIL) == NothingToDo(reason="leased")


def test_a_lost_workers_image_waits_for_the_lease_and_the_backoff() -> None:
    claimed = try_claim(processing(not_before=None), now=LEASE_UNTIL + 1)
    assert isinstance(claimed, Claim), "also of a row that an older version has written"
    assert claimed.image.attempt == 2
    first = try_claim(pending())
    assert isinstance(first, Claim) and first.image.not_before == NOT_BEFORE
    assert try_claim(first.image, now=LEASE_UNTIL + 1) == NothingToDo(reason="backing_off")
    assert isinstance(try_claim(first.image, now=NOT_BEFORE), Claim)


@pytest.mark.guards("claim-backoff-respected", "claim-failed-attempt-backoff")
def test_no_message_begins_another_attempt_before_the_backoff_is_over() -> None:
    back = put_back(processing(), now=NOW, delay_seconds=20, cause=CAUSE)
    assert back.not_before == NOW + 20_000
    assert try_claim(back, now=NOW + 19_999) == NothingToDo(reason="backing_off")
    assert isinstance(try_claim(back, now=NOW + 20_000), Claim)


@pytest.mark.guards("claim-end-clears-backoff")
def test_what_an_operator_begins_anew_waits_for_no_backoff_of_the_run_before() -> None:
    assert replay(give_up(processing(), now=NOW), now=NOW).not_before is None


def test_what_only_an_operator_can_help_fails_for_good_and_owes_a_dead_letter() -> None:
    failed = escalate(processing(), code="original_missing", message="…", now=NOW, cause=CAUSE)
    assert failed.error is not None and (failed.error.code, failed.error.retryable) == ("original_missing", False)
    assert (failed.status, failed.dead_letter, failed.due_at) == (Status.FAILED, DeadLetterState.OWED, NOW)
    assert (failed.attempts[-1].ended_at, failed.attempts[-1].cause) == (NOW, CAUSE)


@pytest.mark.guards("claim-ended-refused")
@pytest.mark.parametrize("status", [status for status in Status if status.is_terminal])
def test_a_delivery_of_a_finished_image_has_nothing_to_do(status: Status) -> None:
    assert try_claim(in_status(status)) == NothingToDo(reason="terminal")


def test_a_delivery_before_the_upload_has_nothing_to_do() -> None:
    assert try_claim(in_status(Status.AWAITING_UPLOAD)) == NothingToDo(reason="too_early")


@pytest.mark.guards("delay-no-early-start")
def test_a_delivery_before_process_at_comes_again_then() -> None:
    for status in (Status.SCHEDULED, Status.PENDING):
        assert try_claim(pending(status=status, process_at=NOW + 1)) == TooEarly(process_at=NOW + 1)
        assert isinstance(try_claim(pending(status=status, process_at=NOW)), Claim)


@pytest.mark.guards("delay-expired-not-begun")
@pytest.mark.parametrize("status", [Status.SCHEDULED, Status.PENDING])
def test_what_has_expired_is_not_begun(status: Status) -> None:
    expired = try_claim(pending(status=status, expires_at=NOW))
    assert isinstance(expired, Expire)
    assert (expired.image.status, expired.image.due_at, expired.image.waiting_since) == (Status.EXPIRED, None, None)
    assert expired.image.error is not None and expired.image.error.code == "expired"
    assert isinstance(try_claim(pending(status=status, expires_at=NOW + 1)), Claim)


def test_what_was_begun_is_finished_whenever_it_expires() -> None:
    assert isinstance(try_claim(processing(expires_at=NOW), now=NOT_BEFORE), Claim)


@pytest.mark.guards("claim-stale-message")
@pytest.mark.parametrize(
    "change", [{"run": 2}, {"schedule": 1}, {"tenant_id": "another"}, {"lane": "fast"}], ids=lambda c: next(iter(c))
)
def test_a_message_that_does_not_fit_its_row_has_nothing_to_do(change: dict[str, object]) -> None:
    image = pending()
    message = message_for(image).model_copy(update=change)
    assert try_claim(image, message) == NothingToDo(reason="stale")


@pytest.mark.guards("claim-attempts-bound")
def test_the_sixth_delivery_gives_up() -> None:
    given_up = try_claim(pending(attempt=5))
    assert isinstance(given_up, GiveUp)
    assert given_up.image.status is Status.FAILED
    assert given_up.image.error is not None and given_up.image.error.code == "internal"


def test_a_worker_that_died_on_the_last_attempt_is_called_lost_and_its_attempt_never_ended() -> None:
    given_up = try_claim(processing(attempt=5), now=LEASE_UNTIL + 1)
    assert isinstance(given_up, GiveUp)
    assert given_up.image.error is not None and given_up.image.error.code == "worker_lost"
    (attempt,) = give_up(processing(), now=NOW).attempts
    assert (attempt.ended_at, attempt.cause) == (None, None)


def test_a_finished_image_is_due_no_more_and_leased_to_nobody() -> None:
    for finished in (
        complete(processing(), (), notices=(), now=NOW),
        reject(processing(), code="undecodable", message="…", now=NOW),
    ):
        assert finished.status.is_terminal
        assert (finished.due_at, finished.due_shard, finished.lease_until, finished.claimed_by) == (None,) * 4
        assert finished.not_before is None
        assert (finished.waiting_since, finished.waiting_shard) == (None, None)
        assert finished.completed_at == NOW


def test_a_refusal_is_final_and_owes_no_dead_letter_and_what_was_given_up_owes_one_and_may_be_tried_again() -> None:
    refused = reject(processing(), code="undecodable", message="Broken.", now=NOW)
    assert refused.error is not None and not refused.error.retryable
    exhausted = give_up(processing(), now=NOW)
    assert exhausted.error is not None and exhausted.error.retryable
    given_up = give_up(processing(), now=NOW, cause=CAUSE)
    assert (given_up.dead_letter, given_up.due_at, given_up.waiting_since) == (DeadLetterState.OWED, NOW, None)
    assert given_up.attempts[-1].cause == CAUSE
    assert reject(processing(), code="undecodable", message="…", now=NOW).dead_letter is None


def test_a_failed_attempt_is_due_a_minute_after_its_message_comes_back() -> None:
    back = put_back(processing(), now=NOW, delay_seconds=20, cause=CAUSE)
    assert (back.status, back.due_at, back.lease_until) == (Status.PENDING, NOW + 80_000, None)
    assert back.attempt == 1, "the attempt counts"
    assert (back.attempts[-1].ended_at, back.attempts[-1].cause) == (NOW, CAUSE)
    swept = put_back(processing(), now=NOW, delay_seconds=20, cause=CAUSE, message_returns=False)
    assert swept.due_at == NOW + 20_000, "no message comes back that the sweeper would wait for"


def test_a_row_remembers_its_latest_ten_attempts() -> None:
    image = pending(attempts=tuple(Attempt(run=1, number=n, request_id="r", started_at=n) for n in range(1, 11)))
    won = try_claim(replace(image, run=3, attempt=0))
    assert isinstance(won, Claim)
    assert [(attempt.run, attempt.number) for attempt in won.image.attempts[-2:]] == [(1, 10), (3, 1)]
    assert len(won.image.attempts) == 10


@pytest.mark.guards("replay-and-redo-source-status")
def test_a_replay_is_a_new_run_with_all_its_attempts() -> None:
    again = replay(give_up(processing(attempt=5), now=NOW, cause=CAUSE), now=NOW + 5)
    assert (again.status, again.run, again.attempt) == (Status.PENDING, 2, 0)
    assert (again.error, again.dead_letter, again.completed_at) == (None, None, None)
    assert (again.waiting_since, again.due_at) == (NOW + 5, NOW + 5 + 1_200_000)
    with pytest.raises(TransitionRefused, match="done to pending"):
        replay(in_status(Status.DONE), now=NOW)


@pytest.mark.guards("attention-run-replaces-point", "redo-clears-expiry")
def test_a_redo_is_a_new_run_that_keeps_what_the_one_before_has_made_but_for_its_expiry() -> None:
    made = (Variant(name="a", width=1, height=1, format="jpeg", size_bytes=1, sha256="s", key="outputs/i/1/a.jpg"),)
    details: dict[str, Any] = {"placeholder": {"color": "#fff"}, "attention": {"x": 1, "y": 2}}
    done = complete(processing(expires_at=NOW + 1), made, notices=("one",), **details, now=NOW)
    again = redo(done, now=NOW + 5)
    assert (again.status, again.outcome, again.run, again.attempt) == (Status.PENDING, Status.DONE, 2, 0)
    assert (again.completed_at, again.completed_version) == (done.completed_at, done.completed_version)
    assert (again.variants, again.notices) == (made, ("one",))
    assert (again.placeholder, again.attention) == (details["placeholder"], details["attention"])
    without = complete(replace(again, status=Status.PROCESSING), made, notices=(), now=NOW + 9)
    assert (without.placeholder, without.attention) == (None, None)
    assert (again.waiting_since, again.due_at, again.expires_at) == (NOW + 5, NOW + 5 + 1_200_000, None)
    with pytest.raises(TransitionRefused, match="not failed"):
        redo(in_status(Status.FAILED), now=NOW)


def test_a_message_of_an_earlier_run_reminds_of_this_one() -> None:
    again = replay(give_up(processing(), now=NOW), now=NOW)
    assert isinstance(try_claim(again, message_for(processing())), Claim)


def test_a_withdrawn_image_is_cancelled_and_due_for_its_removal() -> None:
    for unfinished in (pending(), processing(), in_status(Status.AWAITING_UPLOAD), in_status(Status.SCHEDULED)):
        gone = delete(unfinished, now=NOW)
        assert (gone.status, gone.due_at, gone.deleted_at) == (Status.CANCELLED, NOW, NOW)
        assert gone.waiting_since is None and gone.lease_until is None
        assert delete(gone, now=NOW + 9) == gone


def test_a_finished_image_that_is_withdrawn_keeps_its_status_and_shows_nothing() -> None:
    gone = delete(complete(processing(), (), notices=(), placeholder={"color": "#fff"}, now=NOW), now=NOW + 1)
    assert (gone.status, gone.deleted_at, gone.due_at) == (Status.DONE, NOW + 1, NOW + 1)
    assert (gone.variants, gone.placeholder, gone.dead_letter) == ((), None, None)


def test_a_transition_that_the_table_does_not_have_is_a_bug() -> None:
    with pytest.raises(TransitionRefused, match="done to done"):
        complete(in_status(Status.DONE), (), notices=(), now=NOW)
    with pytest.raises(TransitionRefused):
        arrive(arrive(awaiting(), CAME, now=NOW), CAME, now=NOW)


def test_the_shards_are_used_evenly() -> None:
    counts = dict.fromkeys(DUE_SHARD_NAMES, 0)
    for number in range(16_000):
        counts[due_shard_of(f"{number:026d}")] += 1
    assert min(counts.values()) > 800


CAME = Source(version_id="v", sha256="s", size_bytes=1, media_type="image/jpeg")


def test_an_image_that_waits_for_its_upload_keeps_no_lane_waiting_and_is_looked_at_when_that_can_no_longer_come() -> (
    None
):
    image = awaiting()
    assert (image.status, image.has_original) == (Status.AWAITING_UPLOAD, False)
    assert (image.waiting_since, image.enqueued_at, image.waiting_shard) == (None, None, None)
    assert image.due_at == NOW + (UPLOAD_SECONDS + ARRIVAL_GRACE_SECONDS) * 1000


def test_an_upload_is_waited_for_as_long_as_it_is_wanted_and_anew_if_somebody_asks_again() -> None:
    image = await_upload(pending(expires_at=NOW + 60_000), now=NOW)
    assert image.due_at == NOW + 60_000
    assert not has_expired(image, NOW + 59_999) and has_expired(image, NOW + 60_000)
    later = NOW + 250_000
    assert renew_upload(awaiting(rescues=3), now=later) == awaiting(due_at=(awaiting().due_at or 0) + 250_000)


def test_what_has_come_is_as_if_it_had_been_accepted_then() -> None:
    later = NOW + 100_000
    image = arrive(awaiting(rescues=2), CAME, now=later)
    assert (image.status, image.source, image.has_original) == (Status.PENDING, CAME, True)
    assert (image.waiting_since, image.enqueued_at, image.rescues) == (later, later, 0)
    assert image.due_at == later + 1_200_000
    assert image.created_at == NOW


@pytest.mark.parametrize(
    ("process_at", "status", "begins_at"),
    [
        (NOW + 90_000, Status.PENDING, NOW + 100_000),
        (NOW + 100_000, Status.PENDING, NOW + 100_000),
        (NOW + 100_001, Status.SCHEDULED, NOW + 100_001),
    ],
)
def test_what_comes_before_its_time_is_scheduled(process_at: int, status: Status, begins_at: int) -> None:
    image = arrive(awaiting(process_at=process_at, expires_at=NOW + 10**9), CAME, now=NOW + 100_000)
    assert (image.status, image.waiting_since, image.enqueued_at) == (status, begins_at, begins_at)
    assert image.due_at == begins_at + 1_200_000


def test_what_never_comes_expires_and_says_so() -> None:
    image = expire_upload(awaiting(), now=NOW + 900_000)
    assert (image.status, image.due_at, image.completed_at) == (Status.EXPIRED, None, NOW + 900_000)
    assert image.error is not None and image.error.code == "never_uploaded"
