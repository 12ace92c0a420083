"""The transition table, and every decision that moves an image along it."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from darkroom.domain.image import (
    DUE_SHARD_NAMES,
    TRANSITIONS,
    Claim,
    GiveUp,
    Image,
    NothingToDo,
    Rescue,
    Source,
    Status,
    TransitionRefused,
    accept,
    claim,
    complete,
    due_shard_of,
    give_up,
    look_at_due,
    message_for,
    put_back,
    reject,
)
from darkroom.domain.message import Message
from darkroom.domain.presets import PRESETS

NOW = 1_795_251_600_000
LEASE_UNTIL = NOW + 90_000
DUE_AT = NOW + 420_000


def pending(**changes: object) -> Image:
    image = accept(
        image_id="0" * 26,
        tenant_id="default",
        lane="slow",
        preset="standard",
        recipe=PRESETS["standard"],
        fingerprint="f",
        correlation_id="c",
        source=Source(version_id="v", sha256="s", size_bytes=1, media_type="image/jpeg"),
        now=NOW,
    )
    return replace(image, **changes)  # type: ignore[arg-type]


def processing(**changes: object) -> Image:
    return pending(
        **{
            "status": Status.PROCESSING,
            "attempt": 1,
            "lease_until": LEASE_UNTIL,
            "claimed_by": "somebody",
            "due_at": DUE_AT,
            **changes,
        }
    )


def in_status(status: Status) -> Image:
    return pending(status=status, due_at=None if status.is_terminal else NOW)


def try_claim(image: Image, message: Message | None = None, now: int = NOW) -> Claim | GiveUp | NothingToDo:
    return claim(image, message or message_for(image), now=now, claimed_by="me", lease_until=LEASE_UNTIL, due_at=DUE_AT)


def test_every_status_has_its_row_in_the_table() -> None:
    assert set(TRANSITIONS) == set(Status)


def test_only_a_replay_leaves_a_terminal_state() -> None:
    leaving = {status: TRANSITIONS[status] for status in Status if status.is_terminal and TRANSITIONS[status]}
    assert leaving == {Status.FAILED: {Status.PENDING}}


def test_every_status_can_be_reached_and_every_unfinished_one_can_end() -> None:
    reached = set().union(*TRANSITIONS.values())
    assert reached | {Status.AWAITING_UPLOAD} == set(Status)
    for status in Status:
        if not status.is_terminal:
            assert any(target.is_terminal for target in TRANSITIONS[status]), status


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


def test_a_delivery_during_anothers_lease_has_nothing_to_do() -> None:
    assert try_claim(processing(), now=LEASE_UNTIL) == NothingToDo(reason="leased")


def test_a_delivery_after_a_lapsed_lease_claims_the_next_attempt() -> None:
    claimed = try_claim(processing(), now=LEASE_UNTIL + 1)
    assert isinstance(claimed, Claim)
    assert claimed.image.attempt == 2


@pytest.mark.parametrize("status", [status for status in Status if status.is_terminal])
def test_a_delivery_of_a_finished_image_has_nothing_to_do(status: Status) -> None:
    assert try_claim(in_status(status)) == NothingToDo(reason="terminal")


@pytest.mark.parametrize("status", [Status.SCHEDULED, Status.AWAITING_UPLOAD])
def test_a_delivery_before_its_time_has_nothing_to_do(status: Status) -> None:
    assert try_claim(in_status(status)) == NothingToDo(reason="too_early")


def test_a_delivery_before_process_at_has_nothing_to_do() -> None:
    assert try_claim(pending(process_at=NOW + 1)) == NothingToDo(reason="too_early")
    assert isinstance(try_claim(pending(process_at=NOW)), Claim)


@pytest.mark.parametrize(
    "change", [{"run": 2}, {"schedule": 1}, {"tenant_id": "another"}, {"lane": "fast"}], ids=lambda c: next(iter(c))
)
def test_a_message_that_does_not_fit_its_row_has_nothing_to_do(change: dict[str, object]) -> None:
    image = pending()
    message = message_for(image).model_copy(update=change)
    assert try_claim(image, message) == NothingToDo(reason="stale")


def test_the_sixth_delivery_gives_up() -> None:
    given_up = try_claim(pending(attempt=5))
    assert isinstance(given_up, GiveUp)
    assert given_up.image.status is Status.FAILED
    assert given_up.image.error is not None and given_up.image.error.code == "internal"


def test_a_worker_that_died_on_the_last_attempt_is_called_lost() -> None:
    given_up = try_claim(processing(attempt=5), now=LEASE_UNTIL + 1)
    assert isinstance(given_up, GiveUp)
    assert given_up.image.error is not None and given_up.image.error.code == "worker_lost"


def test_a_finished_image_is_due_no_more_and_leased_to_nobody() -> None:
    for finished in (
        complete(processing(), (), notices=(), now=NOW),
        reject(processing(), code="undecodable", message="…", now=NOW),
        give_up(processing(), now=NOW),
    ):
        assert finished.status.is_terminal
        assert (finished.due_at, finished.due_shard, finished.lease_until, finished.claimed_by) == (None,) * 4
        assert finished.completed_at == NOW


def test_a_refusal_is_final_and_an_exhausted_image_may_be_tried_again() -> None:
    refused = reject(processing(), code="undecodable", message="Broken.", now=NOW)
    assert refused.error is not None and not refused.error.retryable
    exhausted = give_up(processing(), now=NOW)
    assert exhausted.error is not None and exhausted.error.retryable


def test_a_failed_attempt_is_due_a_minute_after_its_message_comes_back() -> None:
    back = put_back(processing(), now=NOW, delay_seconds=20)
    assert (back.status, back.due_at, back.lease_until) == (Status.PENDING, NOW + 80_000, None)
    assert back.attempt == 1, "the attempt counts"


def test_a_transition_that_the_table_does_not_have_is_a_bug() -> None:
    with pytest.raises(TransitionRefused, match="done to done"):
        complete(in_status(Status.DONE), (), notices=(), now=NOW)


def test_a_due_image_is_rescued_at_pauses_that_double_up_to_an_hour() -> None:
    image, pauses = pending(due_at=NOW), []
    now = NOW
    for _ in range(8):
        rescue = look_at_due(image, now=now)
        assert isinstance(rescue, Rescue)
        assert rescue.image.due_at is not None
        pauses.append((rescue.image.due_at - now) // 1000)
        image, now = rescue.image, rescue.image.due_at
    assert pauses == [60, 120, 240, 480, 960, 1920, 3600, 3600]


def test_a_rescue_is_no_attempt() -> None:
    rescue = look_at_due(pending(due_at=NOW), now=NOW)
    assert isinstance(rescue, Rescue)
    assert rescue.image.attempt == 0


@pytest.mark.parametrize(
    ("image", "reason"),
    [
        (pending(due_at=NOW + 1), "too_early"),
        (pending(due_at=None), "too_early"),
        (processing(due_at=NOW), "leased"),
        (pending(status=Status.DONE), "too_early"),
        (pending(status=Status.DONE, due_at=NOW), "terminal"),
        (pending(status=Status.SCHEDULED, due_at=NOW), "too_early"),
    ],
)
def test_what_is_not_due_is_left_alone(image: Image, reason: str) -> None:
    # The due index is eventually consistent: it may list what is due no more.
    image = replace(image, due_at=None) if image.status is Status.DONE and image.due_at != NOW else image
    assert look_at_due(image, now=NOW) == NothingToDo(reason=reason)  # type: ignore[arg-type]


def test_a_due_image_whose_worker_died_is_rescued() -> None:
    assert isinstance(look_at_due(processing(due_at=NOW, lease_until=NOW - 1), now=NOW), Rescue)


def test_a_due_image_without_attempts_is_given_up() -> None:
    given_up = look_at_due(processing(due_at=NOW, lease_until=NOW - 1, attempt=5), now=NOW)
    assert isinstance(given_up, GiveUp)
    assert given_up.image.error is not None and given_up.image.error.code == "worker_lost"


@given(st.text(alphabet="0123456789abcdef", min_size=26, max_size=26))
def test_every_image_is_in_one_of_the_shards_that_the_sweeper_reads(image_id: str) -> None:
    assert due_shard_of(image_id) in DUE_SHARD_NAMES


def test_the_shards_are_used_evenly() -> None:
    counts = dict.fromkeys(DUE_SHARD_NAMES, 0)
    for number in range(16_000):
        counts[due_shard_of(f"{number:026d}")] += 1
    assert min(counts.values()) > 800
