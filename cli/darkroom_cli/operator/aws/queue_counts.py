"""How many messages a stack's queues have, asked of SQS."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from darkroom.aws.kernel.errors import retryable
from darkroom_cli.operator.domain.observation import QueueCount

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient


class SqsQueueCounts:
    """Implements the `QueueCounts` port with the queues at `queue_urls`."""

    def __init__(self, client: SQSClient, queue_urls: Mapping[str, str]) -> None:
        self._client = client
        self._queue_urls = queue_urls

    @property
    def queues(self) -> tuple[str, ...]:
        return tuple(self._queue_urls)

    def count(self, queue: str) -> QueueCount:
        with retryable(f"counting the messages of {queue}"):
            answer = self._client.get_queue_attributes(
                QueueUrl=self._queue_urls[queue],
                AttributeNames=[
                    "ApproximateNumberOfMessages",
                    "ApproximateNumberOfMessagesNotVisible",
                    "ApproximateNumberOfMessagesDelayed",
                ],
            )
        counts = answer["Attributes"]
        return QueueCount(
            waiting=int(counts["ApproximateNumberOfMessages"]),
            in_flight=int(counts["ApproximateNumberOfMessagesNotVisible"]),
            delayed=int(counts["ApproximateNumberOfMessagesDelayed"]),
        )
