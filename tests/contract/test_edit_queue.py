"""The FIFO queue of edits: what SQS promises of one, and what the workers make of its messages."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import boto3
import pytest
import time_machine

from darkroom.aws.images.queues import SqsEditQueue
from darkroom.domain.images.image import Image, Status, message_for
from darkroom.domain.images.transitions import EDIT_DELAY_SECONDS
from darkroom.domain.kernel.errors import Retryable
from darkroom.domain.kernel.message import Message, read_message
from repository.expand_template import deployed
from tests.contract.conftest import Aws
from tests.contract.functions import SMALL_PHOTO, Functions, call, http_event, received
from tests.support.fakes.edit_queue import DEDUPLICATED_SECONDS, FakeEditQueue, QueuedEdit
from tests.support.fakes.messages import NOW, SIGNER
from tests.support.images import pending

A, B = (message_for(pending(image_id=f"{number:026d}", tenant_id="acme")) for number in (1, 2))


@pytest.fixture
def clock() -> Iterator[time_machine.Traveller]:
    with time_machine.travel(NOW / 1000, tick=False) as traveller:
        yield traveller


@pytest.fixture
def url(clock: time_machine.Traveller, aws: Aws) -> str:
    """The template's queue, which is empty."""
    declared = deployed(Environment="prod", Access="keys", EditOrder="fifo")["EditsQueue"]["Properties"]
    attributes = {name: str(value).lower() if value is True else str(value) for name, value in declared.items()}
    return str(boto3.client("sqs").create_queue(QueueName="edits.fifo", Attributes=attributes)["QueueUrl"])


@dataclass
class Edits:
    """A queue of edits, whose messages tell the number that they were put by as their run."""

    url: str
    fake: FakeEditQueue | None

    def put(self, message: Message, number: int) -> None:
        queue = self.fake or SqsEditQueue(boto3.client("sqs"), self.url, SIGNER)
        queue.put(message.model_copy(update={"run": number}), number=number)

    def receive(self) -> tuple[Message, int, Any] | None:
        """A message, its number and its receipt."""
        if self.fake is not None:
            queued = self.fake.receive()
            return None if queued is None else (queued.message, queued.number, queued)
        answer = boto3.client("sqs").receive_message(QueueUrl=self.url, AttributeNames=["All"])
        for one in answer.get("Messages", []):
            message = read_message(one["Body"])
            assert one["Attributes"]["MessageGroupId"] == message.image_id
            assert one["Attributes"]["MessageDeduplicationId"] == f"{message.image_id}-{message.run}"
            return message, message.run, one["ReceiptHandle"]
        return None

    def numbers(self) -> list[int]:
        """What is delivered one after the other, each deleted before the next is asked for."""
        numbers = []
        while (one := self.receive()) is not None:
            numbers.append(one[1])
            self.delete(one[2])
        return numbers

    def delete(self, receipt: Any) -> None:
        if isinstance(receipt, QueuedEdit) and self.fake:
            self.fake.delete(receipt)
        else:
            boto3.client("sqs").delete_message(QueueUrl=self.url, ReceiptHandle=receipt)

    def hide(self, receipt: Any, seconds: int) -> None:
        if isinstance(receipt, QueuedEdit) and self.fake:
            self.fake.hide(receipt, seconds)
        else:
            boto3.client("sqs").change_message_visibility(
                QueueUrl=self.url, ReceiptHandle=receipt, VisibilityTimeout=seconds
            )


@pytest.fixture
def edits(kind: str, url: str, clock: time_machine.Traveller) -> Edits:
    return Edits(url, FakeEditQueue(lambda: round(1000 * time.time())) if kind == "fake" else None)


@pytest.mark.guards("bulk-edit-fifo-number", case="aws")
def test_an_edit_that_is_put_again_within_five_minutes_is_one_message_and_each_edit_is_its_own(
    edits: Edits, clock: time_machine.Traveller
) -> None:
    for number in (1, 2, 3, 2, 1):  # A, B, A, and what is asked for again late
        edits.put(A, number)
    clock.shift(EDIT_DELAY_SECONDS)
    assert edits.numbers() == [1, 2, 3]
    clock.shift(DEDUPLICATED_SECONDS)
    edits.put(A, 2)
    clock.shift(EDIT_DELAY_SECONDS)
    assert edits.numbers() == [2], "it is a new message then, so the row must decide anyway"


def test_nothing_shows_before_the_queues_delay(edits: Edits, clock: time_machine.Traveller) -> None:
    edits.put(A, 1)
    clock.shift(EDIT_DELAY_SECONDS - 1)
    assert edits.receive() is None
    clock.shift(1)
    assert edits.receive() is not None


@pytest.mark.parametrize("hidden", ["in flight", "backing off"])
def test_an_image_waits_for_its_message_that_is_in_flight_or_backs_off_and_no_other_image_does(
    edits: Edits, clock: time_machine.Traveller, hidden: str
) -> None:
    for message, number in ((A, 1), (A, 2), (B, 7)):
        edits.put(message, number)
    clock.shift(EDIT_DELAY_SECONDS)
    first, other = edits.receive(), edits.receive()
    assert first and other and (first[1], other[1], edits.receive()) == (1, 7, None)
    if hidden == "backing off":
        edits.hide(first[2], 30)
    clock.shift(29)
    assert edits.receive() is None
    clock.shift(2 if hidden == "backing off" else 332)
    again = edits.receive()
    assert again is not None and again[1] == 1, "a received message comes again, before its image's next one"
    edits.delete(again[2])
    following = edits.receive()
    assert following is not None and following[1] == 2


def test_a_queue_that_cannot_answer_is_retryable(url: str) -> None:
    nowhere = boto3.client("sqs", endpoint_url="http://127.0.0.1:9")
    with pytest.raises(Retryable):
        SqsEditQueue(nowhere, url, SIGNER).put(A, number=1)


# ── The functions ────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def ordering(url: str, aws: Aws, monkeypatch: pytest.MonkeyPatch) -> Functions:
    """The functions of a stack with EditOrder=fifo."""
    monkeypatch.setenv("EDITS_QUEUE_URL", url)
    dead_letters = {**aws.dead_letter_urls, "edits": aws.dead_letter_urls["slow"]}
    return Functions(replace(aws, dead_letter_urls=dead_letters), monkeypatch)


def edited(functions: Functions, image_id: str, degrees: int) -> None:
    body = json.dumps({"rotate": degrees}).encode()
    headers = {"content-type": "application/json"}
    answer = call(functions.submit_image, http_event("POST", f"/images/{image_id}/edits", body=body, headers=headers))
    assert answer["statusCode"] == 202, answer


def developed(functions: Functions) -> Image:
    image_id = json.loads(functions.post(SMALL_PHOTO)["body"])["id"]
    assert functions.work() == {"batchItemFailures": []}
    return functions.row(image_id)


def worked(functions: Functions, event: dict[str, Any]) -> list[str]:
    """The messages that come back."""
    answer = call(functions.transcode_image, event)
    return [item["itemIdentifier"] for item in answer["batchItemFailures"]]


@pytest.mark.guards("bulk-edit-fifo-group-in-body", case="not told")
@pytest.mark.parametrize("group", ["told", "not told"])
def test_edits_go_through_their_queue_and_the_last_one_is_made(
    ordering: Functions, url: str, clock: time_machine.Traveller, group: str
) -> None:
    image = developed(ordering)
    for degrees in (90, 180, 90):
        edited(ordering, image.image_id, degrees)
    assert received(ordering.aws.slow_queue_url) == received(url) == {"Records": []}
    clock.shift(EDIT_DELAY_SECONDS)
    event = received(url)
    assert len(event["Records"]) == 3
    for record in event["Records"]:
        if group == "not told":
            del record["attributes"]["MessageGroupId"]
        assert worked(ordering, {"Records": [record]}) == []
    row = ordering.row(image.image_id)
    assert (row.status, row.run, row.edit_number, row.edited and row.edited.rotate) == (Status.DONE, 2, 3, 90)


@pytest.mark.guards("bulk-edit-fifo-comes-back")
def test_an_edit_that_fails_comes_back_to_its_queue_after_its_backoff(
    ordering: Functions, url: str, clock: time_machine.Traveller, monkeypatch: pytest.MonkeyPatch
) -> None:
    image = developed(ordering)
    edited(ordering, image.image_id, 90)
    clock.shift(EDIT_DELAY_SECONDS)
    event = received(url)
    with monkeypatch.context() as failing:
        failing.setattr(ordering.transcode_image.ports.originals, "get", lambda *_: 1 / 0)
        assert worked(ordering, event) == [event["Records"][0]["messageId"]]
    edited(ordering, image.image_id, 180)
    clock.shift(19)
    assert received(url) == {"Records": []}, "the later edit waits behind it"
    clock.shift(13)
    (again, *_) = received(url)["Records"]
    assert again["messageId"] == event["Records"][0]["messageId"], "long before its visibility timeout"
    assert worked(ordering, {"Records": [again]}) == [again["messageId"]], "for the edit that waited"
    clock.shift(EDIT_DELAY_SECONDS)
    assert worked(ordering, {"Records": [again]}) == []
    row = ordering.row(image.image_id)
    assert (row.status, row.edited and row.edited.rotate) == (Status.DONE, 180)


def test_a_message_of_a_lane_that_is_copied_into_it_is_rejected_to_the_slow_lanes_dead_letters(
    ordering: Functions, url: str
) -> None:
    assert ordering.post(SMALL_PHOTO)["statusCode"] == 202
    event = received(ordering.aws.slow_queue_url)
    event["Records"][0]["eventSourceARN"] = "arn:aws:sqs:us-east-1:123456789012:edits.fifo"
    assert worked(ordering, event) == []
    (rejected,) = boto3.client("sqs").receive_message(
        QueueUrl=ordering.aws.dead_letter_urls["slow"], MessageAttributeNames=["All"]
    )["Messages"]
    explained = json.loads(rejected["MessageAttributes"]["explanation"]["StringValue"])
    assert (explained["lane"], explained["cause"]) == ("edits", "forged")
