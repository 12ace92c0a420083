"""Keeps a queue's messages whole while several threads send, receive and delete.

Gap: MiniStack serves requests in one thread and polls for functions in another, and both rewrite a queue's list of
messages without a lock that they share: a message sent meanwhile is lost, and a deleted one is there again.
AWS: a message that SendMessage has answered for is stored redundantly, and kept until it is deleted or too old.
https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-basic-architecture.html

What still differs from AWS: a standard queue there may deliver a message twice, out of order or after its deletion.
Here it never does by itself, so a test that wants duplicates has to send them.
"""

import functools
import threading
from typing import Any

from embedded_aws.emulator import Emulator
from embedded_aws.ministack_internals import internals, replace
from embedded_aws.shims.queue_actions import replace_action

_ACTIONS = (
    "SendMessage",
    "DeleteMessage",
    "DeleteMessageBatch",
    "ChangeMessageVisibility",
    "ChangeMessageVisibilityBatch",
    "PurgeQueue",
    "GetQueueAttributes",
)
_STEPS_OF_RECEIVING = ("_expire_retained", "_dlq_sweep", "_collect_msgs")
_DELIVERIES = {
    "services.sns": "_deliver_to_sqs",
    "services.s3": "_deliver_event_to_sqs",
    "services.eventbridge": "_dispatch_to_sqs",
}


def apply(emulator: Emulator) -> None:
    """Let whatever changes a queue's messages hold one lock, which a thread may take again."""
    sqs = internals("services.sqs")
    lock = threading.RLock()
    replace(sqs, "_queues_lock", lambda _: lock)
    under_lock = functools.partial(_under, lock)
    for action in _ACTIONS:
        replace_action(action, under_lock)
    for step in _STEPS_OF_RECEIVING:
        replace(sqs, step, under_lock)
    for service, delivery in _DELIVERIES.items():
        replace(internals(service), delivery, under_lock)


def _under(lock: Any, original: Any) -> Any:
    @functools.wraps(original)
    def call(*arguments: Any, **options: Any) -> Any:
        with lock:
            return original(*arguments, **options)

    return call
