"""The lanes as SQS queues."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from darkroom.aws.errors import code_of, retryable
from darkroom.domain.errors import Retryable
from darkroom.domain.message import Message

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient


class LaneQueues:
    """Keeps the `Lanes` port with one standard queue a lane."""

    def __init__(self, client: SQSClient, queue_urls: Mapping[str, str]) -> None:
        self._client = client
        self._queue_urls = queue_urls

    def send(self, message: Message) -> None:
        with retryable("sending the message"):
            self._client.send_message(
                QueueUrl=self._queue_urls[message.lane],
                MessageBody=message.model_dump_json(),
                # On a standard queue the group id makes the queue fair between tenants; it does not order anything
                # (https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-fair-queues.html).
                MessageGroupId=message.tenant_id,
            )

    def backlog(self, lane: str) -> int:
        with retryable("reading the lane's depth"):
            answer = self._client.get_queue_attributes(
                QueueUrl=self._queue_urls[lane], AttributeNames=["ApproximateNumberOfMessages"]
            )
        return int(answer["Attributes"]["ApproximateNumberOfMessages"])


def hide_for(client: SQSClient, queue_url: str, receipt_handle: str, seconds: int) -> None:
    """Lets a received message come back after `seconds`: retry by visibility keeps its receive count.

    Raises Retryable where the queue cannot answer or does not know the receipt (any more); nothing is lost then: the
    message comes back after the queue's own timeout.
    """
    with retryable("changing a message's visibility"):
        try:
            client.change_message_visibility(
                QueueUrl=queue_url, ReceiptHandle=receipt_handle, VisibilityTimeout=seconds
            )
        except ClientError as error:
            raise Retryable(f"changing a message's visibility: {code_of(error)}") from error
