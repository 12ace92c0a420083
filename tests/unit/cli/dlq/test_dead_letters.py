"""`darkroom dlq`, over the fakes: the situation first, then the table, then what to type next."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from darkroom.domain.images.image import Attempt, Cause, DeadLetterState, Image, Status, message_for
from darkroom.domain.images.transitions import MAX_FETCH_CLAIMS, give_up_fetch
from darkroom.domain.imports.fetch import Unfetched, await_fetch, not_fetched
from darkroom.domain.kernel.instants import rfc3339
from darkroom.domain.kernel.lanes import LANES
from darkroom_client.client import ApiError
from tests.support.dead_letters import DAY, REFUSED, DeadLetterWorld, given_up, rejected
from tests.support.fakes.rows import accepted_image
from tests.support.images import NOW
from tests.support.stack import FakeStack
from tests.unit.cli.conftest import Run

QUEUES = ", ".join(LANES)

FAILED, LOST = given_up(1), given_up(2)


@pytest.fixture
def stack(stack: FakeStack, monkeypatch: pytest.MonkeyPatch) -> FakeStack:
    stack.world = DeadLetterWorld()
    monkeypatch.setattr("darkroom_cli.dlq.job.Job.pause", lambda *_: None)
    return stack


def test_a_listing_says_the_situation_the_cases_and_what_to_type_next(run: Run, stack: FakeStack) -> None:
    stack.world.place(FAILED, explained=False)
    stack.world.place(FAILED)
    stack.world.place(replace(given_up(3), status=Status.DONE))
    stack.world.dead_letters.add("fast", "no message")
    lines = run("dlq", "ls").stdout.splitlines()
    assert lines[0] == f"4 dead letters of 3 runs in {QUEUES}: 1 to replay, 1 settled, 1 unreadable."
    assert lines[2].split() == ["image", "lane", "cause", "verdict", "attempts", "age", "tenant", "letters"]
    row = next(line.split() for line in lines if FAILED.image_id in line)
    assert row == [FAILED.image_id, "slow", "ZeroDivisionError", "failed", "1", "1", "h", "0", "min", "default", "2"]
    target = "--stack shop --region eu-west-1"
    assert f"After the fix:  ./darkroom dlq replay {target}" in "\n".join(lines)
    assert f"To clean up:    ./darkroom dlq drop {target}" in "\n".join(lines)
    assert f"./darkroom dlq drop --verdict unreadable --force {target}" in "\n".join(lines)


def test_filters_are_repeated_in_what_to_type_next(run: Run, stack: FakeStack) -> None:
    stack.world.place(FAILED)
    shown = run("dlq", "ls", "--cause", "ZeroDivisionError", "--tenant", "default").stdout
    assert "./darkroom dlq replay --cause ZeroDivisionError --tenant default --stack shop" in shown
    shown = run("dlq", "ls", "--cause", "internal", "--verdict", "failed").stdout
    assert "./darkroom dlq replay --cause internal --stack shop" in shown, "which takes no --verdict"
    assert run("dlq", "ls", "--tenant", "acme").stdout == f"None of 1 dead letter in {QUEUES} matches.\n"


def test_a_dead_letter_that_sqs_will_soon_delete_is_pointed_out(run: Run, stack: FakeStack) -> None:
    stack.world.place(FAILED, sent_at=stack.clock() - 13 * DAY * 1000)
    assert "SQS deletes the oldest in 1 d 0 h; keep a copy: ./darkroom dlq archive" in run("dlq", "ls").stdout


def test_a_listing_that_is_not_whole_says_so(run: Run, stack: FakeStack) -> None:
    stack.world.place(FAILED)
    stack.world.place(LOST)
    assert "That is not all: of about 2 dead letters 1 were read." in run("dlq", "ls", "--limit", "1").stdout
    stack.world.dead_letters.take("slow", 1)
    assert "About 1 more are hidden by another reader" in run("dlq", "ls").stdout


def test_one_case_is_shown_with_its_stacks_and_the_log_to_read(run: Run, stack: FakeStack) -> None:
    stack.world.place(FAILED)
    shown = run("dlq", "show", FAILED.image_id).stdout
    assert shown.startswith(f"{FAILED.image_id}: ZeroDivisionError; its image was given up, and can be replayed.")
    for text in ("ZeroDivisionError: a bug", "  boom", "request r", "failed, run 1, attempt 5"):
        assert text in shown
    assert "./darkroom logs transcode_image --since 2026-11-21T08:59Z --text r --stack shop" in shown
    replays = f"./darkroom dlq replay --image {FAILED.image_id} --stack"
    assert f"{replays} shop" in shown
    (shown_as_json,) = json.loads(run("dlq", "show", FAILED.image_id, "--json").stdout)
    assert shown_as_json["command"] == f"{replays} shop --region eu-west-1"
    assert shown_as_json["explanation"]["replay"] == f'{replays} "$STACK"', "which the dead letter itself says"


def test_an_unreadable_dead_letter_is_shown_by_its_message_id_and_cannot_move_the_cursor(
    run: Run, stack: FakeStack
) -> None:
    dead_letter = stack.world.dead_letters.add("fast", "\x1b[2Jno message")
    result = run("dlq", "show", dead_letter.message_id)
    assert "not a version 1 message" in result.stdout and "\x1b" not in result.stdout
    assert json.loads(run("dlq", "show", dead_letter.message_id, "--json").stdout)[0]["body"] == dead_letter.body


def test_what_has_no_dead_letter_is_told_by_its_row(run: Run, stack: FakeStack) -> None:
    stack.images.rows[FAILED.image_id] = FAILED
    result = run("dlq", "show", FAILED.image_id)
    assert result.exit_code == 1
    assert f"It can still be replayed: ./darkroom dlq replay --image {FAILED.image_id}" in result.stderr
    assert "There is no dead letter and no image" in run("dlq", "show", LOST.image_id).stderr
    assert f"There is no dead letter nonsense in {QUEUES}." in run("dlq", "show", "nonsense").stderr


def attempts_of(*causes: Cause | None) -> tuple[Attempt, ...]:
    """Attempts that failed for these causes; None lost its worker."""
    return tuple(
        Attempt(
            run=1,
            number=number,
            request_id=f"r{number}",
            started_at=NOW,
            ended_at=None if cause is None else NOW,
            cause=cause,
        )
        for number, cause in enumerate(causes, start=1)
    )


def retried(*causes: Cause | None, **changes: Any) -> Image:
    """An unfinished image with such attempts."""
    row = accepted_image(now=NOW, image_id="7" * 26)
    return replace(row, attempt=len(causes), attempts=attempts_of(*causes), **changes)


def in_develop(message: str = "'large'") -> Cause:
    code = '  File "/opt/python/darkroom/operations/images/transcode_image.py", line 83, in _develop\n    sizes[name]\n'
    return Cause(error_type="KeyError", message=message, stack=code)


BUG = in_develop()
PLACE = "layers/core/darkroom/operations/images/transcode_image.py:83 in _develop"
FINGERPRINT = "KeyError@operations/transcode_image.py:_develop"


def being_fetched(attempt: int) -> Image:
    """An image whose fetching was begun so often."""
    row = await_fetch(accepted_image(now=NOW, image_id="6" * 26), "https://photos.example/a.jpg", now=NOW)
    return replace(row, attempt=attempt)


def owed(number: int, **changes: Any) -> Image:
    """An image that was given up a moment ago."""
    return replace(given_up(number), dead_letter=DeadLetterState.OWED, due_at=NOW, **changes)


@pytest.mark.guards("dlq-list-owed-letters")
def test_what_was_given_up_is_listed_and_explained_before_the_sweeper_has_placed_its_dead_letter(
    run: Run, stack: FakeStack
) -> None:
    row = owed(1)
    stack.images.rows[row.image_id] = row
    listed = run("dlq", "ls").stdout
    assert listed.startswith(f"No dead letters in {QUEUES}.\n")
    summary = "1 image given up whose dead letter is still coming: the sweeper places it within a minute."
    assert f"{summary}\n" in listed
    line = next(line.split() for line in listed.splitlines() if line.split()[:1] == [row.image_id])
    assert line == [row.image_id, "slow", "ZeroDivisionError", "failed", "1", "1", "h", "0", "min", "default", "0"]
    assert f"./darkroom dlq show {row.image_id} --stack shop" in listed
    (case,) = json.loads(run("dlq", "ls", "--json").stdout)["coming"]
    assert (case["image_id"], case["verdict"], case["letters"]) == (row.image_id, "failed", [])

    shown = run("dlq", "show", row.image_id).stdout
    assert shown.startswith(f"{row.image_id}: ZeroDivisionError; its image was given up, and can be replayed.")
    for text in ("still coming: the sweeper places it within a minute", "ZeroDivisionError: a bug", "  boom"):
        assert text in shown
    coming = "1 more image given up whose dead letter is still coming"
    for arguments in (["replay"], ["replay", "--yes"], ["replay", "--cause", "ZeroDivisionError"]):
        assert coming in run("dlq", *arguments).stdout
    for others in (("--cause", "KeyError"), ("--lane", "fast"), ("--tenant", "acme"), ("--verdict", "settled")):
        assert "still coming" not in run("dlq", "ls", *others).stdout
    assert "Replayed 1 image." in run("dlq", "replay", "--image", row.image_id, "--yes").stdout
    assert "still coming" not in run("dlq", "ls").stdout


@pytest.mark.guards("dlq-list-each-case-once")
def test_what_sqs_made_a_dead_letter_of_meanwhile_is_listed_once(run: Run, stack: FakeStack) -> None:
    stack.world.place(owed(1), explained=False)
    listed = run("dlq", "ls").stdout
    assert listed.startswith("1 dead letter") and "still coming" not in listed


@pytest.mark.guards("dlq-list-own-fetch-failures")
def test_what_could_not_be_fetched_because_of_us_is_listed_though_it_gets_no_dead_letter(
    run: Run, stack: FakeStack
) -> None:
    row = give_up_fetch(being_fetched(MAX_FETCH_CLAIMS), now=NOW)
    refused = replace(
        not_fetched(being_fetched(1), Unfetched(code="fetch_failed", message="No."), unit_random=0, now=NOW),
        image_id="9" * 26,
    )
    for image in (row, refused):
        assert image.due_at is not None and image.due_at <= stack.clock()
        stack.images.rows[image.image_id] = image
    listed = run("dlq", "ls").stdout
    assert "1 image not fetched because of a fault of ours, and without a dead letter" in listed
    assert f"./darkroom trace {row.image_id} --stack shop" in listed and refused.image_id not in listed
    for those in (("--cause", "fetch_failed"), ("--tenant", "default"), ("--image", row.image_id)):
        assert json.loads(run("dlq", "ls", *those, "--json").stdout)["unfetched"] == [row.image_id]
    for others in (("--cause", "KeyError"), ("--tenant", "acme"), ("--verdict", "failed"), ("--lane", "slow")):
        assert json.loads(run("dlq", "ls", *others, "--json").stdout)["unfetched"] == []


@pytest.mark.guards("dlq-list-hidden-not-none")
def test_dead_letters_that_another_reader_hides_are_not_said_to_be_none(run: Run, stack: FakeStack) -> None:
    stack.world.place(FAILED)
    stack.world.dead_letters.take("slow", 1)
    printed = run("dlq", "ls").stdout
    assert printed.startswith(f"No dead letter in {QUEUES} can be seen at this moment.\nAbout 1 more are hidden")


def test_a_replay_says_what_it_would_do_until_it_is_told_to(run: Run, stack: FakeStack) -> None:
    stack.world.place(FAILED)
    stack.world.dead_letters.add("fast", "no message")
    before = dict(stack.images.rows)
    result = run("dlq", "replay", "--rate", "20")
    assert result.stdout.startswith(f"Would replay 1 image of 2 dead letters in {QUEUES}. Nothing was changed.")
    assert "1 unreadable: these stay." in result.stdout
    assert "Do it:  ./darkroom dlq replay --rate 20 --yes --stack shop --region eu-west-1" in result.stdout
    assert (stack.images.rows, stack.lanes.sent) == (before, [])
    done = run("dlq", "replay", "--yes")
    assert done.stdout.startswith("Replayed 1 image. Dead letters: fast 1 before, 1 after, slow 1 before, 0 after")
    assert "Left alone: 1 unreadable." in done.stdout
    assert [message.run for message in stack.lanes.sent] == [2]
    assert "Nothing to replay." in run("dlq", "replay").stdout


@pytest.mark.parametrize("more", [[], ["--yes"]])
def test_a_refused_image_is_not_replayed_and_the_reason_is_told(run: Run, stack: FakeStack, more: list[str]) -> None:
    stack.images.rows[REFUSED.image_id] = REFUSED
    result = run("dlq", "replay", "--image", REFUSED.image_id, *more)
    assert result.exit_code == 1
    assert "It was refused (truncated: The file ends too early.)" in result.stderr


def test_a_whole_lane_is_replayed_by_a_move(run: Run, stack: FakeStack) -> None:
    stack.world.place(FAILED)
    stack.world.place(LOST)
    assert "./darkroom dlq replay --lane slow --all --yes" in run("dlq", "replay", "--all", "--lane", "slow").stdout
    assert stack.redrives.started == []
    shown = run("dlq", "replay", "--all", "--lane", "slow", "--yes").stdout
    assert shown.startswith("Replayed 2 images; SQS moved 2 dead letters back. Dead letters: slow 2 before, 0 after.")
    assert stack.redrives.started == [("slow", 10)]


def test_a_drop_takes_what_is_settled_and_more_only_by_force(run: Run, stack: FakeStack) -> None:
    stack.world.place(FAILED)
    stack.world.place(replace(given_up(3), status=Status.DONE))
    printed = run("dlq", "drop").stdout
    assert printed.startswith(f"Would drop 1 dead letter of 2 in {QUEUES}. Nothing was changed.")
    assert "1 to replay: these stay. --force drops them too." in printed
    assert run("dlq", "drop", "--yes").stdout.startswith(
        "Dropped 1 case. Dead letters: fast 0 before, 0 after, slow 2 "
    )
    assert "Nothing to drop." in run("dlq", "drop").stdout
    assert "Dropped 1 case." in run("dlq", "drop", "--force", "--yes").stdout


def test_the_archive_gets_what_is_old_enough(run: Run, stack: FakeStack) -> None:
    stack.world.place(FAILED, sent_at=stack.clock() - 13 * DAY * 1000)
    stack.world.place(LOST)
    assert "Would archive 1 dead letter of 2: older than 12d." in run("dlq", "archive").stdout
    assert stack.archive.objects == {}
    done = run("dlq", "archive", "--yes").stdout
    assert done == "Archived 1 dead letter to s3://archive/; 0 were there before, 1 are younger than 12d.\n"


def test_a_failure_midway_reports_what_was_done(run: Run, stack: FakeStack) -> None:
    stack.world.place(FAILED)
    stack.world.place(LOST)
    remove = stack.world.dead_letters.remove

    def fails_at_the_second(dead_letter: Any) -> None:
        if len(stack.world.dead_letters.messages["slow"]) == 1:
            raise ApiError("AWS did not answer")
        remove(dead_letter)

    stack.world.dead_letters.remove = fails_at_the_second
    result = run("dlq", "replay", "--yes")
    assert result.exit_code == 1
    assert "so far: 2 replayed" in result.stderr and "AWS did not answer" in result.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["ls", "--older-than", "soon"],
        ["ls", "--verdict", "lost"],
        ["ls", "--image", "../secrets"],
        ["replay", "--all", "--tenant", "acme"],
        ["replay", "--rate", "0"],
    ],
)
def test_what_makes_no_sense_is_a_usage_error(run: Run, stack: FakeStack, arguments: list[str]) -> None:
    assert run("dlq", *arguments).exit_code == 2


def test_without_a_stack_it_is_the_local_one_that_must_run(run: Run) -> None:
    result = run("dlq", "ls")
    assert result.exit_code == 1
    assert "The local stack is not running. Start it with: make run\nOr name a deployed stack: --stack" in result.stderr
    assert run("dlq", "ls", "--region", "eu-west-1").exit_code == 2


BATCH = json.dumps(
    {"v": 1, "batch": f"holds/x/{'0' * 40}.json.gz", "error": "Retryable", "cause": "no rows", "execution": "arn"}
)


def test_a_batch_that_was_given_up_is_told_of_and_moved_back_to_wake_again(run: Run, stack: FakeStack) -> None:
    dead_letter = stack.world.dead_letters.add("slow", BATCH)
    listed = run("dlq", "ls").stdout
    assert listed.startswith(f"1 dead letter in {QUEUES}: 1 of batches to wake again.")
    assert "Batches, fixed:" in listed and "./darkroom dlq replay --all --lane hold --stack shop" in listed
    shown = run("dlq", "show", dead_letter.message_id).stdout
    assert "Retryable" in shown and "no rows" in shown and "./darkroom dlq replay --all --lane hold" in shown

    assert "--all --lane hold" in run("dlq", "replay").stdout
    assert "Left alone: 1 batch." in run("dlq", "replay", "--yes").stdout
    assert stack.redrives.batches == []
    assert "1 batch of scheduled images would wake again." in run("dlq", "replay", "--all").stdout
    assert run("dlq", "replay", "--all", "--yes").exit_code == 0
    assert (stack.redrives.batches, stack.world.dead_letters.messages["slow"]) == ([BATCH], [])


def test_a_message_that_did_not_verify_is_shown_with_its_reason_and_what_to_do(run: Run, stack: FakeStack) -> None:
    dead_letter = rejected(stack.world)
    listed = run("dlq", "ls").stdout
    assert listed.startswith(f"1 dead letter in {QUEUES}: 1 rejected.")
    assert "forged" in listed and "./darkroom dlq drop --verdict rejected --force --stack shop" in listed
    shown = run("dlq", "show", dead_letter.message_id).stdout
    assert "docs/runbook.md#rejected-messages" in shown and "No row was read or changed for it." in shown
    assert "Left alone: 1 rejected." in run("dlq", "drop", "--yes").stdout
    moved = run("dlq", "replay", "--all", "--yes")
    assert moved.exit_code == 1 and "which this stack has not sent" in moved.stderr
    assert run("dlq", "drop", "--verdict", "rejected", "--force", "--yes").exit_code == 0
    assert stack.world.dead_letters.messages["slow"] == []


def test_a_dead_letter_whose_row_is_unreadable_is_shown_as_such(run: Run, stack: FakeStack) -> None:
    stack.world.place(FAILED)
    stack.images.unreadable[FAILED.image_id] = stack.images.rows.pop(FAILED.image_id)
    listed = run("dlq", "ls").stdout
    assert "1 of unreadable rows" in listed and "Unreadable rows:  ./darkroom doctor --stack shop" in listed
    assert "--force" not in listed
    shown = run("dlq", "show", FAILED.image_id).stdout
    assert "a newer version wrote its image's row: deploy that version again" in shown and "invented later" in shown


def test_what_is_still_retried_is_shown_by_defect_with_its_place_and_its_message(run: Run, stack: FakeStack) -> None:
    row = retried(BUG)
    stack.images.rows[row.image_id] = row
    shown = run("dlq", "ls").stdout
    assert shown.startswith("No dead letters in ")
    for line in (
        "Still retrying: 1 image, 1 defect.",
        f"  {FINGERPRINT}",
        "    KeyError: 'large'",
        f"    at {PLACE}",
        "       sizes[name]",
        f"    1 image, up to 1 attempt, the first has waited 1 h 0 min: {row.image_id}",
    ):
        assert f"{line}\n" in shown
    (defect,) = json.loads(run("dlq", "ls", "--json").stdout)["retrying"]
    assert (defect["fingerprint"], defect["images"]) == (FINGERPRINT, [row.image_id])
    for others in (("--cause", "IndexError"), ("--lane", "fast"), ("--tenant", "acme"), ("--verdict", "failed")):
        assert "Still retrying" not in run("dlq", "ls", *others).stdout


@pytest.mark.guards("fingerprints-former-name")
@pytest.mark.parametrize("wanted", [FINGERPRINT, "KeyError@aws/clients.py:timed"])
def test_one_defect_is_replayed_by_its_fingerprint_or_by_that_of_an_earlier_version(
    run: Run, stack: FakeStack, wanted: str
) -> None:
    def failed(number: int, place: str) -> Image:
        code = f'  File "/opt/python/darkroom/operations/images/transcode_image.py", line {number}, in {place}\n'
        if place == "_develop":
            code += '  File "/opt/python/darkroom/aws/kernel/clients.py", line 1, in timed\n'
        cause = Cause(error_type="KeyError", message="m", stack=code)
        image = replace(given_up(number), attempts=attempts_of(cause))
        stack.world.place(image)
        return image

    mine, other = failed(1, "_develop"), failed(2, "_store")
    assert f"defect     {FINGERPRINT}" in run("dlq", "show", mine.image_id).stdout
    result = run("dlq", "replay", "--fingerprint", wanted, "--yes")
    assert result.exit_code == 0, result.output
    assert stack.images.rows[mine.image_id].run == 2
    assert stack.images.rows[other.image_id].run == 1


def test_attempts_that_failed_alike_are_told_once_with_our_own_code_and_the_guilty_line_first(
    run: Run, stack: FakeStack
) -> None:
    code = (
        'Traceback (most recent call last):\n  File "/var/task/app.py", line 9, in settle\n    transcode_image(ports)\n'
        '  File "/opt/python/darkroom/operations/images/transcode_image.py", line 83, in _develop\n    sizes[name]\n'
        '  File "/opt/python/pydantic/main.py", line 1, in validate\n    raise\nKeyError: 1\n'
    )
    same = Cause(error_type="KeyError", message="1", stack=code)
    image = replace(given_up(1), attempts=attempts_of(same, same, None, replace(same, message="2"), same))
    stack.world.place(image)
    shown = run("dlq", "show", image.image_id).stdout
    heads = [line.partition("  ")[0] for line in shown.splitlines() if line.startswith("attempt")]
    assert heads == ["attempts 1 to 2", "attempt 3", "attempt 4", "attempt 5"]
    assert "request r2" in shown and "request r1" not in shown
    way = (
        "  KeyError: 1\n  at layers/core/darkroom/operations/images/transcode_image.py:83 in _develop\n"
        "      sizes[name]\n"
        "  called from functions/transcode_image/app.py:9 in settle\n      transcode_image(ports)\n"
    )
    assert shown.count(way) == 2
    assert "pydantic" not in shown and "Traceback" not in shown


def test_an_image_that_is_still_retried_is_shown_with_its_attempts_and_when_the_next_one_begins(
    run: Run, stack: FakeStack
) -> None:
    now = stack.clock()
    row = retried(BUG, BUG, not_before=now + 40_000)
    stack.images.rows[row.image_id] = row
    result = run("dlq", "show", row.image_id)
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    moment = rfc3339(now + 40_000)[11:19]
    goes_on = f"still retried, attempt 3 of 5 begins in 40 s at the earliest ({moment} UTC)"
    assert lines[0] == f"{row.image_id}: KeyError; {goes_on}."
    assert "  run        1, 2 attempts failed" in lines and "  row now    pending, run 1, attempt 2" in lines
    (head,) = [place for place, line in enumerate(lines) if line.startswith("attempts 1 to 2  ")]
    assert lines[head + 1 : head + 4] == [
        "  KeyError: 'large'",
        f"  at {PLACE}",
        "      sizes[name]",
    ]
    assert f"Look again:        ./darkroom dlq show {row.image_id} --stack shop --region eu-west-1" in lines
    assert "dlq replay" not in result.stdout
    (document,) = json.loads(run("dlq", "show", row.image_id, "--json").stdout)
    told = {"verdict": "retrying", "cause": "KeyError", "letters": [], "meaning": goes_on}
    assert document.items() >= told.items()
    assert [attempt["attempt"] for attempt in document["explanation"]["attempts"]] == [1, 2]
    assert document["frames"] == [[{"place": PLACE, "source": "sizes[name]"}]] * 2
    assert document["fingerprint"] == FINGERPRINT
    not_before = rfc3339(now + 40_000)
    assert document["retry"] == {"attempt": 3, "in_work": False, "began_at": None, "not_before": not_before}
    stack.world.place(FAILED)
    (case,) = json.loads(run("dlq", "show", FAILED.image_id, "--json").stdout)
    assert document.keys() - {"retry"} == case.keys()


@pytest.mark.parametrize(
    ("causes", "changes", "goes_on"),
    [
        ([BUG], {"not_before": NOW}, "KeyError; still retried, attempt 2 of 5 may begin at any moment"),
        (
            [BUG, None],
            {"status": Status.PROCESSING, "lease_until": NOW + 4_000_000},
            "KeyError; still retried, attempt 2 of 5 is in work for 1 h 0 min",
        ),
        (
            [None],
            {"status": Status.PROCESSING, "lease_until": NOW, "not_before": NOW + 3_612_000},
            "worker_lost; still retried, attempt 2 of 5 begins in 12 s at the earliest (10:00:12 UTC)",
        ),
        (
            [BUG, BUG, BUG, BUG, None],
            {"status": Status.PROCESSING, "lease_until": NOW},
            "KeyError; not given up yet, but all 5 attempts are over: the sweeper gives it up within a minute",
        ),
    ],
)
def test_what_follows_the_failed_attempts_is_said(
    causes: list[Cause | None], changes: dict[str, Any], goes_on: str, run: Run, stack: FakeStack
) -> None:
    row = retried(*causes, **changes)
    stack.images.rows[row.image_id] = row
    shown = run("dlq", "show", row.image_id).stdout
    assert shown.startswith(f"{row.image_id}: {goes_on}.\n")
    is_in_work = "in work" in goes_on
    assert ("never ended: its worker died" in shown) is (None in causes and not is_in_work)


@pytest.mark.guards("dlq-show-running-not-failed")
def test_an_image_in_its_first_attempt_has_no_failure_to_show(run: Run, stack: FakeStack) -> None:
    row = retried(None, status=Status.PROCESSING, lease_until=NOW + 4_000_000)
    stack.images.rows[row.image_id] = row
    result = run("dlq", "show", row.image_id)
    assert result.exit_code == 1
    assert "It is processing, in run 1, and no attempt has failed: see ./darkroom trace" in result.stderr


def test_that_not_all_unfinished_images_were_read_is_said(run: Run, stack: FakeStack) -> None:
    for number in (1, 2):
        row = accepted_image(now=NOW, image_id=f"{number:026d}")
        stack.images.rows[row.image_id] = row
    said = "Of the unfinished images only the 1 that have waited longest were read. See --limit.\n"
    assert said in run("dlq", "ls", "--limit", "1").stdout
    assert said not in run("dlq", "ls", "--limit", "2").stdout


def test_an_image_without_a_dead_letter_is_replayed_by_its_id(run: Run, stack: FakeStack) -> None:
    stack.images.rows[FAILED.image_id] = FAILED
    assert "by its row: its dead letter is gone" in run("dlq", "replay", "--image", FAILED.image_id).stdout
    assert "Replayed 1 image." in run("dlq", "replay", "--image", FAILED.image_id, "--yes").stdout
    assert stack.images.rows[FAILED.image_id].run == 2


@pytest.mark.parametrize("more", [[], ["--yes"]])
def test_a_lane_that_a_move_would_harm_is_not_moved(run: Run, stack: FakeStack, more: list[str]) -> None:
    stack.world.dead_letters.add("slow", "no message")
    result = run("dlq", "replay", "--all", *more)
    assert result.exit_code == 1
    assert "drop those first, or leave --all out" in result.stderr


@pytest.mark.parametrize("attempt", [{"attempt": 1}, {"started_at": "yesterday", "request_id": "r"}])
def test_a_dead_letter_in_another_versions_words_is_shown_as_far_as_it_can_be(
    run: Run, stack: FakeStack, attempt: dict[str, Any]
) -> None:
    stack.world.images.rows[FAILED.image_id] = FAILED
    explanation = json.dumps({"v": 1, "attempts": [attempt]})
    stack.world.dead_letters.add("slow", message_for(FAILED).model_dump_json(), explanation)
    assert run("dlq", "show", FAILED.image_id).exit_code == 0
