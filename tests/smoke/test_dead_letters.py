"""`darkroom dlq` on the local stack: found by CloudFormation, moved by the move task, replayed by real workers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from darkroom.domain.kernel.lanes import LANES
from tests.local.dead_letter_fixture import DeadLetterFixture
from tests.local.local_stack import LocalStack, wait_until


@pytest.fixture
def dead_letters(stack: LocalStack) -> Iterator[DeadLetterFixture]:
    yield (dead_letters := DeadLetterFixture(stack))
    dead_letters.empty()


def dlq(stack: LocalStack, *arguments: str) -> str:
    done = stack.darkroom("dlq", *arguments)
    assert done.returncode == 0, done.stdout
    return done.stdout


def test_what_was_given_up_is_listed_explained_and_replayed(stack: LocalStack, dead_letters: DeadLetterFixture) -> None:
    image = dead_letters.give_up()
    listing: dict[str, Any] = json.loads(dlq(stack, "ls", "--json"))
    (case,) = listing["cases"]
    assert set(listing["queues"]) == {*LANES, "hold", "upload", "fetch"}
    assert (case["image_id"], case["cause"], case["verdict"]) == (image.image_id, "KeyError", "failed")
    assert "  boom" in dlq(stack, "show", image.image_id)
    assert "Would replay 1 image" in dlq(stack, "replay", "--cause", "keyerror")
    assert "Replayed 1 image." in dlq(stack, "replay", "--cause", "keyerror", "--yes")
    wait_until(lambda: dead_letters.is_done_again(image), "the image is developed again")
    assert "No dead letters" in dlq(stack, "ls")


def test_a_whole_lane_is_moved_back_and_developed_again(stack: LocalStack, dead_letters: DeadLetterFixture) -> None:
    images = [dead_letters.give_up(), dead_letters.give_up()]
    said = dlq(stack, "replay", "--all", "--rate", "500", "--yes")
    assert "Replayed 2 images; SQS moved 2 dead letters back." in said
    for image in images:
        wait_until(lambda image=image: dead_letters.is_done_again(image), "the image is developed again")  # type: ignore[misc]
    assert "No dead letters" in dlq(stack, "ls")


def test_what_is_left_can_be_archived_and_dropped(stack: LocalStack, dead_letters: DeadLetterFixture) -> None:
    image = dead_letters.give_up()
    assert "Archived 1 dead letter to s3://" in dlq(stack, "archive", "--older-than", "0s", "--yes")
    assert "1 were there before" in dlq(stack, "archive", "--older-than", "0s", "--yes")
    assert "Nothing to drop." in dlq(stack, "drop")
    assert "Dropped 1 case." in dlq(stack, "drop", "--force", "--yes")
    assert "It can still be replayed" in stack.darkroom("dlq", "show", image.image_id).stdout
    assert "Replayed 1 image." in dlq(stack, "replay", "--image", image.image_id, "--yes")
    wait_until(lambda: dead_letters.is_done_again(image), "the image is developed again")
