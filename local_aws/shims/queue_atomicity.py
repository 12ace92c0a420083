"""Keeps a queue's messages consistent while several threads send, receive and delete.

Gap: MiniStack serves requests in one thread and polls for functions in another, and both rewrite a queue's list of
messages without a shared lock: a message sent meanwhile is lost, and a deleted one reappears.
AWS: once SendMessage has answered, a message is stored redundantly and kept until it is deleted or too old.
https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-basic-architecture.html

What still differs from AWS: there a standard queue may deliver a message twice, out of order or after its deletion.
Here it never does so itself, so a test that wants duplicates has to send them.
"""

import functools
import threading
from typing import Any

from local_aws.emulator import Emulator
from local_aws.ministack_internals import internals, replace
from local_aws.shims.queue_actions import replace_action

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
    """Hold one reentrant lock in everything that changes a queue's messages."""
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
