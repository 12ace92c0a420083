"""The dead-letter queues in SQS, and the archive bucket that outlives them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from functools import cached_property
from itertools import batched
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from darkroom.aws.kernel.errors import code_of, retryable
from darkroom.aws.kernel.signing import MessageSigner
from darkroom.domain.kernel.message import Message
from darkroom.domain.kernel.signature import SIGNATURE
from darkroom.ports.dead_letters import DeadLetter, Taken

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_sqs import SQSClient
    from mypy_boto3_sqs.type_defs import MessageTypeDef

    from darkroom.domain.dead_letters.rejection import RejectedMessage

EXPLANATION = "explanation"
"""The message attribute with the explanation of a dead letter that Darkroom made."""

HIDDEN_SECONDS = 60
"""How long a taken dead letter stays hidden from others if its taker dies."""

_BATCH = 10
"""The most that one call of SQS receives or changes."""


class DeadLetterQueues:
    """Implements the `DeadLetters` port with one standard queue for each of `queue_urls`.

    `once_client` is a client that does not retry. Only to `put` a message is a `signer` needed: moved back to its lane
    it must count there.
    """

    def __init__(
        self,
        client: SQSClient,
        once_client: SQSClient,
        queue_urls: Mapping[str, str],
        signer: MessageSigner | None = None,
    ) -> None:
        self._client = client
        self._once_client = once_client
        self._queue_urls = queue_urls
        self._signer = signer

    @property
    def queues(self) -> tuple[str, ...]:
        return tuple(self._queue_urls)

    def depth(self, queue: str) -> int:
        with retryable("reading the depth of dead letters"):
            answer = self._client.get_queue_attributes(
                QueueUrl=self._queue_urls[queue],
                AttributeNames=["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"],
            )
        return sum(int(count) for count in answer["Attributes"].values())

    def take(self, queue: str, limit: int) -> Taken:
        dead_letters: dict[str, DeadLetter] = {}
        asked_again, are_whole = False, True
        while len(dead_letters) < limit:
            with retryable("reading dead letters"):
                answer = self._client.receive_message(
                    QueueUrl=self._queue_urls[queue],
                    MaxNumberOfMessages=min(_BATCH, limit - len(dead_letters)),
                    VisibilityTimeout=HIDDEN_SECONDS,
                    # A long poll asks all of the queue's servers; a short one may miss messages
                    # (https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-short-and-long-polling.html).
                    WaitTimeSeconds=1,
                    MessageSystemAttributeNames=["SentTimestamp"],
                    MessageAttributeNames=[EXPLANATION, SIGNATURE],
                )
            messages = answer.get("Messages", [])
            asked_again |= answer["ResponseMetadata"]["RetryAttempts"] > 0  # guard: dead-letters-lost-answer-told
            if not messages:
                # guard: dead-letters-damaged-missing
                return Taken(dead_letters=tuple(dead_letters.values()), complete=are_whole, asked_again=asked_again)
            known = dead_letters.keys() & {message["MessageId"] for message in messages}
            undamaged = [message for message in messages if _is_whole(message)]  # guard: dead-letters-damaged-unread
            are_whole &= len(undamaged) == len(messages)
            dead_letters |= {message["MessageId"]: _dead_letter(queue, message) for message in undamaged}
            if len(known) == len(messages):
                # The first ones show again before the last was read: the queue is too long for one reader.
                break
        return Taken(dead_letters=tuple(dead_letters.values()), complete=False, asked_again=asked_again)

    def sample(self, queue: str) -> tuple[DeadLetter, ...]:
        with retryable("reading some dead letters"):
            answer = self._client.receive_message(
                QueueUrl=self._queue_urls[queue],
                MaxNumberOfMessages=_BATCH,
                # guard: top-dead-letter-sample-visible
                VisibilityTimeout=0,  # a replay that runs meanwhile misses none of them
                WaitTimeSeconds=1,
                MessageSystemAttributeNames=["SentTimestamp"],
                MessageAttributeNames=[EXPLANATION, SIGNATURE],
            )
        undamaged = filter(_is_whole, answer.get("Messages", []))
        return tuple({message["MessageId"]: _dead_letter(queue, message) for message in undamaged}.values())

    def give_back(self, dead_letters: tuple[DeadLetter, ...]) -> None:
        for queue, url in self._queue_urls.items():
            for batch in batched(
                (dead_letter for dead_letter in dead_letters if dead_letter.queue == queue), _BATCH, strict=False
            ):
                with retryable("giving dead letters back"):
                    # What cannot be given back now comes back by itself within a minute.
                    self._client.change_message_visibility_batch(
                        QueueUrl=url,
                        Entries=[
                            {"Id": str(number), "ReceiptHandle": dead_letter.receipt, "VisibilityTimeout": 0}
                            for number, dead_letter in enumerate(batch)
                        ],
                    )

    def remove(self, dead_letter: DeadLetter) -> None:
        with retryable("removing a dead letter"):
            self._client.delete_message(QueueUrl=self._queue_urls[dead_letter.queue], ReceiptHandle=dead_letter.receipt)

    def put(self, queue: str, message: Message, explanation: dict[str, Any]) -> None:
        if self._signer is None:
            raise TypeError("dead letters of messages are signed: this needs a signer")
        signed = self._signer.signed(queue, group=message.tenant_id, body=message.model_dump_json())
        attributes = {**signed["MessageAttributes"], **_explained(explanation)}  # guard: signatures-own-dead-letter
        with retryable("placing a dead letter"):
            self._once_client.send_message(  # guard: dead-letters-single-try-client
                QueueUrl=self._queue_urls[queue], **{**signed, "MessageAttributes": attributes}
            )


class RejectedMessageQueues:
    """Implements the `RejectedMessages` port with the dead-letter queues at `queue_urls`.

    `once_client` makes a client that does not retry, for the first message that is rejected: most functions never see
    one.
    """

    def __init__(self, once_client: Callable[[], SQSClient], queue_urls: Mapping[str, str]) -> None:
        self._make_client = once_client
        self._queue_urls = queue_urls

    @cached_property
    def _client(self) -> SQSClient:
        return self._make_client()

    def put_rejected(self, queue: str, message: RejectedMessage, explanation: dict[str, Any]) -> None:
        with retryable("placing a dead letter"):
            self._client.send_message(
                QueueUrl=self._queue_urls[queue],
                MessageBody=message.model_dump_json(),
                MessageAttributes=_explained(explanation),
            )


class DeadLetterArchive:
    """Implements the `Archive` port with a bucket."""

    def __init__(self, client: S3Client, bucket_name: str) -> None:
        self._client = client
        self._bucket_name = bucket_name

    def put_if_absent(self, key: str, document: dict[str, Any]) -> bool:
        try:
            with retryable(f"archiving {key}"):
                self._client.put_object(
                    Bucket=self._bucket_name,
                    Key=key,
                    Body=json.dumps(document, indent=2, ensure_ascii=False).encode(),
                    ContentType="application/json",
                    IfNoneMatch="*",
                    ChecksumAlgorithm="SHA256",
                )
        except ClientError as error:
            if code_of(error) != "PreconditionFailed":
                raise
            return False
        return True


def _explained(explanation: dict[str, Any]) -> dict[str, Any]:
    return {EXPLANATION: {"DataType": "String", "StringValue": json.dumps(explanation)}}


def _is_whole(message: MessageTypeDef) -> bool:
    """Whether the body is the one that SQS stores: a damaged one would be archived for good, and comes again whole."""
    return message["MD5OfBody"] == hashlib.md5(message["Body"].encode(), usedforsecurity=False).hexdigest()


def _dead_letter(queue: str, message: MessageTypeDef) -> DeadLetter:
    explanation = message.get("MessageAttributes", {}).get(EXPLANATION)
    return DeadLetter(
        queue=queue,
        message_id=message["MessageId"],
        receipt=message["ReceiptHandle"],
        body=message["Body"],
        explanation=None if explanation is None else explanation.get("StringValue"),
        is_signed=SIGNATURE in message.get("MessageAttributes", {}),
        sent_at=int(message["Attributes"]["SentTimestamp"]),
    )
