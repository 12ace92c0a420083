"""What optional parts keep while they are not deployed, and how that is emptied.

Tables, queues and secrets belong to the stack and stay; what goes is rows and messages.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import batched
from typing import Any

from botocore.exceptions import ClientError

from darkroom.aws.kernel.errors import code_of
from darkroom.parts import Part
from darkroom_cli.stack.operators import Stack

KEPT: Mapping[Part, tuple[str, ...]] = {
    "webhooks": (
        *("WebhooksQueue", "WebhooksDeadLetters", "DeliveryQueue", "DeliveryDeadLetters", "UnpublishedEvents"),
        *("DeliveriesTable", "EndpointsTable"),
    ),
    "usage": ("UsageQueue", "UsageDeadLetters", "UsageTable", "CountedEventsTable"),
    "imports": ("FetchQueue", "FetchDeadLetters"),
    "page": (),
    "bulk": ("BatchesTable", "PausesTable"),
}
"""What each part alone writes to, in the order in which it is emptied. Nothing of the core is named here."""

SECRETS: Mapping[Part, str] = {"webhooks": "WebhooksSecret"}
"""What stays whatever is emptied: a stack that gets the part back needs it."""

_ROWS_AT_ONCE = 25
"""As many as BatchWriteItem takes."""

_COUNTS = (
    "ApproximateNumberOfMessages",
    "ApproximateNumberOfMessagesNotVisible",
    "ApproximateNumberOfMessagesDelayed",
)

type OnRemoved = Callable[[int], None]


@dataclass(frozen=True, kw_only=True)
class Remains:
    """The rows and messages of a stack's optional parts, by the logical ids of their tables and queues."""

    stack: Stack
    pause: Callable[[float], None] = time.sleep

    def count(self, logical_id: str) -> int:
        """How many rows that table has, all of which are read, or about how many messages that queue has."""
        name = self.stack.physical_id(logical_id)
        if not _is_table(logical_id):
            asked = self.stack.client("sqs").get_queue_attributes(QueueUrl=name, AttributeNames=list(_COUNTS))
            return sum(int(number) for number in asked["Attributes"].values())
        pages = self.stack.client("dynamodb").get_paginator("scan").paginate(TableName=name, Select="COUNT")
        return sum(page["Count"] for page in pages)

    def empty(self, logical_id: str, on_removed: OnRemoved) -> None:
        """Removes every row of that table, telling of each that went, or all messages of that queue, which takes SQS a
        minute. A repetition removes what is left."""
        name = self.stack.physical_id(logical_id)
        if _is_table(logical_id):
            self._empty_table(name, on_removed)
            return
        try:
            self.stack.client("sqs").purge_queue(QueueUrl=name)
        except ClientError as error:
            # SQS empties a queue once a minute; a run that was interrupted has just asked for it.
            if not code_of(error).endswith("PurgeQueueInProgress"):  # guard: parts-purge-queue-repeated
                raise

    def _empty_table(self, name: str, on_removed: OnRemoved) -> None:
        dynamodb = self.stack.client("dynamodb")
        keys = [key["AttributeName"] for key in dynamodb.describe_table(TableName=name)["Table"]["KeySchema"]]
        names = {f"#{number}": key for number, key in enumerate(keys)}
        pages = dynamodb.get_paginator("scan").paginate(
            TableName=name, ConsistentRead=True, ProjectionExpression=", ".join(names), ExpressionAttributeNames=names
        )
        for page in pages:
            for rows in batched(page["Items"], _ROWS_AT_ONCE, strict=False):
                self._remove(dynamodb, name, [{"DeleteRequest": {"Key": row}} for row in rows])
                on_removed(len(rows))

    def _remove(self, dynamodb: Any, name: str, requests: Sequence[Mapping[str, Any]]) -> None:
        while True:
            answer = dynamodb.batch_write_item(RequestItems={name: requests})
            requests = answer.get("UnprocessedItems", {}).get(name, [])
            if not requests:  # guard: parts-purge-unprocessed-again
                return
            self.pause(1)


def _is_table(logical_id: str) -> bool:
    return logical_id.endswith("Table")
