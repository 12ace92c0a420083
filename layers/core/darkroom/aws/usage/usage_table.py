"""The Usage table, some items per tenant and day and some for what the tenant stores, and the table of the events that
were counted in it.

A tenant's day is usually one item. Two transactions that change it at once conflict, and DynamoDB cancels one. The
process whose transaction was cancelled goes on with the tenant's next item (`2026-11-21#1`): each has a part of the
sum, so that a busy tenant's consumers soon meet no more.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import groupby
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from darkroom.aws.kernel.errors import code_of, pages_of, retryable
from darkroom.aws.kernel.removal import remove_partition
from darkroom.aws.kernel.transactions import MET, REFUSED, reasons_of
from darkroom.domain.kernel.errors import Retryable
from darkroom.domain.kernel.stored import NOTHING, Stored
from darkroom.domain.usage.usage import Count, Usage
from darkroom.ports.kernel import UnreadableRow
from darkroom.ports.usage import DayOfUsage

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

_FIGURES = tuple(Usage.__dataclass_fields__)

_STORED = "stored"
"""The items of what a tenant stores, in the place of a day. They sort after every day."""

PARTS = 4
"""How many items a tenant's day and its sum have at most: as many as consumers at a time. Each may cost a reader of the
days as much as one day did before."""

_WRITES = 6
"""Of so many transactions in a row one meets no other: each consumer soon has a part of its own."""

_REMEMBERED_TENANTS = 10_000


class UsageTable:
    """Implements the `UsageCounts` port with two DynamoDB tables: the days, and the events counted in them. Only `add`
    needs the second."""

    def __init__(self, client: DynamoDBClient, table_name: str, counted_table_name: str = "") -> None:
        self._client = client
        self._table_name = table_name
        self._counted_table_name = counted_table_name
        self._parts: dict[str, int] = {}

    def add(self, counts: Sequence[Count]) -> Sequence[Count]:
        left = {count.event_id: count for count in counts}  # an event may come twice in one batch
        conflicts = 0
        while left and conflicts < _WRITES:
            batch = list(left.values())
            counted, has_met = self._write(batch)
            if not counted and not has_met:
                return batch
            conflicts += has_met
            # Nothing was written: the others are tried again without those that were counted before.
            for event_id in counted:
                del left[event_id]
        if left:
            raise Retryable("counting usage: TransactionConflict")
        return []

    def _write(self, batch: Sequence[Count]) -> tuple[frozenset[str], bool]:
        """Counts all of them in one transaction, or none: then it returns those that were counted before, and whether
        another transaction was in the way."""
        days: dict[tuple[str, str], Usage] = {}
        stored: dict[str, Stored] = {}
        for count in batch:
            place = (count.tenant_id, count.day)
            days[place] = days.get(place, Usage()) + count.usage
            stored[count.tenant_id] = stored.get(count.tenant_id, NOTHING) + count.stored
        marks: list[Any] = [{"Put": self._mark(count)} for count in batch]
        # guard: quotas-no-day-for-deletion
        figures = [(place, asdict(usage)) for place, usage in days.items() if usage != Usage()]
        figures += [
            ((tenant_id, _STORED), _figures_of(change)) for tenant_id, change in stored.items() if change != NOTHING
        ]
        # guard: quotas-stored-counted-once
        sums: list[Any] = [{"Update": self._sum(*place, added)} for place, added in figures]
        try:
            # The SDK gives each call a token of its own, by which DynamoDB knows a retry whose answer was lost.
            with retryable("counting usage"):
                self._client.transact_write_items(TransactItems=[*marks, *sums])
        except ClientError as error:
            codes = reasons_of(error, "counting usage")
            refused = zip(batch, codes, strict=False)  # the sums, which follow, have no condition
            counted = frozenset(count.event_id for count, code in refused if code == REFUSED)
            if not counted and MET not in codes:  # guard: usage-other-cancellation-raised
                raise
            # On an event's mark two transactions meet that have the same event.
            met = zip(figures, codes[len(marks) :], strict=False)
            self._go_on({tenant_id for ((tenant_id, _), _), code in met if code == MET})
            return counted, MET in codes  # guard: usage-conflict-not-written
        return frozenset(), False

    def _go_on(self, tenant_ids: Iterable[str]) -> None:
        """Has the next transactions change the next part of these tenants' sums."""
        if len(self._parts) >= _REMEMBERED_TENANTS:
            self._parts.clear()
        for tenant_id in tenant_ids:
            self._parts[tenant_id] = (self._parts.get(tenant_id, 0) + 1) % PARTS  # guard: usage-conflict-next-part

    def _mark(self, count: Count) -> dict[str, Any]:
        return {
            "TableName": self._counted_table_name,
            "Item": {"event_id": {"S": count.event_id}, "forget_at": {"N": str(count.forget_at // 1000)}},
            "ConditionExpression": "attribute_not_exists(event_id)",  # guard: usage-event-counted-once
        }

    def _sum(self, tenant_id: str, day: str, figures: Mapping[str, int]) -> dict[str, Any]:
        return {
            "TableName": self._table_name,
            "Key": {"tenant_id": {"S": tenant_id}, "day": {"S": _place(day, self._parts.get(tenant_id, 0))}},
            "UpdateExpression": "ADD " + ", ".join(f"{name} :{name}" for name in figures),
            "ExpressionAttributeValues": {f":{name}": {"N": str(figure)} for name, figure in figures.items()},
        }

    def stored(self, tenant_id: str) -> Stored:
        return sum(self._stored_parts(tenant_id).values(), NOTHING)

    def _stored_parts(self, tenant_id: str, *, is_consistent: bool = False) -> Mapping[str, Stored]:
        with retryable("reading what is stored"):
            answer = self._client.query(
                TableName=self._table_name,
                KeyConditionExpression="tenant_id = :tenant AND begins_with(#day, :stored)",
                ExpressionAttributeNames={"#day": "day"},
                ExpressionAttributeValues={":tenant": {"S": tenant_id}, ":stored": {"S": _STORED}},
                ConsistentRead=is_consistent,
            )
        return {item["day"]["S"]: _stored_of(item) for item in answer["Items"]}

    def all_stored(self) -> Mapping[str, Stored]:
        pages: Any = self._client.get_paginator("scan").paginate(
            TableName=self._table_name,
            FilterExpression="begins_with(#day, :stored)",
            ExpressionAttributeNames={"#day": "day"},
            ExpressionAttributeValues={":stored": {"S": _STORED}},
        )
        sums: dict[str, Stored] = {}
        for page in pages_of(pages, "reading what is stored"):
            for item in page["Items"]:
                tenant_id = item["tenant_id"]["S"]
                sums[tenant_id] = sums.get(tenant_id, NOTHING) + _stored_of(item)
        return sums

    def correct(self, tenant_id: str, before: Stored, after: Stored) -> bool:
        parts = self._stored_parts(tenant_id, is_consistent=True)
        if sum(parts.values(), NOTHING) != before:
            return False
        # As a difference, and not if any part has changed: what was counted meanwhile stays counted, and a repetition
        # after a lost answer changes nothing.
        first, *others = [self._unchanged(tenant_id, _place(_STORED, part), parts) for part in range(PARTS)]
        difference = {f":added_{name}": {"N": str(figure)} for name, figure in _figures_of(after - before).items()}
        update = {
            **first,
            "UpdateExpression": "ADD " + ", ".join(f"{name} :added_{name}" for name in _figures_of(NOTHING)),
            "ExpressionAttributeValues": first.get("ExpressionAttributeValues", {}) | difference,
        }
        request: Any = [{"Update": update}, *({"ConditionCheck": condition} for condition in others)]
        try:
            with retryable("correcting what is stored"):
                self._client.transact_write_items(TransactItems=request)
        except ClientError as error:
            reasons: Any = error.response.get("CancellationReasons", [])
            codes = {reason.get("Code", "None") for reason in reasons} - {"None"}
            if code_of(error) != "TransactionCanceledException" or not codes <= {REFUSED, MET}:
                raise
            return False
        return True

    def _unchanged(self, tenant_id: str, place: str, parts: Mapping[str, Stored]) -> dict[str, Any]:
        """The condition that this part of what the tenant stores is as it was read."""
        target = {"TableName": self._table_name, "Key": {"tenant_id": {"S": tenant_id}, "day": {"S": place}}}
        if place not in parts:
            return {**target, "ConditionExpression": "attribute_not_exists(stored_bytes)"}  # guard: quotas-no-new-part
        return {
            **target,
            # guard: quotas-unchanged-sum-only
            "ConditionExpression": "stored_bytes = :bytes AND stored_images = :images",
            "ExpressionAttributeValues": {
                ":bytes": {"N": str(parts[place].size_bytes)},
                ":images": {"N": str(parts[place].images)},
            },
        }

    def days(self, *, since: str, until: str) -> Iterator[DayOfUsage | UnreadableRow]:
        yield from _days_in(
            self._client.get_paginator("scan").paginate(
                TableName=self._table_name,
                FilterExpression=_BETWEEN,
                ExpressionAttributeNames={"#day": "day"},
                ExpressionAttributeValues={":since": {"S": since}, ":until": {"S": until + _LAST_PART}},
            )
        )

    def days_of(self, tenant_id: str, *, since: str, until: str) -> Iterator[DayOfUsage | UnreadableRow]:
        yield from _days_in(
            self._client.get_paginator("query").paginate(
                TableName=self._table_name,
                KeyConditionExpression=f"tenant_id = :tenant AND {_BETWEEN}",
                ExpressionAttributeNames={"#day": "day"},
                ExpressionAttributeValues={
                    ":tenant": {"S": tenant_id},
                    ":since": {"S": since},
                    ":until": {"S": until + _LAST_PART},
                },
            )
        )

    def forget(self, tenant_id: str) -> int:
        return remove_partition(self._client, self._table_name, ("tenant_id", tenant_id), "day", "removing usage")


_BETWEEN = "#day BETWEEN :since AND :until"

# guard: usage-last-day-all-parts
_LAST_PART = "#~"


def _place(day: str, part: int) -> str:
    """The sort key of a part; the first is what earlier versions wrote, and the only one of most days."""
    return f"{day}#{part}" if part else day


def _days_in(pages: Any) -> Iterator[DayOfUsage | UnreadableRow]:
    """The days, each with the sum of its parts, which are beside one another."""
    items = (item for page in pages_of(pages, "reading the usage") for item in page["Items"])
    for _, parts in groupby(items, key=lambda item: (item["tenant_id"]["S"], item["day"]["S"].partition("#")[0])):
        total: DayOfUsage | None = None
        for day in map(_day_of, parts):
            if isinstance(day, UnreadableRow):
                yield day
            else:
                total = day if total is None else day._replace(usage=total.usage + day.usage)
        if total is not None:
            yield total


def _day_of(item: dict[str, Any]) -> DayOfUsage | UnreadableRow:
    tenant_id, day = item["tenant_id"]["S"], item["day"]["S"]
    try:
        figures = {name: int(item[name]["N"]) for name in _FIGURES if name in item}
    except (LookupError, ValueError) as error:  # guard: isolated-usage-day
        return UnreadableRow(f"{tenant_id}/{day}", f"{type(error).__name__}: {error}", tenant_id=tenant_id)
    return DayOfUsage(tenant_id=tenant_id, day=day.partition("#")[0], usage=Usage(**figures))


def _figures_of(stored: Stored) -> dict[str, int]:
    return {
        "stored_bytes": stored.size_bytes,
        "stored_images": stored.images,
        "stored_unfinished": stored.unfinished,
    }


def _stored_of(item: Mapping[str, Any]) -> Stored:
    size_bytes, images, unfinished = (int(item.get(name, {}).get("N", "0")) for name in _figures_of(NOTHING))
    return Stored(size_bytes=size_bytes, images=images, unfinished=unfinished)
