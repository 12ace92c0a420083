"""The rehearsals with poison: the plan, the poison itself, and how the results are judged."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from darkroom.aws.images.images_table import from_item, to_item
from darkroom.domain.images.image import Attempt, Cause, DeadLetterState, Failure, Image, Status, due_shard_of
from darkroom.domain.kernel.errors import INTERNAL
from darkroom.ports.kernel import UnreadableRow
from tests.chaos.comparison import (
    Life,
    compare,
    misrouted,
    problems_of_dead_letters,
    written_twice,
)
from tests.chaos.machinery import Strikes
from tests.chaos.plan import Strike, Way, plan_of
from tests.chaos.poison import (
    DEAD_LETTER,
    DEAD_LETTERS,
    FETCH_QUEUE,
    HOLD_QUEUE,
    SETTLED,
    UPLOAD_QUEUE,
    Poison,
    bad_row,
    poisons,
)
from tests.support.fakes.rows import accepted_image
from tests.support.running.conditions import ACCEPTOR, FETCHER, HOLDER, INJECTED, SWEEPER, TRANSCODER, UPLOAD_ACCEPTOR

IMAGE_ID = "0" * 26
NOW = 1_800_000_000_000
LANES = ("FastQueueUrl", "SlowQueueUrl")
QUEUES = (*LANES, HOLD_QUEUE, UPLOAD_QUEUE, FETCH_QUEUE)
ACCEPTED = accepted_image(image_id=IMAGE_ID, tenant_id="crowd", now=NOW)
ATTEMPT = Attempt(run=1, number=1, request_id="r", started_at=NOW, ended_at=NOW + 1000)
DONE = replace(
    ACCEPTED, status=Status.DONE, attempt=1, version=3, due_at=None, completed_at=NOW + 1000, attempts=(ATTEMPT,)
)
GIVEN_UP = replace(
    DONE, status=Status.FAILED, error=Failure(code=INTERNAL, message="m", retryable=True), completed_at=NOW + 1000
)
REFUSED = replace(GIVEN_UP, error=Failure(code="truncated", message="m", retryable=False))


# ── The plan ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("images", [30, 1000])
def test_every_plan_has_images_of_every_kind(images: int) -> None:
    plan = plan_of(images, 3)
    assert [sending.number for sending in plan.sendings] == list(range(images))
    assert {sending.way for sending in plan.sendings} == set(Way)
    assert {sending.lane for sending in plan.sendings} == {"fast", "slow"}
    struck = {sending.strike.function for sending in plan.sendings if sending.strike}
    assert struck == {ACCEPTOR, UPLOAD_ACCEPTOR, FETCHER, TRANSCODER}
    assert SWEEPER in {strike.function for _, strike in plan.strikes}
    assert (HOLDER in {strike.function for _, strike in plan.strikes}) is (images > 100)
    assert len(plan.pauses) >= 2
    assert any(sending.is_doomed for sending in plan.sendings)
    assert any(sending.is_stale for sending in plan.sendings)
    assert all(sending.repetitions >= 3 for sending in plan.sendings if sending.way is Way.SHORTLY)
    assert sum(sending.is_neighbour and sending.strike is None for sending in plan.sendings) >= images * 3 // 4


# ── Poison ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_every_queue_gets_poison_and_no_body_is_there_twice() -> None:
    made = poisons(1, now=NOW)
    assert {poison.queue for poison in made} == {*QUEUES, *DEAD_LETTERS.values()}
    assert len({poison.body for poison in made}) == len(made) > 100
    assert poisons(1, now=NOW) == made != poisons(2, now=NOW)


@pytest.mark.parametrize("lane", ["fast", "slow"])
def test_a_bad_row_stands_before_the_real_one_in_every_index_and_cannot_be_read(lane: str) -> None:
    item = to_item(DONE)
    bad = bad_row(item, seed=1, now=NOW, lane=lane)
    assert bad["image_id"] != item["image_id"]
    assert bad["tenant_id"] == item["tenant_id"]
    shard = due_shard_of(IMAGE_ID)
    assert due_shard_of(bad["image_id"]["S"]) == bad["due_shard"]["S"] == shard
    assert bad["waiting_shard"]["S"] == f"{lane}#{shard}"
    assert int(bad["due_at"]["N"]) < NOW
    assert int(bad["waiting_since"]["N"]) < NOW
    with pytest.raises(UnreadableRow, match="from_a_later_version"):
        from_item(bad)
    recipe = json.loads(bad["recipe"]["S"])
    del recipe["from_a_later_version"]
    readable = from_item(bad | {"recipe": {"S": json.dumps(recipe)}})
    assert readable.status is Status.PENDING, "its recipe alone is what nobody can read"


# ── The comparison ───────────────────────────────────────────────────────────────────────────────────────────────────


def life(number: int, seconds: float | None, *, hits: tuple[str, ...] = (), is_neighbour: bool = True) -> Life:
    ended_at = None if seconds is None else NOW + round(seconds * 1000)
    return Life(number=number, began_at=NOW, ended_at=ended_at, hits=frozenset(hits), is_neighbour=is_neighbour)


def of(*lives: Life) -> dict[int, Life]:
    return {image_life.number: image_life for image_life in lives}


@pytest.mark.parametrize(
    ("before", "after", "late"),
    [(1, 61, False), (1, 61.1, True), (100, 1, False), (1, None, True), (None, None, True), (None, 1, False)],
)
def test_a_neighbour_may_be_a_minute_later_than_itself(before: float | None, after: float | None, late: bool) -> None:
    comparison = compare(of(life(1, before)), of(life(1, after)))
    assert (comparison.compared, bool(comparison.late)) == (1, late)


# ── Once, and one dead letter ────────────────────────────────────────────────────────────────────────────────────────

FAILED_FIRST = replace(ATTEMPT, cause=Cause(error_type="E", message="m", stack="s"))
SECOND = replace(ATTEMPT, number=2, started_at=NOW + 500)


@pytest.mark.parametrize(
    ("row", "first_version", "is_wrong"),
    [
        (DONE, 3, False),
        (DONE, None, False),
        (replace(DONE, version=4), 3, True),
        (replace(DONE, attempt=2, attempts=(FAILED_FIRST, SECOND)), 3, False),
        (replace(DONE, attempt=2, attempts=(replace(ATTEMPT, ended_at=None), SECOND)), 3, False),
        (replace(DONE, attempt=2, attempts=(ATTEMPT, SECOND)), 3, True),
        (replace(DONE, attempt=2, attempts=(ATTEMPT, replace(SECOND, ended_at=None))), 3, True),
        (replace(DONE, attempt=2, attempts=(ATTEMPT, replace(FAILED_FIRST, number=2))), 3, True),
        (replace(DONE, attempts=(replace(ATTEMPT, started_at=NOW + 2000, ended_at=NOW + 3000),)), 3, True),
        (GIVEN_UP, 2, False),
    ],
)
def test_a_row_tells_whether_it_was_ended_twice(row: Image, first_version: int | None, is_wrong: bool) -> None:
    assert bool(written_twice(row, first_version)) is is_wrong


@pytest.mark.parametrize(
    ("row", "explained", "raw", "is_wrong"),
    [
        (DONE, 0, 0, False),
        (DONE, 1, 0, True),
        (DONE, 0, 1, True),
        (GIVEN_UP, 1, 0, False),
        (GIVEN_UP, 1, 1, False),
        (GIVEN_UP, 0, 1, True),
        (GIVEN_UP, 2, 0, True),
        (REFUSED, 0, 0, False),
        (replace(REFUSED, dead_letter=DeadLetterState.KEPT), 1, 0, False),
        (REFUSED, 1, 0, True),
    ],
)
def test_a_run_that_was_given_up_has_one_dead_letter_that_explains_itself_and_no_other_has_any(
    row: Image, explained: int, raw: int, is_wrong: bool
) -> None:
    problems = problems_of_dead_letters([row], {(IMAGE_ID, 1): explained}, {IMAGE_ID: raw})
    assert bool(problems) is is_wrong


@pytest.mark.parametrize("queue", QUEUES)
@pytest.mark.parametrize(
    ("ends", "is_dead_letter", "is_misrouted"),
    [(DEAD_LETTER, True, False), (DEAD_LETTER, False, True), (SETTLED, True, True), (SETTLED, False, False)],
)
def test_poison_that_is_not_where_it_should_be_is_astray(
    queue: str, ends: frozenset[object], is_dead_letter: bool, is_misrouted: bool
) -> None:
    poison = Poison(name="junk", queue=queue, body="junk", ends=ends)  # type: ignore[arg-type]
    dead_letters = {name: set[str]() for name in DEAD_LETTERS.values()}
    if is_dead_letter:
        dead_letters[DEAD_LETTERS[queue]] = {"junk"}
    assert bool(misrouted([poison], dead_letters)) is is_misrouted


# ── How processes die ────────────────────────────────────────────────────────────────────────────────────────────────

APP = """
import boto3
from botocore.stub import ANY, Stubber
client = boto3.client("sqs", region_name="us-east-1", aws_access_key_id="a", aws_secret_access_key="s")
stubber = Stubber(client)
stubber.add_response("get_queue_url", {"QueueUrl": "q"}, {"QueueName": ANY})
stubber.add_response("list_queues", {"QueueUrls": []}, {})
stubber.add_response("list_queues", {"QueueUrls": []}, {})
stubber.activate()
def handler(event, context):
    calls = [lambda: client.get_queue_url(QueueName="q"), client.list_queues, client.list_queues]
    for number, call in enumerate(calls):
        print(f"before {number}", flush=True)
        call()
        print(f"after {number}", flush=True)
"""


@pytest.mark.parametrize(
    ("strike", "last_words"),
    [
        (Strike(function="F", call=2), "before 1"),
        (Strike(function="F", call=1, operation="ListQueues"), "before 1"),
        (Strike(function="F", call=2, operation="ListQueues", after=True), "before 2"),
        (Strike(function="F", call=9), "after 2"),
    ],
)
def test_a_process_dies_at_its_call_in_the_first_event_that_holds_its_token(
    tmp_path: Path, strike: Strike, last_words: str
) -> None:
    folder = tmp_path / "strikes"
    folder.mkdir()
    strikes = Strikes(folder)
    strikes.lay(strike, IMAGE_ID)
    (tmp_path / "app.py").write_text(APP)
    program = (
        "import struck; struck._doom.look_for({'body': 'of another'}); print('lived', flush=True);"
        f" struck.handler({{'body': '{IMAGE_ID}'}}, None)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={"PYTHONPATH": f"{INJECTED}:{tmp_path}", "INJECTED_STRIKES": str(folder), "INJECTED_FUNCTION": "F"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    said = done.stdout.splitlines()
    assert (said[0], said[-1]) == ("lived", last_words)
    (death,) = strikes.deaths()
    assert (death.function, death.token, death.image_ids) == ("F", IMAGE_ID, (IMAGE_ID,))
    assert strikes.lift() == 0
