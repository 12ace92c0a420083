"""`darkroom dlq` on the local stack: found by CloudFormation, moved by the move task, replayed by real workers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from console.api.client import IMAGE_ID_PATTERN
from darkroom.aws.dead_letters import DeadLetterQueues
from darkroom.aws.images_table import from_item, to_item
from darkroom.aws.secrets import StoredSecret
from darkroom.aws.signing import MessageSigner
from darkroom.domain.dead_letter import explanation_of
from darkroom.domain.errors import INTERNAL
from darkroom.domain.image import Attempt, Cause, DeadLetterState, Failure, Image, Status, message_for
from darkroom.domain.lanes import LANES
from tests.local.local_stack import PHOTO, LocalStack, wait_until


class Morgue:
    """Makes images of the stack look given up, and checks what happens to them."""

    def __init__(self, stack: LocalStack) -> None:
        self._stack, self._dynamodb, sqs = stack, stack.client("dynamodb"), stack.client("sqs")
        urls = {"fast": stack.outputs["FastDeadLettersUrl"], "slow": stack.outputs["SlowDeadLettersUrl"]}
        keys = StoredSecret(lambda: stack.client("secretsmanager"), stack.physical_id("MessageKey"), clock=lambda: 0)
        self.letters = DeadLetterQueues(sqs, sqs, urls, MessageSigner(keys, lambda: 0))

    def row(self, image_id: str) -> Image:
        key = {"image_id": {"S": image_id}}
        table = self._stack.outputs["ImagesTableName"]
        return from_item(self._dynamodb.get_item(TableName=table, Key=key, ConsistentRead=True)["Item"])

    def give_up(self) -> Image:
        """A developed photo whose row says that it was given up, with its one dead letter."""
        uploaded = self._stack.darkroom("upload", PHOTO, "--variants", "thumb", "--wait")
        image_id = IMAGE_ID_PATTERN.search(uploaded.stdout)
        assert uploaded.returncode == 0 and image_id is not None, uploaded.stdout
        done = self.row(image_id.group())
        cause = Cause(error_type="KeyError", message="'gamma'", stack="Traceback\n  boom")
        attempt = Attempt(run=1, number=5, request_id="r-5", started_at=done.created_at, ended_at=1, cause=cause)
        row = replace(
            done,
            status=Status.FAILED,
            attempts=(attempt,),
            dead_letter=DeadLetterState.KEPT,
            variants=(),
            error=Failure(code=INTERNAL, message="It failed 5 times.", retryable=True),
        )
        self._dynamodb.put_item(TableName=self._stack.outputs["ImagesTableName"], Item=to_item(row))
        self.letters.put(row.lane, message_for(row), explanation_of(row))
        return row

    def is_done_again(self, image: Image) -> bool:
        row = self.row(image.image_id)
        return (row.status, row.run) == (Status.DONE, 2)


@pytest.fixture
def morgue(stack: LocalStack) -> Iterator[Morgue]:
    yield (morgue := Morgue(stack))
    for queue in morgue.letters.queues:
        for letter in morgue.letters.take(queue, 100).letters:
            morgue.letters.remove(letter)


def dlq(stack: LocalStack, *arguments: str) -> str:
    done = stack.darkroom("dlq", *arguments)
    assert done.returncode == 0, done.stdout
    return done.stdout


def test_what_was_given_up_is_listed_explained_and_replayed(stack: LocalStack, morgue: Morgue) -> None:
    image = morgue.give_up()
    listing: dict[str, Any] = json.loads(dlq(stack, "ls", "--json"))
    (case,) = listing["cases"]
    assert set(listing["queues"]) == {*LANES, "hold", "upload"}
    assert (case["image_id"], case["cause"], case["verdict"]) == (image.image_id, "KeyError", "failed")
    assert "  boom" in dlq(stack, "show", image.image_id)
    assert "Would replay 1 image" in dlq(stack, "replay", "--cause", "keyerror")
    assert "Replayed 1 image." in dlq(stack, "replay", "--cause", "keyerror", "--yes")
    wait_until(lambda: morgue.is_done_again(image), "the image is developed again")
    assert "No dead letters" in dlq(stack, "ls")


def test_a_whole_lane_is_moved_back_and_developed_again(stack: LocalStack, morgue: Morgue) -> None:
    images = [morgue.give_up(), morgue.give_up()]
    said = dlq(stack, "replay", "--all", "--rate", "500", "--yes")
    assert "Replayed 2 images; SQS moved 2 dead letters back." in said
    for image in images:
        wait_until(lambda image=image: morgue.is_done_again(image), "the image is developed again")  # type: ignore[misc]
    assert "No dead letters" in dlq(stack, "ls")


def test_what_is_left_can_be_archived_and_dropped(stack: LocalStack, morgue: Morgue) -> None:
    image = morgue.give_up()
    assert "Archived 1 dead letter to s3://" in dlq(stack, "archive", "--older-than", "0s", "--yes")
    assert "1 were there before" in dlq(stack, "archive", "--older-than", "0s", "--yes")
    assert "Nothing to drop." in dlq(stack, "drop")
    assert "Dropped 1 case." in dlq(stack, "drop", "--force", "--yes")
    assert "It can still be replayed" in stack.darkroom("dlq", "show", image.image_id).stdout
    assert "Replayed 1 image." in dlq(stack, "replay", "--image", image.image_id, "--yes")
    wait_until(lambda: morgue.is_done_again(image), "the image is developed again")
