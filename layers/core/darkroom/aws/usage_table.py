"""The Usage table, one item per tenant and day, and the table of the events that were counted in it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from darkroom.aws.errors import code_of, is_passing_code, pages_of, retryable
from darkroom.domain.errors import Retryable
from darkroom.domain.usage import Count, Usage
from darkroom.ports import DayOfUsage, UnreadableRow

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

_FIGURES = tuple(Usage.__dataclass_fields__)

MOST_AT_ONCE = 50
"""How many counts one transaction holds: with as many days at most, they are the 100 items that it may have
(https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TransactWriteItems.html)."""


class UsageTable:
    """Implements the `UsageCounts` port with two DynamoDB tables: the days, and the events counted in them."""

    def __init__(self, client: DynamoDBClient, table_name: str, counted_table_name: str) -> None:
        self._client = client
        self._table_name = table_name
        self._counted_table_name = counted_table_name

    def add(self, counts: Sequence[Count]) -> int:
        left = {count.event_id: count for count in counts}  # an event may come twice in one batch
        added = 0
        while left:
            batch = list(left.values())[:MOST_AT_ONCE]
            counted = self._write(batch)
            if not counted:
                added += len(batch)
            for count in batch:
                # If some were counted before, nothing was written: the others are tried again without them.
                if not counted or count.event_id in counted:
                    del left[count.event_id]
        return added

    def _write(self, batch: Sequence[Count]) -> frozenset[str]:
        """Counts all of them in one transaction, or none: then it returns those that were counted before."""
        days: dict[tuple[str, str], Usage] = {}
        for count in batch:
            place = (count.tenant_id, count.day)
            days[place] = days.get(place, Usage()) + count.usage
        marks: list[Any] = [{"Put": self._mark(count)} for count in batch]
        sums: list[Any] = [{"Update": self._sum(*place, usage)} for place, usage in days.items()]
        try:
            # The SDK gives each call a token of its own, by which DynamoDB knows a retry whose answer was lost.
            with retryable("counting usage"):
                self._client.transact_write_items(TransactItems=[*marks, *sums])
        except ClientError as error:
            if code_of(error) != "TransactionCanceledException":
                raise
            reasons: Any = error.response.get("CancellationReasons", [])
            codes = [reason.get("Code", "None") for reason in reasons]
            if others := [code for code in codes if code not in ("None", "ConditionalCheckFailed")]:
                if not all(map(_passes, others)):
                    raise
                raise Retryable(f"counting usage: {others[0]}") from error
            refused = zip(batch, codes, strict=False)  # the sums, which follow, have no condition
            counted = frozenset(count.event_id for count, code in refused if code == "ConditionalCheckFailed")
            if not counted:
                raise
            return counted
        return frozenset()

    def _mark(self, count: Count) -> dict[str, Any]:
        return {
            "TableName": self._counted_table_name,
            "Item": {"event_id": {"S": count.event_id}, "forget_at": {"N": str(count.forget_at // 1000)}},
            "ConditionExpression": "attribute_not_exists(event_id)",
        }

    def _sum(self, tenant_id: str, day: str, usage: Usage) -> dict[str, Any]:
        return {
            "TableName": self._table_name,
            "Key": {"tenant_id": {"S": tenant_id}, "day": {"S": day}},
            "UpdateExpression": "ADD " + ", ".join(f"{name} :{name}" for name in _FIGURES),
            "ExpressionAttributeValues": {f":{name}": {"N": str(getattr(usage, name))} for name in _FIGURES},
        }

    def days(self, *, since: str, until: str, tenant_id: str | None = None) -> Iterator[DayOfUsage | UnreadableRow]:
        wanted = {":since": {"S": since}, ":until": {"S": until}}
        names = {"#day": "day"}
        between = "#day BETWEEN :since AND :until"
        if tenant_id is None:
            pages: Any = self._client.get_paginator("scan").paginate(
                TableName=self._table_name,
                FilterExpression=between,
                ExpressionAttributeNames=names,
                ExpressionAttributeValues=wanted,
            )
        else:
            pages = self._client.get_paginator("query").paginate(
                TableName=self._table_name,
                KeyConditionExpression=f"tenant_id = :tenant AND {between}",
                ExpressionAttributeNames=names,
                ExpressionAttributeValues={**wanted, ":tenant": {"S": tenant_id}},
            )
        for page in pages_of(pages, "reading the usage"):
            yield from map(_day_of, page["Items"])

    def forget(self, tenant_id: str) -> int:
        removed = 0
        pages: Any = self._client.get_paginator("query").paginate(
            TableName=self._table_name,
            KeyConditionExpression="tenant_id = :tenant",
            ExpressionAttributeValues={":tenant": {"S": tenant_id}},
            ProjectionExpression="tenant_id, #day",
            ExpressionAttributeNames={"#day": "day"},
            ConsistentRead=True,
        )
        for page in pages_of(pages, "reading the usage"):
            for item in page["Items"]:
                with retryable("removing usage"):
                    self._client.delete_item(TableName=self._table_name, Key=item)
                removed += 1
        return removed


def _day_of(item: dict[str, Any]) -> DayOfUsage | UnreadableRow:
    tenant_id, day = item["tenant_id"]["S"], item["day"]["S"]
    try:
        figures = {name: int(item[name]["N"]) for name in _FIGURES if name in item}
    except (LookupError, ValueError) as error:
        return UnreadableRow(f"{tenant_id}/{day}", f"{type(error).__name__}: {error}", tenant_id=tenant_id)
    return DayOfUsage(tenant_id=tenant_id, day=day, usage=Usage(**figures))


def _passes(code: str) -> bool:
    # The reasons of a cancelled transaction have names of their own
    # (https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TransactWriteItems.html#API_TransactWriteItems_Errors).
    return code in ("TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded") or is_passing_code(code)
