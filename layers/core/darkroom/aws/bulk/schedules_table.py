"""The schedules, each an item in the Batches table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from darkroom.aws.bulk.batches_table import DUE_SHARD, LISTED_INDEX
from darkroom.aws.kernel.errors import code_of, pages_of, retryable
from darkroom.aws.kernel.versioned_rows import Item, Rows, VersionedRows
from darkroom.domain.bulk.schedules import Schedule
from darkroom.ports.kernel import Fenced, UnreadableRow

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

SCHEDULES = Rows(Schedule, "schedule", "schedule_id")

_LIST_SHARD = "#schedules"
"""The partition that lists them all: no tenant's id has a `#`."""


class SchedulesTable:
    """Implements the `Schedules` port with the table of batches."""

    def __init__(self, client: DynamoDBClient, table_name: str) -> None:
        self._client = client
        self._table_name = table_name
        self._rows = VersionedRows(client, table_name, SCHEDULES)

    def get(self, schedule_id: str) -> Schedule | None:
        item = self._rows.get(_key(schedule_id))
        return None if item is None else SCHEDULES.row_of(item)

    def create(self, schedule: Schedule) -> Schedule:
        indexed = {"due_shard": {"S": DUE_SHARD}, "list_shard": {"S": _LIST_SHARD}}
        item = {**SCHEDULES.item_of(schedule), **indexed}
        return SCHEDULES.row_of(self._rows.put_if_absent(_key(schedule.schedule_id), item))

    def change(self, before: Schedule, after: Schedule) -> Schedule:
        return self._rows.change(_key(before.schedule_id), before, after)

    def remove(self, schedule: Schedule) -> None:
        try:
            with retryable("removing a schedule"):
                self._client.delete_item(
                    TableName=self._table_name,
                    Key=_key(schedule.schedule_id),
                    # guard: bulk-schedules-removed-as-read
                    ConditionExpression="version = :version",
                    ExpressionAttributeValues={":version": {"N": str(schedule.version)}},
                )
        except ClientError as error:
            if code_of(error) != "ConditionalCheckFailedException":
                raise
            current = self.get(schedule.schedule_id)
            if current is not None:  # it is gone after a retry whose first answer was lost, too
                raise Fenced(current) from error

    def all(self) -> Iterator[Schedule | UnreadableRow]:
        answers: Any = self._client.get_paginator("query").paginate(
            TableName=self._table_name,
            IndexName=LISTED_INDEX,
            KeyConditionExpression="list_shard = :shard",
            ExpressionAttributeValues={":shard": {"S": _LIST_SHARD}},
        )
        for answer in pages_of(answers, "reading the schedules"):
            yield from map(SCHEDULES.readable, answer["Items"])


def _key(schedule_id: str) -> Item:
    return {"place": {"S": schedule_id}, "part": {"S": "schedule"}}
