"""The Usage table, one item per tenant and day and one for what the tenant stores, and the table of the events that
were counted in it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from darkroom.aws.errors import code_of, is_passing_code, pages_of, retryable
from darkroom.aws.removal import remove_partition
from darkroom.domain.errors import Retryable
from darkroom.domain.stored import NOTHING, Stored
from darkroom.domain.usage import Count, Usage
from darkroom.ports import DayOfUsage, UnreadableRow

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

_FIGURES = tuple(Usage.__dataclass_fields__)

_STORED = "stored"
"""The item of what a tenant stores, in the place of a day. It sorts after every day."""

MOST_AT_ONCE = 33
"""How many counts one transaction holds: with as many days and sums at most, they are the 100 items that it may have
(https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TransactWriteItems.html)."""


class UsageTable:
    """Implements the `UsageCounts` port with two DynamoDB tables: the days, and the events counted in them. Only `add`
    needs the second."""

    def __init__(self, client: DynamoDBClient, table_name: str, counted_table_name: str = "") -> None:
        self._client = client
        self._table_name = table_name
        self._counted_table_name = counted_table_name

    def add(self, counts: Sequence[Count]) -> Sequence[Count]:
        left = {count.event_id: count for count in counts}  # an event may come twice in one batch
        added: list[Count] = []
        while left:
            batch = list(left.values())[:MOST_AT_ONCE]
            counted = self._write(batch)
            if not counted:
                added += batch
            for count in batch:
                # If some were counted before, nothing was written: the others are tried again without them.
                if not counted or count.event_id in counted:
                    del left[count.event_id]
        return added

    def _write(self, batch: Sequence[Count]) -> frozenset[str]:
        """Counts all of them in one transaction, or none: then it returns those that were counted before."""
        days: dict[tuple[str, str], Usage] = {}
        stored: dict[str, Stored] = {}
        for count in batch:
            place = (count.tenant_id, count.day)
            days[place] = days.get(place, Usage()) + count.usage
            stored[count.tenant_id] = stored.get(count.tenant_id, NOTHING) + count.stored
        marks: list[Any] = [{"Put": self._mark(count)} for count in batch]
        figures = [(place, asdict(usage)) for place, usage in days.items() if usage != Usage()]
        figures += [((tenant_id, _STORED), _figures_of(one)) for tenant_id, one in stored.items() if one != NOTHING]
        sums: list[Any] = [{"Update": self._sum(*place, added)} for place, added in figures]
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

    def _sum(self, tenant_id: str, day: str, figures: Mapping[str, int]) -> dict[str, Any]:
        return {
            "TableName": self._table_name,
            "Key": {"tenant_id": {"S": tenant_id}, "day": {"S": day}},
            "UpdateExpression": "ADD " + ", ".join(f"{name} :{name}" for name in figures),
            "ExpressionAttributeValues": {f":{name}": {"N": str(figure)} for name, figure in figures.items()},
        }

    def stored(self, tenant_id: str) -> Stored:
        with retryable("reading what is stored"):
            answer = self._client.get_item(
                TableName=self._table_name, Key={"tenant_id": {"S": tenant_id}, "day": {"S": _STORED}}
            )
        return _stored_of(answer.get("Item", {}))

    def all_stored(self) -> Mapping[str, Stored]:
        pages: Any = self._client.get_paginator("scan").paginate(
            TableName=self._table_name,
            FilterExpression="#day = :stored",
            ExpressionAttributeNames={"#day": "day"},
            ExpressionAttributeValues={":stored": {"S": _STORED}},
        )
        items = [item for page in pages_of(pages, "reading what is stored") for item in page["Items"]]
        return {item["tenant_id"]["S"]: _stored_of(item) for item in items}

    def correct(self, tenant_id: str, before: Stored, after: Stored) -> bool:
        # As a difference, and not if the sum has changed: what was counted meanwhile stays counted, and a repetition
        # after a lost answer changes nothing.
        request = self._sum(tenant_id, _STORED, _figures_of(after - before))
        is_before = "stored_bytes = :bytes AND stored_images = :images"
        if before == NOTHING:
            is_before = f"attribute_not_exists(stored_bytes) OR ({is_before})"
        before_it = {":bytes": {"N": str(before.size_bytes)}, ":images": {"N": str(before.images)}}
        request["ExpressionAttributeValues"] |= before_it
        try:
            with retryable("correcting what is stored"):
                self._client.update_item(**request, ConditionExpression=is_before)
        except ClientError as error:
            if code_of(error) != "ConditionalCheckFailedException":
                raise
            return False
        return True

    def days(self, *, since: str, until: str) -> Iterator[DayOfUsage | UnreadableRow]:
        yield from _days_in(
            self._client.get_paginator("scan").paginate(
                TableName=self._table_name,
                FilterExpression=_BETWEEN,
                ExpressionAttributeNames={"#day": "day"},
                ExpressionAttributeValues={":since": {"S": since}, ":until": {"S": until}},
            )
        )

    def days_of(self, tenant_id: str, *, since: str, until: str) -> Iterator[DayOfUsage | UnreadableRow]:
        yield from _days_in(
            self._client.get_paginator("query").paginate(
                TableName=self._table_name,
                KeyConditionExpression=f"tenant_id = :tenant AND {_BETWEEN}",
                ExpressionAttributeNames={"#day": "day"},
                ExpressionAttributeValues={":tenant": {"S": tenant_id}, ":since": {"S": since}, ":until": {"S": until}},
            )
        )

    def forget(self, tenant_id: str) -> int:
        return remove_partition(self._client, self._table_name, ("tenant_id", tenant_id), "day", "removing usage")


_BETWEEN = "#day BETWEEN :since AND :until"


def _days_in(pages: Any) -> Iterator[DayOfUsage | UnreadableRow]:
    for page in pages_of(pages, "reading the usage"):
        yield from map(_day_of, page["Items"])


def _day_of(item: dict[str, Any]) -> DayOfUsage | UnreadableRow:
    tenant_id, day = item["tenant_id"]["S"], item["day"]["S"]
    try:
        figures = {name: int(item[name]["N"]) for name in _FIGURES if name in item}
    except (LookupError, ValueError) as error:
        return UnreadableRow(f"{tenant_id}/{day}", f"{type(error).__name__}: {error}", tenant_id=tenant_id)
    return DayOfUsage(tenant_id=tenant_id, day=day, usage=Usage(**figures))


def _figures_of(stored: Stored) -> dict[str, int]:
    return {"stored_bytes": stored.size_bytes, "stored_images": stored.images}


def _stored_of(item: Mapping[str, Any]) -> Stored:
    size_bytes, images = (int(item.get(name, {}).get("N", "0")) for name in ("stored_bytes", "stored_images"))
    return Stored(size_bytes=size_bytes, images=images)


def _passes(code: str) -> bool:
    # The reasons of a cancelled transaction have names of their own
    # (https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TransactWriteItems.html#API_TransactWriteItems_Errors).
    return code in ("TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded") or is_passing_code(code)
