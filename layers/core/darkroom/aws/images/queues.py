"""The lanes and the other queues of images, in SQS."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import batched
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from darkroom.aws.kernel.errors import code_of, is_passing_code, retryable
from darkroom.aws.kernel.signing import MessageSigner
from darkroom.domain.kernel.errors import Retryable, Unplaceable, demand_none
from darkroom.domain.kernel.lanes import EDITS, FETCH, HOLD, UPLOAD
from darkroom.domain.kernel.message import Message
from darkroom.ports.images import QueueDepth

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

_BATCH = 10
"""The most messages that one call sends."""

_IN_THE_LANE: Sequence[Any] = ("ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible")
"""Waiting and in-flight messages. SQS's counts are approximate, and a minute late after a burst
(https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_GetQueueAttributes.html)."""

_SENDINGS = 3
"""How often the entries of a batch that SQS reports as failed are sent before the rest is given up."""


class LaneQueues:
    """Implements the `Lanes` port with one standard queue per lane, or another lane's for the lane of a part that is
    not deployed: messages are signed for the first lane with that queue, as which its workers check them."""

    def __init__(self, client: SQSClient, queue_urls: Mapping[str, str], signer: MessageSigner) -> None:
        self._client = client
        self._queue_urls = queue_urls
        self._signer = signer
        self._signed_for = {url: lane for lane, url in reversed([*queue_urls.items()])}

    def send(self, message: Message, *, delay_seconds: int = 0) -> None:
        with retryable("sending the message"):
            self._client.send_message(
                QueueUrl=self._queue_urls[message.lane],
                DelaySeconds=delay_seconds,
                **_signed(self._signer, self._signed_as(message.lane), message),
            )

    def send_all(self, lane: str, messages: Sequence[tuple[Message, int]]) -> Mapping[int, Exception]:
        signed = partial(_signed, self._signer, self._signed_as(lane))
        return _send_all(self._client, self._queue_urls[lane], messages, signed)

    def _signed_as(self, lane: str) -> str:
        return self._signed_for[self._queue_urls[lane]]  # guard: bulk-signed-for-shared-queue

    def backlog(self, lane: str) -> int:
        with retryable("reading the lane's depth"):
            answer = self._client.get_queue_attributes(
                QueueUrl=self._queue_urls[lane], AttributeNames=["ApproximateNumberOfMessages"]
            )
        return int(answer["Attributes"]["ApproximateNumberOfMessages"])


class SqsEditQueue:
    """Implements the `EditQueue` port with a FIFO queue whose groups are images. Their delay is the queue's: a message
    in it has none of its own."""

    def __init__(self, client: SQSClient, queue_url: str, signer: MessageSigner) -> None:
        self._client = client
        self._queue_url = queue_url
        self._signer = signer

    def put(self, message: Message, *, number: int) -> None:
        body = message.model_dump_json()
        with retryable("sending the message of an edit"):
            self._client.send_message(
                QueueUrl=self._queue_url,
                # Of the number, as a body is the same for several edits of a run.
                MessageDeduplicationId=f"{message.image_id}-{number}",  # guard: bulk-edit-fifo-number
                **self._signer.signed(
                    EDITS, group=message.image_id, body=body
                ),  # the tenant would order all its images
            )


class LaneDepths:
    """Implements the `Depths` port with the lanes' queues."""

    def __init__(self, client: SQSClient, queue_urls: Mapping[str, str]) -> None:
        self._client = client
        self._queue_urls = queue_urls

    def depth(self, lane: str) -> QueueDepth:
        with retryable("reading the lane's depth"):
            answer = self._client.get_queue_attributes(QueueUrl=self._queue_urls[lane], AttributeNames=_IN_THE_LANE)
        waiting, taken = (int(answer["Attributes"][name]) for name in _IN_THE_LANE)
        return QueueDepth(waiting=waiting, taken=taken)


class SqsHoldQueue:
    """Implements the `HoldQueue` port with a standard queue."""

    def __init__(self, client: SQSClient, queue_url: str, signer: MessageSigner) -> None:
        self._client = client
        self._queue_url = queue_url
        self._signer = signer

    def put(self, message: Message) -> None:
        with retryable("sending the message to be held"):
            self._client.send_message(QueueUrl=self._queue_url, **_signed(self._signer, HOLD, message))

    def put_all(self, messages: Sequence[Message]) -> Mapping[int, Exception]:
        signed = partial(_signed, self._signer, HOLD)
        return _send_all(self._client, self._queue_url, [(message, 0) for message in messages], signed)


class SqsUploadQueue:
    """Implements the `UploadQueue` port with a standard queue."""

    def __init__(self, client: SQSClient, queue_url: str, signer: MessageSigner) -> None:
        self._client = client
        self._queue_url = queue_url
        self._signer = signer

    def put(self, message: Message) -> None:
        with retryable("sending a reminder of an upload"):
            self._client.send_message(QueueUrl=self._queue_url, **_signed(self._signer, UPLOAD, message))

    def postpone(self, receipt_handle: str, seconds: int) -> None:
        """Makes a received notification come back after `seconds`. Raises Retryable if it comes back by itself."""
        change_visibility(self._client, self._queue_url, receipt_handle, seconds)


class SqsFetchQueue:
    """Implements the `FetchQueue` port with a standard queue."""

    def __init__(self, client: SQSClient, queue_url: str, signer: MessageSigner) -> None:
        self._client = client
        self._queue_url = queue_url
        self._signer = signer

    def put(self, message: Message) -> None:
        with retryable("sending the message to be fetched"):
            self._client.send_message(QueueUrl=self._queue_url, **_signed(self._signer, FETCH, message))

    def depth(self) -> QueueDepth:
        with retryable("reading the fetch queue's depth"):
            answer = self._client.get_queue_attributes(QueueUrl=self._queue_url, AttributeNames=_IN_THE_LANE)
        waiting, taken = (int(answer["Attributes"][name]) for name in _IN_THE_LANE)
        return QueueDepth(waiting=waiting, taken=taken)


class EdgeQueue:
    """Implements the `StaleEdge` port with a standard queue of another stack, which is not told our key: a message
    there is not signed, and can only make the edge forget what it may fetch again."""

    def __init__(self, client: SQSClient, queue_url: str) -> None:
        self._client = client
        self._queue_url = queue_url

    def forget(self, owners: Mapping[str, str], *, delay_seconds: int = 0) -> None:
        messages = [(owner, delay_seconds) for owner in owners.items()]
        demand_none(_send_all(self._client, self._queue_url, messages, _of_image))


def _of_image(owner: tuple[str, str]) -> Mapping[str, Any]:
    image_id, tenant_id = owner
    return {"MessageGroupId": tenant_id, "MessageBody": json.dumps({"image_id": image_id})}


type Sent[M] = Callable[[M], Mapping[str, Any]]
"""Returns what a call sends of a message."""


def _signed(signer: MessageSigner, queue: str, message: Message) -> Mapping[str, Any]:
    return signer.signed(queue, group=message.tenant_id, body=message.model_dump_json())


def _send_all[M](
    client: SQSClient, queue_url: str, messages: Sequence[tuple[M, int]], sent: Sent[M]
) -> Mapping[int, Exception]:
    """Sends messages ten at a time; returns those that may not have been sent, by their index. Once a queue does not
    answer, the rest is not tried: each call waits for seconds."""
    unsent: dict[int, Exception] = {}
    for batch in batched(enumerate(messages), _BATCH, strict=False):
        unavailable = next((error for error in unsent.values() if isinstance(error, Retryable)), None)
        if unavailable is not None:
            unsent |= dict.fromkeys((place for place, _ in batch), unavailable)
        else:
            unsent |= _send_batch(client, queue_url, dict(batch), sent)
    return unsent


def _send_batch[M](
    client: SQSClient, queue_url: str, messages: Mapping[int, tuple[M, int]], sent: Sent[M]
) -> Mapping[int, Exception]:
    """Sends up to ten messages. A batch may fail in part, with a 200: those are sent again, unless SQS refuses them."""
    try:
        left: dict[str, Any] = {
            str(place): {"Id": str(place), "DelaySeconds": delay_seconds, **sent(message)}
            for place, (message, delay_seconds) in messages.items()
        }
    except Retryable as error:  # guard: signatures-no-key-batch
        return dict.fromkeys(messages, error)
    refused: dict[int, Exception] = {}
    for _ in range(_SENDINGS):
        try:
            with retryable("sending messages"):
                answer = client.send_message_batch(QueueUrl=queue_url, Entries=list(left.values()))
        except Retryable as error:
            return refused | dict.fromkeys(map(int, left), error)
        failed = {entry["Id"]: entry for entry in answer.get("Failed", [])}  # guard: batches-failed-sent-again
        for number, entry in failed.items():
            # guard: batches-refused-message-isolated, batches-throttled-not-refused
            if entry.get("SenderFault") and not is_passing_code(entry["Code"]):
                refused[int(number)] = Unplaceable(f"SQS refuses its message: {entry['Code']}")
        left = {number: entry for number, entry in left.items() if number in failed.keys() - map(str, refused)}
        if not left:
            return refused
    return refused | dict.fromkeys(map(int, left), Retryable("sending messages: SQS reports some as failed each time"))


def change_visibility(client: SQSClient, queue_url: str, receipt_handle: str, seconds: int) -> None:
    """Makes a received message come back after `seconds`: a retry by visibility keeps its receive count.

    Raises Retryable if the queue cannot answer or no longer knows the receipt. Nothing is lost then: the message comes
    back after the queue's own timeout.
    """
    with retryable("changing a message's visibility"):
        try:
            client.change_message_visibility(
                QueueUrl=queue_url, ReceiptHandle=receipt_handle, VisibilityTimeout=seconds
            )
        except ClientError as error:
            raise Retryable(f"changing a message's visibility: {code_of(error)}") from error
