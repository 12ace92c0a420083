"""The queue of deliveries, in SQS."""

from __future__ import annotations

from typing import TYPE_CHECKING

from darkroom.aws.errors import retryable
from darkroom.domain.delivery import DeliveryMessage

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient


class SqsDeliveryQueue:
    """Implements the `DeliveryQueue` port with one standard queue."""

    def __init__(self, client: SQSClient, queue_url: str) -> None:
        self._client = client
        self._queue_url = queue_url

    def send(self, message: DeliveryMessage, *, delay_seconds: int = 0) -> None:
        with retryable("sending the message of a delivery"):
            self._client.send_message(
                QueueUrl=self._queue_url,
                MessageBody=message.model_dump_json(),
                # A standard queue is fair between its groups
                # (https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-fair-queues.html).
                MessageGroupId=message.endpoint_id,
                DelaySeconds=delay_seconds,
            )
