"""Developing a delivered image: one terminal state per run, whatever happens on the way."""

import base64
import hashlib
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import pairwise
from threading import Event
from typing import Any

import pytest

from darkroom.domain.dead_letters.dead_letter import explanation_in
from darkroom.domain.images.image import DeadLetterState, Status, message_for
from darkroom.domain.images.limits import Limits
from darkroom.domain.kernel.errors import NeedsOperator, Retryable
from darkroom.domain.kernel.lanes import LANES, SLOW, Lane
from darkroom.domain.kernel.retry import MAX_RECEIVES
from darkroom.domain.kernel.tenants import Tier
from darkroom.http.kernel.timetables import read_timetable
from darkroom.imaging import developing
from darkroom.operations.images.transcode_image import Early, Finished, Postponed, TryAgain
from darkroom.ports.images import IdempotencyUnavailable, OriginalMissing
from darkroom.wiring.kernel.runtime import at_once
from tests.support.fakes import World
from tests.support.fakes.damage import damage_once
from tests.support.fakes.pictures import encoded, jpeg, opened, picture
from tests.support.faults import ProcessDied, failing, meanwhile, raising

PHOTO = jpeg(640, 480)


def buggy(*_: object, **__: object) -> None:
    raise ZeroDivisionError("a bug")


def submitted(world: World, body: bytes = PHOTO, **more: Any) -> Any:
    world.submit(body, **more)
    return world.lanes.sent[-1]


@pytest.fixture
def message(world: World) -> Any:
    return submitted(world)


def test_a_delivered_image_is_done_with_its_variants(world: World, message: Any) -> None:
    assert isinstance(world.deliver(message), Finished)
    image = world.row(message.image_id)
    assert image.status is Status.DONE
    assert [(v.name, v.width, v.height, v.format) for v in image.variants] == [
        ("thumb", 256, 192, "jpeg"),
        ("medium", 640, 480, "jpeg"),
        ("large", 640, 480, "jpeg"),
        ("webp", 640, 480, "webp"),
    ]
    for variant in image.variants:
        body = world.outputs.objects[variant.key]
        assert (variant.size_bytes, variant.sha256) == (len(body), hashlib.sha256(body).hexdigest())
        assert opened(body).size == (variant.width, variant.height)
    assert sorted(world.outputs.objects) == [
        f"outputs/{message.image_id}/1/{name}" for name in ("large.jpg", "medium.jpg", "thumb.jpg", "webp.webp")
    ]


@pytest.mark.guards("worker-put-while-encoding")
def test_a_variant_is_put_while_others_are_still_encoded(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    message = submitted(world)
    something_is_put = Event()
    engine = sys.modules[developing.__module__]
    encode_under = vars(engine)["encode_under"]

    def encode(image: Any, file_format: str, **options: Any) -> Any:
        if file_format == "webp":
            assert something_is_put.wait(5), "the others are put before the last one is encoded"
        return encode_under(image, file_format, **options)

    monkeypatch.setattr(engine, "encode_under", encode)
    monkeypatch.setattr(world, "at_once", at_once)
    meanwhile(world.outputs, "put_if_absent", lambda *_, **__: something_is_put.set())
    world.deliver(message)
    assert world.row(message.image_id).status is Status.DONE


def test_a_delivery_of_an_unknown_image_is_settled(world: World, message: Any) -> None:
    world.images.rows.clear()
    outcome = world.deliver(message)
    assert isinstance(outcome, Finished) and outcome.reason == "gone"


@pytest.mark.guards("rejected-image-not-retried")
def test_a_refused_image_fails_on_its_first_attempt_and_is_settled(world: World) -> None:
    message = submitted(world, PHOTO[: len(PHOTO) // 2])
    outcome = world.deliver(message)
    assert isinstance(outcome, Finished), "the message is acknowledged: no dead letter"
    image = world.row(message.image_id)
    assert (image.status, image.attempt) == (Status.FAILED, 1)
    assert image.error is not None and (image.error.code, image.error.retryable) == ("truncated", False)


@pytest.mark.guards("claim-own-message-after-backoff")
def test_a_store_that_does_not_answer_puts_the_image_back(world: World, message: Any) -> None:
    original_get = world.originals.get
    world.originals.get = raising(Retryable("fetching the original: timeout"))
    outcome = world.deliver(message)
    assert isinstance(outcome, TryAgain) and outcome.delay_seconds == 26, "a second after the backoff"
    image = world.row(message.image_id)
    assert (image.status, image.attempt) == (Status.PENDING, 1)
    assert image.due_at == world.now + (25 + 60) * 1000
    world.originals.get = original_get
    world.advance(outcome.delay_seconds)
    world.deliver(message, receipt="receipt-2")
    assert (world.row(message.image_id).status, world.row(message.image_id).attempt) == (Status.DONE, 2)


@pytest.mark.guards("claim-backoff-respected")
def test_copies_of_a_message_begin_no_attempt_before_the_backoff_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("darkroom.operations.images.transcode_image.developing", buggy)
    world = World()
    message = submitted(world)
    began = []
    while world.row(message.image_id).status is not Status.FAILED:
        before = world.row(message.image_id).attempt
        for copy in range(7):
            outcome = world.deliver(message, receipt=f"copy {copy} at {world.now}")
            if world.row(message.image_id).attempt == before:
                assert outcome == Finished(image=world.row(message.image_id), reason="backing_off"), "it may go"
        if world.row(message.image_id).attempt > before:
            began.append(world.now)
        world.advance(1)
    assert len(began) == 5
    assert [later - earlier for earlier, later in pairwise(began)] == [25_000, 50_000, 100_000, 200_000]


@pytest.mark.guards("claim-lost-worker-backoff")
def test_a_worker_that_is_lost_leaves_its_lease_and_a_backoff(world: World, message: Any) -> None:
    began: list[int] = []
    world.originals.get = raising(ProcessDied)
    while len(began) < 5:
        try:
            world.deliver(message, receipt=f"at {world.now}")
        except ProcessDied:
            began.append(world.now)
        world.advance(1)
    assert [later - earlier for earlier, later in pairwise(began)] == [115_000, 140_000, 190_000, 290_000]


@pytest.mark.guards("claim-message-hidden-for-lease")
def test_the_message_of_a_killed_worker_in_the_fast_lane_comes_back_when_the_next_attempt_may_begin(
    world: World,
) -> None:
    message, hidden = submitted(world, tier=Tier.PAID), list[int]()
    original_get = world.originals.get
    world.originals.get = raising(ProcessDied)
    with pytest.raises(ProcessDied):
        world.deliver(message, hide=hidden.append)
    assert hidden == [116], "less than the queue's 360; the function is stopped after 60, so no live worker loses it"
    world.originals.get = original_get
    world.advance(hidden[0])
    world.deliver(message, receipt="receipt-2", receive_count=2)
    assert (world.row(message.image_id).status, world.row(message.image_id).attempt) == (Status.DONE, 2)


@pytest.mark.parametrize(("tier", "receive_count"), [(Tier.FREE, 1), (Tier.PAID, MAX_RECEIVES)])
def test_a_lane_that_promises_less_and_a_last_receive_leave_the_queues_own_timeout(
    world: World, tier: Tier, receive_count: int
) -> None:
    message, hidden = submitted(world, tier=tier), list[int]()
    world.deliver(message, receive_count=receive_count, hide=hidden.append)
    assert (hidden, world.row(message.image_id).status) == ([], Status.DONE)


@pytest.mark.guards("claim-hiding-failure-contained")
@pytest.mark.parametrize("failure", [Retryable("throttled"), PermissionError("denied")])
def test_a_message_that_cannot_be_hidden_anew_costs_its_image_nothing(world: World, failure: Exception) -> None:
    message = submitted(world, tier=Tier.PAID)
    world.deliver(message, hide=raising(failure))
    assert (world.row(message.image_id).status, world.row(message.image_id).attempt) == (Status.DONE, 1)


@pytest.mark.guards("memory-outage-costs-no-attempt")
def test_a_memory_that_is_not_to_be_had_costs_no_attempt(world: World, message: Any) -> None:
    world.once = raising(IdempotencyUnavailable("the table does not answer"))
    world.deliver(message)
    assert (world.row(message.image_id).status, world.row(message.image_id).attempt) == (Status.DONE, 1)


@pytest.mark.guards("memory-newer-version-redone")
@pytest.mark.parametrize(
    "remembered",
    [
        {},
        {"variants": []},
        {"notices": []},
        {"variants": [{"name": "thumb", "blurhash": "…"}], "notices": []},
        {"variants": 7, "notices": []},
    ],
)
def test_what_a_newer_version_remembers_is_made_again(world: World, message: Any, remembered: dict[str, Any]) -> None:
    world.once = lambda key, work, is_first: remembered
    world.deliver(message)
    image = world.row(message.image_id)
    assert (image.status, image.attempt, len(image.variants)) == (Status.DONE, 1, 4)


@pytest.mark.guards("original-missing-is-final")
def test_an_image_whose_original_is_missing_fails_at_once_with_one_explained_dead_letter() -> None:
    world = World()
    message = submitted(world)
    del world.originals.objects[message.image_id]
    outcome = world.deliver(message)
    assert isinstance(outcome, Finished) and isinstance(outcome.cause, NeedsOperator)
    image = world.row(message.image_id)
    assert (image.status, image.attempt, image.dead_letter) == (Status.FAILED, 1, DeadLetterState.OWED)
    assert image.error is not None and (image.error.code, image.error.retryable) == ("original_missing", False)
    world.sweep()
    (dead_letter,) = world.dead_letters.messages["slow"]
    explanation = explanation_in(dead_letter.explanation)
    assert explanation is not None and explanation["cause"] == "original_missing"
    assert [attempt["error_type"] for attempt in explanation["attempts"]] == ["OriginalMissing"]


def test_a_bug_is_tried_five_times_and_then_fails_for_good(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("darkroom.operations.images.transcode_image.developing", buggy)
    world = World()
    message = submitted(world)
    for attempt in range(1, 6):
        outcome = world.deliver(message, receipt=f"receipt-{attempt}", receive_count=attempt)
        assert isinstance(outcome, TryAgain if attempt < 5 else Finished)
        assert isinstance(outcome.cause, ZeroDivisionError)
        world.advance(getattr(outcome, "delay_seconds", 0))
    image = world.row(message.image_id)
    assert (image.status, image.attempt) == (Status.FAILED, 5)
    assert image.error is not None and (image.error.code, image.error.retryable) == ("internal", True)
    assert image.dead_letter is DeadLetterState.OWED, "the sweeper makes sure of it"
    assert [attempt.number for attempt in image.attempts] == [1, 2, 3, 4, 5]
    cause = image.attempts[0].cause
    assert cause is not None and (cause.error_type, cause.message) == ("ZeroDivisionError", "a bug")
    assert "in buggy" in cause.stack


@pytest.mark.guards("dead-letters-redriven-owed")
@pytest.mark.parametrize("dead_letter", [DeadLetterState.PLACED, DeadLetterState.KEPT])
def test_a_dead_letter_that_is_moved_back_to_its_lane_is_owed_anew(dead_letter: DeadLetterState) -> None:
    world = World()
    message = submitted(world)
    world.images.rows[message.image_id] = replace(
        world.row(message.image_id), status=Status.FAILED, dead_letter=dead_letter, due_at=None
    )
    assert world.deliver(message) == Finished(image=world.row(message.image_id), reason="terminal")
    assert (world.row(message.image_id).dead_letter, world.row(message.image_id).due_at) == (
        DeadLetterState.OWED,
        world.now,
    )


@pytest.mark.guards("objects-remembered-outputs-held")
def test_remembered_outputs_that_are_not_there_are_made_again(world: World, message: Any) -> None:
    with finishes_lost(world):
        world.deliver(message)
    complete = dict(world.outputs.objects)
    world.outputs.objects.pop(min(complete))
    world.advance(400)
    world.deliver(message, receipt="receipt-2")
    assert world.outputs.objects == complete and len(world.row(message.image_id).variants) == 4


@pytest.mark.guards("retry-last-receive")
def test_after_a_messages_last_receive_the_sweeper_sends_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("darkroom.operations.images.transcode_image.developing", buggy)
    world = World()
    message = submitted(world)
    outcome = world.deliver(message, receive_count=5)
    assert isinstance(outcome, TryAgain) and outcome.returns_in_seconds is None
    image = world.row(message.image_id)
    assert (image.status, image.attempt, image.due_at) == (Status.PENDING, 1, world.now + 25_000)


@pytest.mark.parametrize(("receive_count", "seconds"), [(1, 150), (2, 300), (4, 750), (5, None)])
def test_a_delivery_during_an_outage_claims_nothing_and_returns_the_later_the_more_often_it_came(
    receive_count: int, seconds: int | None
) -> None:
    world = World(require_healthy=raising(Retryable("S3 does not answer")))
    message = submitted(world)
    verdict = world.deliver(message, receive_count=receive_count)
    assert isinstance(verdict, Postponed) and verdict.returns_in_seconds == seconds
    assert world.row(message.image_id).attempt == 0


@pytest.mark.parametrize(("receive_count", "seconds"), [(1, 10), (4, 10), (5, None)])
def test_a_delivery_without_time_to_finish_claims_nothing_and_returns_soon(
    receive_count: int, seconds: int | None
) -> None:
    world = World(timeout_seconds=29)
    message = submitted(world)
    verdict = world.deliver(message, receive_count=receive_count)
    assert isinstance(verdict, Postponed) and verdict.returns_in_seconds == seconds
    assert world.row(message.image_id).attempt == 0


@pytest.mark.parametrize(
    ("ahead_seconds", "receive_count", "seconds"), [(60, 1, 60), (900, 4, 900), (60, 5, None), (901, 1, None)]
)
def test_a_delivery_before_its_time_returns_then_unless_no_lane_can_hold_it_that_long(
    world: World, ahead_seconds: int, receive_count: int, seconds: int | None
) -> None:
    image = world.submit(PHOTO, timetable=read_timetable(delay=f"PT{ahead_seconds}S")).image
    verdict = world.deliver(message_for(image), receive_count=receive_count)
    assert isinstance(verdict, Early) and verdict.returns_in_seconds == seconds
    assert world.row(image.image_id) == image


@pytest.mark.parametrize(("receive_count", "seconds"), [(1, 26), (4, 26), (5, None)])
def test_a_failed_attempt_returns_after_its_backoff_but_not_as_a_dead_letter(
    world: World, receive_count: int, seconds: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("darkroom.operations.images.transcode_image.developing", buggy)
    verdict = world.deliver(submitted(world), receive_count=receive_count)
    assert isinstance(verdict, TryAgain) and verdict.returns_in_seconds == seconds


@pytest.mark.guards("objects-missing-second-look")
def test_an_original_that_is_not_found_once_is_developed(world: World, message: Any) -> None:
    damage_once(world.originals, "get", raising(OriginalMissing("this look finds nothing")))
    assert isinstance(world.deliver(message), Finished)
    assert world.row(message.image_id).status is Status.DONE


@pytest.mark.guards("objects-checksum-on-read")
def test_an_original_that_arrives_damaged_is_fetched_again(world: World, message: Any) -> None:
    world.originals.objects[message.image_id] = PHOTO[:-1]
    outcome = world.deliver(message)
    assert isinstance(outcome, TryAgain) and isinstance(outcome.cause, Retryable)
    assert world.outputs.objects == {}


@pytest.mark.guards("fence-on-terminal-write")
def test_a_worker_that_lost_its_lease_does_not_overwrite_the_one_that_has_it(world: World, message: Any) -> None:
    def overtake(*_: str) -> None:
        # While this worker slept, its lease lapsed and another delivery claimed the second attempt.
        world.images.rows[message.image_id] = replace(world.row(message.image_id), attempt=2, claimed_by="the other")

    meanwhile(world.originals, "get", overtake)
    outcome = world.deliver(message)
    assert isinstance(outcome, Finished) and outcome.reason == "fenced"
    image = world.row(message.image_id)
    assert (image.status, image.attempt, image.claimed_by) == (Status.PROCESSING, 2, "the other")
    assert len(world.outputs.objects) == 4, "the outputs are the other's too: same run, same keys"


@pytest.mark.guards("withdrawal-outputs-removed")
def test_a_worker_whose_image_was_cancelled_removes_what_it_wrote(world: World, message: Any) -> None:
    def cancel(*_: str) -> None:
        world.images.rows[message.image_id] = replace(world.row(message.image_id), status=Status.CANCELLED, due_at=None)

    meanwhile(world.originals, "get", cancel)
    outcome = world.deliver(message)
    assert isinstance(outcome, Finished) and outcome.reason == "fenced"
    assert world.row(message.image_id).status is Status.CANCELLED
    assert world.outputs.objects == {}


@contextmanager
def finishes_lost(world: World, failure: BaseException | None = None) -> Iterator[None]:
    """In this block no row can be written as done."""
    lost, images = failure or Retryable("changing the image row: timeout"), world.images
    world.images = failing(images, "change", lost, lambda before, after, **_: after.status is Status.DONE)
    try:
        yield
    finally:
        world.images = images


@pytest.mark.guards("memory-unwritten-end-kept")
def test_a_finish_that_was_lost_is_written_without_developing_again(world: World, message: Any) -> None:
    with finishes_lost(world):
        assert isinstance(world.deliver(message), Postponed)
    world.advance(400)
    world.deliver(message, receipt="receipt-2")
    image = world.row(message.image_id)
    assert (image.status, image.attempt) == (Status.DONE, 2)
    assert set(world.outputs.puts.values()) == {1}


@pytest.mark.guards("memory-unwritten-end-kept")
def test_a_finish_that_is_refused_is_a_bug_whose_work_is_kept(world: World, message: Any) -> None:
    with finishes_lost(world, PermissionError("denied")), pytest.raises(PermissionError):
        world.deliver(message)
    world.advance(400)
    world.deliver(message, receipt="receipt-2")
    assert world.row(message.image_id).status is Status.DONE and set(world.outputs.puts.values()) == {1}


@pytest.mark.guards("memory-keep-failure-tolerated")
@pytest.mark.parametrize("failure", [Retryable("keeping: throttled"), PermissionError("denied")])
def test_work_that_cannot_be_kept_either_is_done_again(world: World, message: Any, failure: Exception) -> None:
    keep, world.once.keep = world.once.keep, raising(failure)
    with finishes_lost(world):
        assert isinstance(world.deliver(message), Postponed), "the first failure counts"
    world.once.keep = keep
    made = dict(world.outputs.objects)
    world.advance(400)
    world.deliver(message, receipt="receipt-2")
    assert world.row(message.image_id).status is Status.DONE and world.outputs.objects == made


def test_a_worker_that_is_lost_before_the_finish_leaves_nothing_that_a_second_one_could_not_make_again() -> None:
    world = World()
    message = submitted(world)
    with suppress(ProcessDied), finishes_lost(world, ProcessDied()):
        world.deliver(message)
    made = dict(world.outputs.objects)
    assert (len(made), world.once.results) == (4, {})
    world.advance(400)
    world.deliver(message, receipt="receipt-2")
    image = world.row(message.image_id)
    assert (image.status, image.attempt, world.outputs.objects) == (Status.DONE, 2, made)


def test_a_copy_that_comes_while_its_image_is_developed_has_nothing_to_do_and_nothing_is_remembered() -> None:
    world = World()
    message = submitted(world)
    copies: list[Any] = []
    meanwhile(world.originals, "get", lambda *_: copies.append(world.deliver(message, receipt="receipt-2")))
    world.deliver(message)
    (copy,) = copies
    assert isinstance(copy, Early | Finished) and world.row(message.image_id).attempt == 1
    assert world.once.results == {}, "the row says all of it"


def test_the_row_gets_the_placeholder(world: World) -> None:
    message = submitted(world, encoded(picture(64, 48, colour="#7a8b5c"), "PNG"))
    world.deliver(message)
    placeholder = world.row(message.image_id).placeholder
    assert placeholder is not None and sorted(placeholder) == ["color", "thumbhash"]
    assert placeholder["color"] == "#7a8b5c"
    assert base64.b64decode(placeholder["thumbhash"], validate=True)


@pytest.mark.guards("attention-run-replaces-point")
def test_the_row_gets_the_point_that_crops_by_attention_keep(world: World) -> None:
    photo = picture(64, 48, colour="#7a8b5c")
    photo.paste("#ff0000", (50, 20, 56, 26))
    crop = {"name": "crop", "width": 32, "height": 32, "fit": "cover", "gravity": "attention"}
    message = submitted(world, encoded(photo, "PNG"), recipe=json.dumps({"variants": [crop]}))
    world.deliver(message)
    point = world.row(message.image_id).attention
    assert point is not None and point["x"] > 6000 and 0 <= point["y"] <= 10_000


@pytest.mark.guards("attention-absent-in-old-results")
def test_work_that_an_earlier_version_remembered_without_a_placeholder_is_taken_as_it_is() -> None:
    world = World()
    message = submitted(world)
    variant = {"name": "a", "width": 1, "height": 1, "format": "jpeg", "size_bytes": 1}
    variant |= {"sha256": hashlib.sha256(b"b").hexdigest(), "key": f"outputs/{message.image_id}/1/a.jpg"}
    world.outputs.objects[str(variant["key"])] = b"b"
    world.once = lambda key, work, is_first: {"variants": [variant], "notices": []}
    assert isinstance(world.deliver(message), Finished)
    image = world.row(message.image_id)
    assert (image.status, image.placeholder, len(image.variants)) == (Status.DONE, None, 1)


def test_an_original_is_held_to_the_limits_that_the_worker_is_given() -> None:
    world = World(limits=Limits(max_pixels=640 * 480 - 1))
    message = submitted(world)
    world.deliver(message)
    image = world.row(message.image_id)
    assert image.error is not None and (image.status, image.error.code) == (Status.FAILED, "too_many_pixels")


THOROUGH = replace(SLOW, name="thorough", effort="small")


@pytest.mark.parametrize("lane", [*LANES.values(), THOROUGH], ids=lambda lane: lane.name)
def test_the_lane_as_it_is_deployed_decides_how_long_encoders_may_look_for_smaller_files(
    lane: Lane, monkeypatch: pytest.MonkeyPatch
) -> None:
    efforts = []
    operation = sys.modules["darkroom.operations.images.transcode_image"]
    monkeypatch.setattr(operation, "developing", developing)
    meanwhile(operation, "developing", lambda *_, effort, **__: efforts.append(effort))
    world = World(service=LANES | {"thorough": THOROUGH})
    message = submitted(world).model_copy(update={"lane": lane.name})
    world.images.rows[message.image_id] = replace(world.row(message.image_id), lane=lane.name)
    world.deliver(message)
    assert efforts == [lane.effort]


def test_a_recipe_of_the_clients_own_is_what_is_made(world: World) -> None:
    world.submit(PHOTO, recipe='{"variants": [{"name": "card", "width": 100, "height": 100, "fit": "cover"}]}')
    message = world.lanes.sent[-1]
    world.deliver(message)
    assert [(v.name, v.width, v.height) for v in world.row(message.image_id).variants] == [("card", 100, 100)]


def test_the_output_that_exists_is_the_output_of_its_run(world: World, message: Any) -> None:
    key = f"outputs/{message.image_id}/1/thumb.jpg"
    world.outputs.objects[key] = b"what an earlier worker of this run wrote"
    world.deliver(message)
    thumb = world.row(message.image_id).variants[0]
    assert thumb.sha256 == hashlib.sha256(b"what an earlier worker of this run wrote").hexdigest()
    assert world.outputs.objects[key] == b"what an earlier worker of this run wrote"


@pytest.mark.guards("retry-hidden-until-attempt")
def test_a_failed_attempt_that_cannot_be_written_down_hides_its_message_until_another_may_begin() -> None:
    world = World()
    message = submitted(world)
    silent = Retryable("timeout")
    world.originals.get = raising(silent)
    world.images = failing(world.images, "change", silent, lambda _, after, **__: after.status is not Status.PROCESSING)
    outcome = world.deliver(message)
    assert isinstance(outcome, TryAgain)
    world.advance(outcome.delay_seconds)
    retried = world.deliver(message, receipt="receipt-2")
    assert isinstance(retried, TryAgain), "neither lease nor backoff keeps the message that comes back from claiming"
    assert world.row(message.image_id).attempt == 2
