"""The queue of deliveries, in SQS."""

from __future__ import annotations

from typing import TYPE_CHECKING

from darkroom.aws.kernel.errors import retryable
from darkroom.aws.kernel.signing import MessageSigner
from darkroom.domain.kernel.lanes import DELIVERY
from darkroom.domain.webhooks.delivery import DeliveryMessage

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient


class SqsDeliveryQueue:
    """Implements the `DeliveryQueue` port with one standard queue."""

    def __init__(self, client: SQSClient, queue_url: str, signer: MessageSigner) -> None:
        self._client = client
        self._queue_url = queue_url
        self._signer = signer

    def send(self, message: DeliveryMessage, *, delay_seconds: int = 0) -> None:
        with retryable("sending the message of a delivery"):
            self._client.send_message(
                QueueUrl=self._queue_url,
                DelaySeconds=delay_seconds,
                # A slow endpoint does not hold up the others.
                **self._signer.signed(DELIVERY, group=message.endpoint_id, body=message.model_dump_json()),
            )
