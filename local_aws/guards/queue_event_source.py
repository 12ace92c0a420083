"""Refuses an event source mapping whose queue or batch cannot work.

Gap: MiniStack accepts a queue whose messages become visible again while the function still runs, and batches of any
size.
AWS: answers InvalidParameterValueException if the queue's visibility timeout is below the function's timeout, if a
batch of more than 10 has no batching window, or if a FIFO queue has a batch of more than 10 or a window.
https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html
https://docs.aws.amazon.com/lambda/latest/api/API_CreateEventSourceMapping.html (BatchSize)
"""

from collections.abc import Mapping
from typing import Any

from local_aws.emulator import Emulator
from local_aws.mapping_refusals import function_of, refuse_mappings
from local_aws.ministack_internals import internals

_BATCH_WITHOUT_WINDOW = 10


def apply(emulator: Emulator) -> None:
    """Check each mapping that a request or a stack creates or updates."""
    refuse_mappings(_reason_to_refuse, prefix_in_stacks="Invalid request provided: ")


def _reason_to_refuse(mapping: Mapping[str, Any]) -> str | None:
    queue = internals("services.sqs")._queue_by_arn(mapping.get("EventSourceArn", ""))
    if queue is None:
        return None  # Another kind of source, or a missing one, which MiniStack itself reports.
    batch_size = int(mapping.get("BatchSize") or _BATCH_WITHOUT_WINDOW)
    window_seconds = int(mapping.get("MaximumBatchingWindowInSeconds") or 0)
    if queue["is_fifo"] and window_seconds:
        return "Batching window is not supported for FIFO queues"
    if queue["is_fifo"] and batch_size > _BATCH_WITHOUT_WINDOW:
        # AWS documents the limit, but not the wording.
        return f"Batch size must be between 1 and {_BATCH_WITHOUT_WINDOW} for FIFO queues"
    if batch_size > _BATCH_WITHOUT_WINDOW and not window_seconds:
        return (
            "Maximum batch window in seconds must be greater than 0 "
            f"if maximum batch size is greater than {_BATCH_WITHOUT_WINDOW}"
        )
    visibility_seconds = int(queue["attributes"]["VisibilityTimeout"])
    timeout_seconds = int(function_of(mapping).get("Timeout", 0))
    if visibility_seconds < timeout_seconds:
        return (
            f"Queue visibility timeout: {visibility_seconds} seconds is less than "
            f"Function timeout: {timeout_seconds} seconds"
        )
    return None
