"""Dead letters: their verdicts, and what looking at them, replaying, dropping and archiving promise."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from darkroom.domain.dead_letters.dead_letter import Verdict, explanation_in, explanation_of, verdict_of, without_texts
from darkroom.domain.images.image import (
    Attempt,
    Cause,
    DeadLetterState,
    Image,
    Status,
    message_for,
)
from darkroom.domain.images.transitions import delete, escalate, give_up
from darkroom.domain.kernel.errors import Retryable
from darkroom.domain.kernel.lanes import LANES
from darkroom.domain.uploads.upload_notification import upload_key
from darkroom.operations.dead_letters.cases import CasePorts
from darkroom.ports.dead_letters import DeadLetter, Taken
from darkroom_cli.operator.domain.redrives import RedriveStatus
from darkroom_cli.operator.operations.dead_letters.list_dead_letters import (
    DeadLetterListing,
    DeadLetterSelection,
    list_dead_letters,
)
from darkroom_cli.operator.operations.dead_letters.replay_dead_letters import (
    Counts,
    NotReplayable,
    refuse_what_cannot_be_moved,
    replay_dead_letters,
    replay_image,
)
from darkroom_cli.operator.operations.dead_letters.work_through import HANDFUL
from darkroom_cli.operator.operations.kernel.rate_limiter import RateLimiter
from tests.support.dead_letters import DAY, DONE, FAILED, REFUSED, DeadLetterWorld, given_up, rejected, replace_run
from tests.support.fakes import FakeDeadLetters
from tests.support.fakes.dead_letters import FakeRedrives
from tests.support.faults import meanwhile, raising
from tests.support.images import NOW, awaiting, pending, processing
from tests.support.notifications import event


@pytest.fixture
def world() -> DeadLetterWorld:
    return DeadLetterWorld()


# ── What a dead letter is worth ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("run", "image", "verdict"),
    [
        (1, None, Verdict.UNKNOWN),
        (1, FAILED, Verdict.FAILED),
        (1, replace(FAILED, dead_letter=DeadLetterState.OWED), Verdict.FAILED),
        (1, replace(FAILED, run=2), Verdict.SETTLED),
        (1, delete(FAILED, now=NOW), Verdict.SETTLED),
        (1, REFUSED, Verdict.SETTLED),
        (1, DONE, Verdict.SETTLED),
        (1, pending(run=2), Verdict.SETTLED),
        (1, processing(), Verdict.WORKING),
        (1, pending(), Verdict.WORKING),
    ],
)
def test_a_dead_letters_verdict_follows_from_the_row(run: int, image: Image | None, verdict: Verdict) -> None:
    message = replace_run(message_for(image or FAILED), run)
    assert verdict_of(message, image) is verdict
    assert verdict_of(None, image) is Verdict.UNREADABLE


@pytest.mark.parametrize("text", [None, "", "no JSON", "[]", "{}", '{"v": 2}'])
def test_an_unreadable_explanation_does_not_count(text: str | None) -> None:
    assert explanation_in(text) is None


@pytest.mark.guards("dead-letters-replay-told")
def test_a_dead_letter_says_how_it_is_replayed_and_no_other_run_does() -> None:
    told = without_texts(explanation_of(FAILED))
    assert told["replay"] == f'./darkroom dlq replay --image {FAILED.image_id} --stack "$STACK"'
    assert explanation_of(pending())["replay"] is None and explanation_of(replace(FAILED, run=2), 1)["replay"] is None


def test_of_an_earlier_run_the_row_still_tells_the_attempts() -> None:
    again = replace(FAILED, run=2, attempts=(*FAILED.attempts, Attempt(run=2, number=1, request_id="q", started_at=5)))
    explanation = explanation_of(again, 1)
    assert (explanation["run"], explanation["cause"]) == (1, None)
    assert [attempt["error_type"] for attempt in explanation["attempts"]] == ["ZeroDivisionError"]


# ── Listing ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_dead_letters_of_one_run_are_one_case_with_the_explained_one_speaking(world: DeadLetterWorld) -> None:
    world.place(FAILED, explained=False, sent_at=NOW - 5)
    world.place(FAILED)
    (case,) = world.ls().cases
    assert (len(case.dead_letters), case.cause, case.error_code) == (2, "ZeroDivisionError", "internal")
    assert (case.verdict, case.sent_at) == (Verdict.FAILED, NOW - 5)
    assert world.ls().dead_letters == 2, "what was looked at is given back"


def test_a_dead_letter_that_sqs_made_is_explained_by_the_row(world: DeadLetterWorld) -> None:
    lost = replace(give_up(processing(attempt=5), now=NOW), dead_letter=DeadLetterState.KEPT)
    world.place(lost, explained=False)
    (case,) = world.ls().cases
    assert case.cause == "worker_lost"
    assert '"r"' in case.explanation["look"], "the request that died is the one to look for"


def test_what_is_no_message_of_ours_is_a_case_of_its_own(world: DeadLetterWorld) -> None:
    world.dead_letters.add("fast", '{"hello": 1}')
    world.dead_letters.add("fast", '{"hello": 1}')
    cases = world.ls().cases
    assert [case.verdict for case in cases] == [Verdict.UNREADABLE] * 2
    assert "image_id" in str(cases[0].problem)
    assert (cases[0].cause, cases[0].explanation) == (None, {})


@pytest.mark.parametrize(
    ("selection", "numbers"),
    [
        (DeadLetterSelection(), [1, 2, 3]),
        (DeadLetterSelection(image_id=f"{2:026d}"), [2]),
        (DeadLetterSelection(tenant_id="acme"), [3]),
        (DeadLetterSelection(cause="keyerror"), [2]),
        (DeadLetterSelection(cause="internal"), [1, 2, 3]),
        (DeadLetterSelection(verdict=Verdict.SETTLED), [3]),
        (DeadLetterSelection(older_than_seconds=DAY), [1]),
        (DeadLetterSelection(newer_than_seconds=DAY), [2, 3]),
        (DeadLetterSelection(newer_than_seconds=DAY, cause="KeyError", tenant_id="acme"), []),
    ],
)
def test_filters_choose_by_what_is_known_of_a_case(selection: DeadLetterSelection, numbers: list[int]) -> None:
    world = DeadLetterWorld()
    world.place(FAILED, sent_at=NOW - DAY * 1000)
    world.place(given_up(2, bug="KeyError"))
    world.place(replace(given_up(3, tenant_id="acme"), status=Status.DONE))
    assert [int(case.explanation["image_id"]) for case in world.ls(selection).cases] == numbers


def test_the_queues_are_read_at_once_and_told_of_in_their_order(world: DeadLetterWorld) -> None:
    world.place(FAILED)
    asked: list[int] = []

    def last_first(works: Sequence[Callable[[], Any]]) -> Sequence[Any]:
        asked.append(len(works))
        return [work() for work in reversed(works)][::-1]

    queues = world.dead_letters.queues
    listing = list_dead_letters(world.ports(CasePorts), queues, limit=10, at_once=last_first)
    assert (asked, tuple(listing.depths)) == ([len(queues)], queues)
    assert listing == world.ls()


def test_a_queue_that_holds_more_than_was_read_is_named(world: DeadLetterWorld) -> None:
    for number in range(4):
        world.place(given_up(number))
    listing = world.ls(limit=3)
    depths = dict.fromkeys(LANES, 0) | {"slow": 4}
    assert (listing.dead_letters, listing.incomplete, listing.depths) == (3, ("slow",), depths)


# ── Replaying dead letter by dead letter ─────────────────────────────────────────────────────────────────────────────


def test_a_replay_opens_the_row_sends_its_message_and_removes_all_dead_letters_of_the_run() -> None:
    world = DeadLetterWorld()
    world.place(FAILED, explained=False)
    world.place(FAILED)
    assert world.replay() == Counter(replayed=1)
    row = world.row(FAILED.image_id)
    assert (row.status, row.run, row.attempt, row.dead_letter, row.error) == (Status.PENDING, 2, 0, None, None)
    assert world.lanes.sent == [message_for(row)]
    assert world.dead_letters.messages["slow"] == []
    assert world.replay() == Counter()


def test_only_what_is_meant_is_replayed_and_the_rest_is_given_back(world: DeadLetterWorld) -> None:
    for number, bug in enumerate(("KeyError", "OSError", "KeyError")):
        world.place(given_up(number, bug=bug))
    assert world.replay(DeadLetterSelection(cause="OSError")) == Counter(replayed=1)
    assert len(world.dead_letters.messages["slow"]) == 2
    assert world.in_hand == set()


def test_what_cannot_be_replayed_is_left_and_counted_by_its_verdict(world: DeadLetterWorld) -> None:
    world.place(replace(REFUSED, image_id=f"{1:026d}"))
    world.place(processing())
    world.dead_letters.add("slow", "no message")
    world.dead_letters.add("slow", message_for(given_up(9)).model_dump_json())
    assert world.replay() == Counter(settled=1, working=1, unreadable=1, unknown=1)
    assert len(world.dead_letters.messages["slow"]) == 4
    assert world.lanes.sent == []


def test_a_dead_letter_that_an_interrupted_replay_left_behind_goes_and_its_message_is_sent_anew() -> None:
    world = DeadLetterWorld()
    world.place(FAILED)
    world.images.rows[FAILED.image_id] = replace(pending(image_id=FAILED.image_id), run=2)
    assert world.replay() == Counter(finished=1)
    assert [message.run for message in world.lanes.sent] == [2]
    assert world.row(FAILED.image_id).run == 2
    assert world.dead_letters.messages["slow"] == []


def test_an_image_that_fails_again_meanwhile_is_not_replayed_twice_in_one_go(world: DeadLetterWorld) -> None:
    world.place(FAILED)
    meanwhile(world.lanes, "send", lambda message, **_: world.place(replace(FAILED, run=message.run)))
    for number in range(2, HANDFUL + 3):
        world.place(replace(given_up(number), status=Status.DONE))
    assert world.replay()["replayed"] == 1
    assert world.row(FAILED.image_id).run == 2


def test_the_sweepers_mark_in_the_meantime_does_not_stop_a_replay(world: DeadLetterWorld) -> None:
    world.place(replace(FAILED, dead_letter=DeadLetterState.OWED))
    change, row = world.images.change, world.row(FAILED.image_id)
    placed = replace(row, dead_letter=DeadLetterState.PLACED)
    meanwhile(world.images, "change", lambda *_, **__: change(row, placed, fence=("version",)), times=1)
    assert world.replay() == Counter(replayed=1)
    assert world.row(FAILED.image_id).run == 2


@pytest.mark.guards("fence-on-replay")
def test_of_two_operators_one_opens_the_row(world: DeadLetterWorld) -> None:
    world.place(FAILED)
    meanwhile(world.images, "change", lambda *_, **__: replay_image(world.queue_ports, FAILED.image_id), times=1)
    assert world.replay() == Counter(finished=1)
    assert world.row(FAILED.image_id).run == 2


@pytest.mark.parametrize(("happened", "outcome", "run"), [("deleted", "finished", 1), ("failed again", "finished", 2)])
def test_a_row_that_moved_on_since_it_was_read_is_left_as_it_is(happened: str, outcome: str, run: int) -> None:
    world = DeadLetterWorld()
    world.place(FAILED)
    after = replace(delete(FAILED, now=NOW) if happened == "deleted" else replace(FAILED, run=2), version=9)
    meanwhile(world.images, "change", lambda *_, **__: world.images.rows.update({FAILED.image_id: after}), times=1)
    assert world.replay() == Counter({outcome: 1})
    assert (world.row(FAILED.image_id).run, world.row(FAILED.image_id).version, world.lanes.sent) == (run, 9, [])


@dataclass
class Fading(FakeDeadLetters):
    """Dead letters that cannot be removed by somebody who has held them for longer than a minute."""

    clock: Any = None
    taken_at: dict[str, int] = field(default_factory=dict)

    def take(self, queue: str, limit: int) -> Any:
        self.hidden -= {letter for letter, at in self.taken_at.items() if self.clock() - at >= 60_000}
        taken = super().take(queue, limit)
        self.taken_at |= {dead_letter.message_id: self.clock() for dead_letter in taken.dead_letters}
        return taken

    def remove(self, dead_letter: DeadLetter) -> None:
        assert self.clock() - self.taken_at[dead_letter.message_id] < 60_000, "by then it is somebody else's"
        super().remove(dead_letter)


@pytest.mark.parametrize(("per_second", "seconds_a_row"), [(0.01, 0), (0.05, 0), (1000, 15)])
def test_a_slow_replay_takes_dead_letters_anew_that_it_could_not_hold(per_second: float, seconds_a_row: int) -> None:
    world = DeadLetterWorld()
    world.dead_letters = Fading(clock=world.clock)
    for number in range(5):
        world.place(given_up(number))
    meanwhile(world.images, "get", lambda _: setattr(world, "now", world.now + seconds_a_row * 1000))
    began = world.now
    assert world.replay(per_second=per_second) == Counter(replayed=5)
    assert (world.now - began) / 1000 >= 4 / per_second
    assert world.dead_letters.messages["slow"] == []


def test_a_replay_that_is_told_to_stop_gives_back_what_it_has_not_begun(world: DeadLetterWorld) -> None:
    for number in range(3):
        world.place(given_up(number))
    meanwhile(world.lanes, "send", lambda *_, **__: setattr(world, "stopped", True))
    assert world.replay() == Counter(replayed=1)
    assert len(world.dead_letters.messages["slow"]) == 2
    assert world.in_hand == set()


@dataclass
class Forgetful(FakeDeadLetters):
    """Dead letters of which the first look loses some on the way: they stay hidden, and nobody has them."""

    lost: int = 1

    def take(self, queue: str, limit: int) -> Taken:
        lost, self.lost = self.lost, 0
        self.hidden |= {dead_letter.message_id for dead_letter in self.messages[queue][:lost]}
        return replace(super().take(queue, limit), asked_again=lost > 0)


@pytest.mark.guards("dead-letters-replay-lost-answer")
def test_a_replay_that_lost_dead_letters_on_the_way_does_not_say_that_it_has_seen_all(world: DeadLetterWorld) -> None:
    world.dead_letters = Forgetful()
    for number in range(3):
        world.place(given_up(number))
    counts = Counts()
    pace = RateLimiter(per_second=10, clock=world.clock, pause=world.pause)
    assert not replay_dead_letters(
        world.queue_ports, "slow", DeadLetterSelection(), pace=pace, stop=lambda: world.stopped, counts=counts
    )
    assert counts.counts == Counter(replayed=2)
    world.dead_letters.hidden.clear()  # a minute later
    assert replay_dead_letters(
        world.queue_ports, "slow", DeadLetterSelection(), pace=pace, stop=lambda: world.stopped, counts=counts
    )
    assert counts.counts == Counter(replayed=3)


def test_a_lane_that_does_not_answer_leaves_the_message_to_the_sweeper(world: DeadLetterWorld) -> None:
    world.place(FAILED)
    world.lanes.send = raising(Retryable("throttled"))
    assert world.replay() == Counter(replayed=1)
    assert world.row(FAILED.image_id).due_at == world.now


# ── Replaying by id ──────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.guards("original-loss-not-refusal")
def test_what_only_an_operator_can_help_is_no_refusal_and_can_be_replayed() -> None:
    cause = Cause(error_type="OriginalMissing", message="gone", stack="")
    image = escalate(processing(), code="original_missing", message="It is gone.", now=NOW, cause=cause)
    assert verdict_of(message_for(image), image) is Verdict.FAILED
    world = DeadLetterWorld()
    world.images.rows[image.image_id] = image
    assert replay_image(world.queue_ports, image.image_id).run == 2


@pytest.mark.parametrize(
    ("image", "why"),
    [
        (None, "no image with this id"),
        (REFUSED, r"refused \(truncated: The file ends too early.\)"),
        (DONE, "It is done, in run 1"),
        (delete(FAILED, now=NOW), "deleted"),
    ],
)
def test_what_cannot_be_replayed_by_id_says_why(world: DeadLetterWorld, image: Image | None, why: str) -> None:
    if image is not None:
        world.images.rows[image.image_id] = image
    with pytest.raises(NotReplayable, match=why):
        replay_image(world.queue_ports, (image or FAILED).image_id)
    assert world.lanes.sent == []


# ── Replaying a whole queue ──────────────────────────────────────────────────────────────────────────────────────────


def test_a_whole_queue_is_moved_after_the_rows_were_opened(world: DeadLetterWorld) -> None:
    for number in range(3):
        world.place(given_up(number))
    redrives = FakeRedrives(
        world.dead_letters, world.lanes, on_start=lambda: statuses.extend(world.images.rows.values())
    )
    statuses: list[Image] = []
    move, counts = world.move(redrives, per_second=2)
    assert move is not None and (move.status, move.moved) == (RedriveStatus.COMPLETED, 3)
    assert [row.status for row in statuses] == [Status.PENDING] * 3
    assert counts == Counter(replayed=3)
    assert redrives.started == [("slow", 2)]
    assert [message.run for message in world.lanes.sent] == [1, 1, 1]
    waits = sorted((row.due_at or 0) - (world.row(given_up(0).image_id).due_at or 0) for row in statuses)
    assert waits == [0, 500, 1000], "the sweeper does not overtake the move"


def test_a_dead_letter_that_arrives_while_rows_are_opened_has_its_row_opened_too(world: DeadLetterWorld) -> None:
    world.place(given_up(1))
    late = given_up(2)
    meanwhile(world.images, "change", lambda *_, **__: world.place(late), times=1)
    _, counts = world.move(FakeRedrives(world.dead_letters, world.lanes))
    assert counts == Counter(replayed=2)
    assert world.row(late.image_id).run == 2


@pytest.mark.parametrize("body", ["no message", message_for(given_up(9)).model_dump_json()])
def test_a_queue_with_dead_letters_that_a_move_would_lose_or_turn_in_circles_is_not_moved(body: str) -> None:
    world = DeadLetterWorld()
    world.place(FAILED)
    world.dead_letters.add("slow", body)
    redrives = FakeRedrives(world.dead_letters, world.lanes)
    with pytest.raises(NotReplayable, match="drop those first, or leave --all out"):
        world.move(redrives)
    assert (redrives.started, world.row(FAILED.image_id).run) == ([], 1)


def test_a_move_that_runs_already_is_followed_and_not_started_twice(world: DeadLetterWorld) -> None:
    for number in range(2):
        world.place(given_up(number))
    redrives = FakeRedrives(world.dead_letters, world.lanes)
    redrives.start("slow", 5)
    move, counts = world.move(redrives)
    assert move is not None and move.status is RedriveStatus.COMPLETED
    assert (redrives.started, counts) == ([("slow", 5)], Counter(replayed=2))


def test_stopping_cancels_the_move_and_a_repetition_moves_the_rest(world: DeadLetterWorld) -> None:
    for number in range(4):
        world.place(given_up(number))
    redrives = FakeRedrives(world.dead_letters, world.lanes)
    redrives.on_start = lambda: setattr(world, "stopped", True)
    move, _ = world.move(redrives)
    assert move is not None and move.status is RedriveStatus.CANCELLED
    assert 0 < len(world.dead_letters.messages["slow"]) < 4
    world.stopped, redrives.on_start = False, lambda: None
    again, counts = world.move(redrives)
    assert again is not None and again.status is RedriveStatus.COMPLETED
    assert world.dead_letters.messages["slow"] == [] and counts["replayed"] == 0
    assert {row.run for row in world.images.rows.values()} == {2}


def test_a_move_that_fails_says_why(world: DeadLetterWorld) -> None:
    world.place(FAILED)
    with pytest.raises(NotReplayable, match="slow: CouldNotDetermineMessageSource"):
        world.move(FakeRedrives(world.dead_letters, world.lanes, failure="CouldNotDetermineMessageSource"))


# ── Dropping ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_only_settled_dead_letters_are_dropped_unless_forced(world: DeadLetterWorld) -> None:
    world.place(FAILED)
    world.place(replace(given_up(2), status=Status.DONE))
    world.dead_letters.add("fast", "no message")
    assert world.drop() == Counter(dropped=1, failed=1, unreadable=1)
    assert world.drop(force=True, selection=DeadLetterSelection(verdict=Verdict.UNREADABLE)) == Counter(dropped=1)
    assert len(world.dead_letters.messages["slow"]) == 1
    assert world.row(FAILED.image_id) == FAILED, "rows are left as they are"


def test_a_dead_letter_whose_image_was_opened_since_the_listing_is_judged_by_the_row_of_now() -> None:
    world = DeadLetterWorld()
    world.place(replace(FAILED, run=2), run=1)
    assert [case.verdict for case in world.ls().cases] == [Verdict.SETTLED]
    world.images.rows[FAILED.image_id] = FAILED
    assert world.drop() == Counter(failed=1)


# ── Events of S3 ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_an_event_of_s3_is_a_dead_letter_of_its_image_by_the_row(world: DeadLetterWorld) -> None:
    world.dead_letters.messages["upload"] = []
    waiting = awaiting(tenant_id="acme")
    world.images.rows[waiting.image_id] = waiting
    for _ in range(2):
        world.dead_letters.add("upload", event(upload_key(waiting.image_id)))
    (case,) = world.ls(DeadLetterSelection(tenant_id="acme")).cases
    assert (case.queue, case.verdict, len(case.dead_letters)) == ("upload", Verdict.WORKING, 2)
    assert case.message is not None and case.message.tenant_id == "acme"
    assert world.ls(DeadLetterSelection(tenant_id="-")).cases == ()


def test_events_whose_images_were_accepted_since_or_have_ended_are_settled_and_can_be_dropped() -> None:
    world = DeadLetterWorld()
    world.dead_letters.messages["upload"] = []
    done = replace(awaiting(), status=Status.DONE)
    world.images.rows[done.image_id] = done
    world.dead_letters.add("upload", event(upload_key(done.image_id)))
    assert [case.verdict for case in world.ls().cases] == [Verdict.SETTLED]
    assert world.drop() == Counter(dropped=1)


def test_events_of_s3_can_be_moved_back_as_a_whole() -> None:
    listing = list_of_events(awaiting())
    refuse_what_cannot_be_moved("upload", listing.cases, complete=True)
    with pytest.raises(NotReplayable, match="1 of images that do not exist"):
        refuse_what_cannot_be_moved("upload", list_of_events(None).cases, complete=True)


def list_of_events(image: Image | None) -> DeadLetterListing:
    world = DeadLetterWorld()
    world.dead_letters.messages["upload"] = []
    if image is not None:
        world.images.rows[image.image_id] = image
    world.dead_letters.add("upload", event(upload_key("0" * 26)))
    return world.ls()


def with_an_unreadable_row(world: DeadLetterWorld) -> DeadLetter:
    """A dead letter of an image whose row a newer version has written, before all others."""
    dead_letter = world.place(given_up(7))
    world.images.unreadable[f"{7:026d}"] = world.images.rows.pop(f"{7:026d}")
    return dead_letter


@pytest.mark.guards("unreadable-dead-letter-isolated")
def test_a_dead_letter_whose_row_is_unreadable_stands_by_itself_and_keeps_no_other_waiting() -> None:
    world = DeadLetterWorld()
    dead_letter = with_an_unreadable_row(world)
    world.place(FAILED)
    bad, good = world.ls().cases
    assert (bad.verdict, bad.image, good.verdict) == (Verdict.UNREADABLE_ROW, None, Verdict.FAILED)
    assert bad.problem is not None and "deploy that version again" in bad.problem
    assert bad.error_code == "internal", "the dead letter explains itself all the same"
    assert world.replay() == Counter(replayed=1, unreadable_row=1)
    assert world.dead_letters.messages["slow"] == [dead_letter] and world.in_hand == set()


@pytest.mark.guards("unreadable-dead-letter-isolated")
def test_a_dead_letter_whose_row_is_unreadable_is_dropped_by_force_alone(world: DeadLetterWorld) -> None:
    dead_letter = with_an_unreadable_row(world)
    world.place(replace(FAILED, status=Status.DONE))
    assert world.drop() == Counter(dropped=1, unreadable_row=1)
    assert world.dead_letters.messages["slow"] == [dead_letter]
    assert world.drop(force=True) == Counter(dropped=1)


@pytest.mark.guards("unreadable-blocks-whole-redrive")
def test_a_queue_with_a_dead_letter_whose_row_is_unreadable_is_not_moved_as_a_whole(world: DeadLetterWorld) -> None:
    with_an_unreadable_row(world)
    world.place(FAILED)
    with pytest.raises(NotReplayable, match="newer version"):
        world.move(FakeRedrives(world.dead_letters, world.lanes))
    assert world.row(FAILED.image_id) == FAILED


@pytest.mark.guards("isolated-dead-letter-version", case="attempts0")
@pytest.mark.parametrize("attempts", [["one"], {"1": {}}, "one", 5])
def test_a_dead_letter_that_explains_itself_in_another_versions_words_is_explained_by_its_row(attempts: Any) -> None:
    world = DeadLetterWorld()
    dead_letter = world.place(FAILED)
    explanation = json.dumps(json.loads(dead_letter.explanation or "") | {"attempts": attempts})
    world.dead_letters.messages["slow"] = [replace(dead_letter, explanation=explanation)]
    (case,) = world.ls().cases
    assert (case.verdict, case.cause) == (Verdict.FAILED, "ZeroDivisionError")


# ── Messages that did not verify ─────────────────────────────────────────────────────────────────────────────────────


def test_a_rejected_message_says_why_and_is_about_no_image_whatever_it_names(world: DeadLetterWorld) -> None:
    world.images.rows[FAILED.image_id] = FAILED
    rejected(world)
    (case,) = world.ls().cases
    assert (case.verdict, case.message, case.image, case.cause) == (Verdict.REJECTED, None, None, "forged")
    assert case.problem is not None and "it was altered or copied" in case.problem
    assert world.ls(DeadLetterSelection(cause="forged")).cases == (case,)
    assert world.ls(DeadLetterSelection(image_id=FAILED.image_id)).cases == ()


def test_a_message_that_was_rejected_twice_because_an_answer_was_lost_is_one_case(world: DeadLetterWorld) -> None:
    for message_id in ("message-1", "message-2", "message-1"):
        rejected(world, message_id)
    assert [len(case.dead_letters) for case in world.ls().cases] == [2, 1]


def test_a_rejected_message_replays_nothing(world: DeadLetterWorld) -> None:
    world.images.rows[FAILED.image_id] = FAILED
    rejected(world)
    assert world.replay() == Counter(rejected=1)
    assert (world.row(FAILED.image_id), world.lanes.sent) == (FAILED, [])


@pytest.mark.guards("signatures-rejected-unmoved")
def test_a_queue_with_a_rejected_message_is_not_moved_as_a_whole(world: DeadLetterWorld) -> None:
    world.place(FAILED)
    rejected(world)
    redrives = FakeRedrives(world.dead_letters, world.lanes)
    with pytest.raises(NotReplayable, match="which this stack has not sent"):
        world.move(redrives)
    assert (redrives.started, world.row(FAILED.image_id).run) == ([], 1)


@pytest.mark.guards("signatures-unsigned-unmoved")
def test_dead_letters_without_a_signature_are_replayed_one_by_one_and_not_moved(world: DeadLetterWorld) -> None:
    world.images.rows[FAILED.image_id] = FAILED
    world.dead_letters.add("slow", message_for(FAILED).model_dump_json(), is_signed=False)
    redrives = FakeRedrives(world.dead_letters, world.lanes)
    with pytest.raises(NotReplayable, match="from a version before signatures"):
        world.move(redrives)
    assert (redrives.started, world.row(FAILED.image_id).run) == ([], 1)
    assert world.replay() == Counter(replayed=1)
    assert [message.run for message in world.lanes.sent] == [2]


def test_the_archive_keeps_what_was_rejected_and_why(world: DeadLetterWorld) -> None:
    dead_letter = rejected(world, body="made up")
    world.archive_all(older_than_seconds=-1)
    (document,) = world.archive.objects.values()
    assert (document["verdict"], document["body"]) == ("rejected", dead_letter.body)
    assert document["explanation"]["cause"] == "forged"
