"""Passes the message groups of a batch that is published to a standard topic on to its queues.

Gap: MiniStack passes the MessageGroupId of Publish on, and drops the ones of PublishBatch.
AWS: a standard topic forwards it to its standard queues, which makes them fair queues.
https://docs.aws.amazon.com/sns/latest/api/API_PublishBatchRequestEntry.html
https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-fair-queues.html

What still differs from AWS: a FIFO topic's groups reach its standard queues too.
"""

from collections.abc import Sequence
from contextvars import ContextVar
from typing import Any

from local_aws.emulator import Emulator
from local_aws.ministack_internals import internals, replace

# The entries of the last batch that was published in this context.
_entries: ContextVar[Sequence[Any]] = ContextVar("entries_of_batch", default=())


def apply(emulator: Emulator) -> None:
    """Remember the entries of a batch, and add the group of each where its message is distributed."""
    sns = internals("services.sns")
    replace(sns, "_parse_batch_entries", _remember)
    replace(sns, "_fanout", _with_group)


def _remember(parse: Any) -> Any:
    def parse_entries(request: Any) -> Any:
        entries = parse(request)
        _entries.set(entries)
        return entries

    return parse_entries


def _with_group(distribute: Any) -> Any:
    def distribute_message(*arguments: Any, **options: Any) -> None:
        # An entry is known by its attributes' identity: two may be equal, and a later message is not of the batch.
        for entry in _entries.get():
            if entry["message_group_id"] and any(argument is entry["message_attributes"] for argument in arguments):
                options.setdefault("message_group_id", entry["message_group_id"])
        distribute(*arguments, **options)

    return distribute_message
