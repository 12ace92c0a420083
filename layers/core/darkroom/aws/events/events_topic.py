"""The topic from which every consumer gets its events, and the queue of those that could not be published."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from darkroom.aws.kernel.errors import is_passing_code, retryable
from darkroom.aws.kernel.signing import MessageSigner
from darkroom.domain.events.event import PublishedEvent, body_of
from darkroom.domain.kernel.errors import Retryable
from darkroom.domain.kernel.lanes import EVENTS
from darkroom.domain.kernel.signature import SIGNATURE
from darkroom.ports.events import Unpublishable

if TYPE_CHECKING:
    from mypy_boto3_sns import SNSClient
    from mypy_boto3_sqs import SQSClient

_BATCH = 10
_BATCH_BYTES = 240_000
"""The most messages that one call publishes, and the most bytes of their bodies: with their attributes they stay below
the 262,144 that it may carry (https://docs.aws.amazon.com/sns/latest/api/API_PublishBatch.html)."""


class SnsTopic:
    """Implements the `Topic` port with a standard topic; `source` is the events' `source`.

    Their signatures travel with them into the consumers' queues, which get messages as they are (`RawMessageDelivery`).
    """

    def __init__(self, client: SNSClient, topic_arn: str, signer: MessageSigner, *, source: str) -> None:
        self._client = client
        self._topic_arn = topic_arn
        self._signer = signer
        self._source = source

    def publish_all(self, events: Sequence[PublishedEvent]) -> Mapping[int, Exception]:
        unpublished: dict[int, Exception] = {}
        bodies = [body_of(event, source=self._source) for event in events]
        for batch in _batches(bodies):
            unavailable = next((error for error in unpublished.values() if isinstance(error, Retryable)), None)
            if unavailable is not None:  # each further call would wait for seconds
                unpublished |= dict.fromkeys(batch, unavailable)
            else:
                unpublished |= self._publish({place: (events[place], bodies[place]) for place in batch})
        return unpublished

    def _publish(self, events: Mapping[int, tuple[PublishedEvent, str]]) -> Mapping[int, Exception]:
        try:  # guard: signatures-no-key-events
            entries: list[Any] = [self._entry(place, *event) for place, event in events.items()]
            with retryable("publishing events"):
                answer = self._client.publish_batch(TopicArn=self._topic_arn, PublishBatchRequestEntries=entries)
        except Retryable as error:
            return dict.fromkeys(events, error)
        # A batch may fail in part, with a 200.
        # guard: events-topic-partial-failure
        return {int(entry["Id"]): _problem(entry) for entry in answer.get("Failed", [])}

    def _entry(self, place: int, event: PublishedEvent, body: str) -> dict[str, Any]:
        attributes = {
            "type": event.type.value,
            "tenant_id": event.tenant_id,
            "lane": event.lane,
            "preset": event.preset,
            SIGNATURE: self._signer.signature(EVENTS, group=event.tenant_id, body=body),
        }
        return {
            "Id": str(place),
            "Message": body,
            # On a standard topic it orders nothing: it makes the consumers' queues fair between tenants
            # (https://docs.aws.amazon.com/sns/latest/api/API_PublishBatchRequestEntry.html).
            "MessageGroupId": event.tenant_id,
            "MessageAttributes": {
                name: {"DataType": "String", "StringValue": value}
                for name, value in attributes.items()
                if value is not None
            },
        }


def _batches(bodies: Sequence[str]) -> Iterator[range]:
    """The places of the messages that one call publishes."""
    first = size = 0
    for place, body in enumerate(bodies):
        if place - first == _BATCH or size + len(body) > _BATCH_BYTES:  # guard: events-topic-batch-bytes
            yield range(first, place)
            first = place
            size = 0
        size += len(body)
    if bodies:
        yield range(first, len(bodies))


def _problem(entry: Mapping[str, Any]) -> Exception:
    code = entry.get("Code", "")
    if entry.get("SenderFault") and not is_passing_code(code):
        return Unpublishable(f"SNS refuses it: {code}")
    return Retryable(f"publishing events: SNS reports {code}")


class SqsUnpublished:
    """Implements the `Unpublished` port with a queue that only people read."""

    def __init__(self, client: SQSClient, queue_url: str) -> None:
        self._client = client
        self._queue_url = queue_url

    def put(self, subject: str, version: int | None, reason: str) -> None:
        note = {"v": 1, "subject": subject, "version": version, "reason": reason}
        with retryable("noting an event that cannot be published"):
            self._client.send_message(QueueUrl=self._queue_url, MessageBody=json.dumps(note))
