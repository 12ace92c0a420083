"""What every message of our own carries: its group, and a signature by which its receiver knows that we sent it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from darkroom.domain.kernel.signature import SIGNATURE, may_sign, sign
from darkroom.ports.kernel import Clock, Secret


class MessageSigner:
    """Signs messages with the current one of `keys`, or for a new key's first minute with the one before."""

    def __init__(self, keys: Secret, clock: Clock) -> None:
        self._keys = keys
        self._clock = clock

    def signature(self, queue: str, *, group: str, body: str) -> str:
        """The signature of a message to the queue of that lane or purpose. Raises Retryable if no key can be read."""
        key = self._keys.current()
        if not may_sign(key.created_at, self._clock()):
            key = self._keys.previous() or key
        return str(sign(key_id=key.version_id, secret=key.text, queue=queue, group=group, body=body))

    def signed(self, queue: str, *, group: str, body: str) -> Mapping[str, Any]:
        """The message with its signature, as SQS's API takes it. Raises Retryable if no key can be read."""
        signature = self.signature(queue, group=group, body=body)
        return {
            "MessageBody": body,
            # On a standard queue the group id makes the queue fair between groups; it does not order anything
            # (https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-fair-queues.html).
            "MessageGroupId": group,  # guard: queues-tenant-message-group
            "MessageAttributes": {SIGNATURE: {"DataType": "String", "StringValue": signature}},
        }
