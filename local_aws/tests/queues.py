"""Queues and topics for the tests of the emulator: with a dead-letter queue, and with messages in them."""

import json
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from local_aws.tests.emulator_server import ACCOUNT_ID, REGION, EmulatorServer


@dataclass(frozen=True, kw_only=True)
class Queue:
    """A queue of an emulator."""

    server: EmulatorServer
    name: str
    url: str

    @property
    def arn(self) -> str:
        return f"arn:aws:sqs:{REGION}:{ACCOUNT_ID}:{self.name}"

    def send(self, body: str, **options: Any) -> str:
        """Send a message and return its id."""
        message_id: str = self._sqs.send_message(QueueUrl=self.url, MessageBody=body, **options)["MessageId"]
        return message_id

    def receive(self, limit: int = 10, **options: Any) -> list[dict[str, Any]]:
        """Receive messages with all of their attributes."""
        answer = self._sqs.receive_message(
            QueueUrl=self.url,
            MaxNumberOfMessages=limit,
            MessageSystemAttributeNames=["All"],
            MessageAttributeNames=["All"],
            **options,
        )
        messages: list[dict[str, Any]] = answer.get("Messages", [])
        return messages

    def delete(self, handle: str) -> None:
        """Delete a message by a receipt handle."""
        self._sqs.delete_message(QueueUrl=self.url, ReceiptHandle=handle)

    def counts(self) -> tuple[int, int]:
        """Return how many messages are visible, and how many in flight."""
        names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
        attributes = self._sqs.get_queue_attributes(QueueUrl=self.url, AttributeNames=names)["Attributes"]
        return int(attributes[names[0]]), int(attributes[names[1]])

    @property
    def _sqs(self) -> Any:
        return self.server.client("sqs")


def queue(server: EmulatorServer, suffix: str = "", **attributes: str) -> Queue:
    """Create a queue of an unused name."""
    name = f"queue-{uuid4().hex[:8]}{suffix}"
    url = server.client("sqs").create_queue(QueueName=name, Attributes=attributes)["QueueUrl"]
    return Queue(server=server, name=name, url=url)


def queue_with_dead_letters(server: EmulatorServer, *, receives: int = 1, **attributes: str) -> tuple[Queue, Queue]:
    """Create a queue that moves messages to its dead letters after so many receives, and the dead-letter queue."""
    dead_letters = queue(server)
    policy = json.dumps({"deadLetterTargetArn": dead_letters.arn, "maxReceiveCount": receives})
    return queue(server, RedrivePolicy=policy, **attributes), dead_letters


def topic(server: EmulatorServer) -> str:
    """Create a topic, and return its ARN."""
    arn: str = server.client("sns").create_topic(Name=f"topic-{uuid4().hex[:8]}")["TopicArn"]
    return arn


def dead_letter(source: Queue, body: str = "letter", **options: Any) -> str:
    """Send a message that becomes a dead letter at once, and return its id."""
    message_id = source.send(body, **options)
    source.receive(VisibilityTimeout=0)
    source.receive(VisibilityTimeout=0)
    return message_id
