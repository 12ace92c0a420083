"""Gathers a queue's messages into batches as large as, and for as long as, an event source mapping specifies.

Gap: MiniStack passes a function at most ten messages, only those available at once, whatever the mapping says.
AWS: with a MaximumBatchingWindowInSeconds, Lambda invokes the function when the window ends, counted from the first
message, when BatchSize messages (10,000 at most) are gathered, or when the event would exceed 6 MB.
https://docs.aws.amazon.com/lambda/latest/dg/invocation-eventsourcemapping.html#invocation-eventsourcemapping-batching
https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-scaling.html

What still differs from AWS: messages stay visible while they are gathered; on AWS their visibility timeout has begun.
A large queue is processed one batch at a time; on AWS several pollers each gather their own in parallel.
"""

import time
from collections.abc import Iterator, Sequence
from typing import Any

from local_aws.emulator import Emulator
from local_aws.ministack_internals import internals, replace
from local_aws.shims.queue_actions import queues_lock

_LARGEST_EVENT_BYTES = 6 * 1024 * 1024
# What a record contains besides the message's body and attributes: handle, ids, digests, times, ARNs and their names.
_RECORD_BYTES = 1000


def apply(emulator: Emulator) -> None:
    """For a mapping with a window, receive only when the batch is complete."""
    replace(internals("services.sqs"), "_receive_messages_for_esm", _gather)


def _gather(receive: Any) -> Any:
    def receive_batch(queue_url: str, batch_size: int) -> Any:
        sqs = internals("services.sqs")
        with queues_lock():
            queue = sqs._get_q(queue_url)
            window_seconds = _window_of(queue["attributes"]["QueueArn"])
            if not window_seconds:
                return receive(queue_url, batch_size)
            sqs._expire_retained(queue)
            sqs._dlq_sweep(queue)
            now = time.time()
            visible = [message for message in queue["messages"] if message["visible_at"] <= now]
            batch = list(_fitting(visible[:batch_size]))
            is_whole = len(batch) == batch_size or len(batch) < len(visible)
            if not visible or not (is_whole or now - min(_visible_since(visible)) >= window_seconds):
                return []
            return sqs._collect_msgs(queue, len(batch), int(queue["attributes"]["VisibilityTimeout"]))

    return receive_batch


def _window_of(queue_arn: str) -> int:
    mappings = internals("services.lambda_svc")._iter_all_esms()
    windows = [
        mapping.get("MaximumBatchingWindowInSeconds") or 0
        for _, _, mapping in mappings
        if mapping.get("EventSourceArn") == queue_arn and mapping.get("Enabled", True)
    ]
    return max(windows, default=0)


def _visible_since(messages: Sequence[Any]) -> Iterator[float]:
    return (message["visible_at"] for message in messages)


def _fitting(messages: Sequence[Any]) -> Iterator[Any]:
    size_bytes = 0
    for message in messages:
        size_bytes += len(message["body"].encode()) + len(str(message.get("message_attributes") or "")) + _RECORD_BYTES
        if size_bytes > _LARGEST_EVENT_BYTES:
            return
        yield message
