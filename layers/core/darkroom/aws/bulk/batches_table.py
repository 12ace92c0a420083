"""The Batches table: an item per batch, up to four for the sums of what was counted of it, and one for each of its
images.

A batch's images lie in partitions beside it. Two transactions that change a sum at once conflict, and DynamoDB cancels
one: the process whose transaction was cancelled goes on with the batch's next sum. A batch with a parallelism has one
sum alone, because its condition is on how many images are working.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import batched
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from darkroom.aws.kernel.errors import code_of, items_at, pages_of, retryable
from darkroom.aws.kernel.transactions import MET, REFUSED, reasons_of
from darkroom.aws.kernel.versioned_rows import Item, Rows, VersionedRows
from darkroom.domain.bulk.batches import KEPT_DAYS, Batch, Counts, Sums
from darkroom.domain.bulk.members import SHARDS, Change, Member, MemberState, differences, shard_of
from darkroom.domain.kernel.errors import Retryable
from darkroom.domain.kernel.instants import Milliseconds
from darkroom.ports.bulk import BatchCursor, BatchPage, DueRow
from darkroom.ports.kernel import UnreadableRow

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

DUE_INDEX = "due"
LISTED_INDEX = "listed"
WAITING_INDEX = "waiting"

BATCHES = Rows(Batch, "batch", "batch_id")
MEMBERS = Rows(Member, "image of a batch", "batch_id", "image_id")

_BATCH = "batch"
"""The part of a batch's own item."""

_SUM = "sum#"
"""What the parts of a batch's sums begin with."""

SUMS = 4
"""How many sums a batch without a parallelism has at most: those who count it at a time seldom meet at the same."""

DUE_SHARD = "batches"
"""The only partition of the due index: bulk work that goes on is written every few seconds, a batch a few times an
hour."""

_WRITES = 8
"""Of so many transactions in a row one meets no other."""

_REMEMBERED_BATCHES = 10_000


class BatchesTable:
    """Implements the `Batches` port with one DynamoDB table and its three indexes."""

    def __init__(self, client: DynamoDBClient, table_name: str) -> None:
        self._client = client
        self._table_name = table_name
        self._rows = VersionedRows(client, table_name, BATCHES)
        self._parts: dict[str, int] = {}

    def get(self, batch_id: str) -> Batch | None:
        item = self._rows.get(_key(batch_id, _BATCH))
        return None if item is None else BATCHES.row_of(item)

    def create(self, batch: Batch) -> Batch:
        indexed = {"due_shard": {"S": DUE_SHARD}, "list_shard": {"S": _list_shard_of(batch.tenant_id)}}
        item = {**BATCHES.item_of(batch), **indexed}
        return BATCHES.row_of(self._rows.put_if_absent(_key(batch.batch_id, _BATCH), item))

    def change(self, before: Batch, after: Batch) -> Batch:
        return self._rows.change(_key(before.batch_id, _BATCH), before, after)

    def of_tenant(self, tenant_id: str, *, after: BatchCursor | None, limit: int) -> BatchPage:
        beginning: Any = {}
        if after is not None:
            place = {"list_shard": {"S": _list_shard_of(tenant_id)}, "created_at": {"N": str(after.created_at)}}
            beginning = {"ExclusiveStartKey": {**_key(after.batch_id, _BATCH), **place}}
        with retryable("reading the batches of a tenant"):
            answer = self._client.query(
                TableName=self._table_name,
                IndexName=LISTED_INDEX,
                KeyConditionExpression="list_shard = :shard",
                ExpressionAttributeValues={":shard": {"S": _list_shard_of(tenant_id)}},
                ScanIndexForward=False,
                Limit=limit,
                **beginning,
            )
        last = answer.get("LastEvaluatedKey")
        return BatchPage(
            batches=tuple(map(BATCHES.readable, answer["Items"])),
            next=None if last is None else BatchCursor(int(last["created_at"]["N"]), last["place"]["S"]),
        )

    def due(self, now: Milliseconds, limit: int) -> Iterator[DueRow]:
        pages: Any = self._client.get_paginator("query").paginate(
            TableName=self._table_name,
            IndexName=DUE_INDEX,
            KeyConditionExpression="due_shard = :shard AND due_at <= :now",
            ExpressionAttributeValues={":shard": {"S": DUE_SHARD}, ":now": {"N": str(now)}},
            PaginationConfig={"MaxItems": limit},
        )
        for page in pages_of(pages, "reading the due index of bulk work"):
            for item in page["Items"]:
                yield DueRow(int(item["due_at"]["N"]), item["place"]["S"], item["part"]["S"])

    def postpone(self, due: DueRow, until: Milliseconds) -> None:
        self._rows.postpone(_key(due.place, due.part), {"due_at": {"N": str(due.due_at)}}, until)

    def join(self, member: Member) -> Member:
        return MEMBERS.row_of(self._rows.put_if_absent(_key_of(member), _new(member)))

    def leave(self, member: Member) -> None:
        try:
            with retryable("removing the image of a batch"):
                self._client.delete_item(TableName=self._table_name, **_as_it_was(member))
        except ClientError as error:
            if code_of(error) != "ConditionalCheckFailedException":  # it is there, or was removed before
                raise

    def members(self, batch_id: str, names: Sequence[str]) -> Mapping[str, Member | UnreadableRow]:
        keys = [_key(_place(batch_id, shard_of(name)), name) for name in dict.fromkeys(names)]
        items = items_at(self._client, self._table_name, keys, "reading images of a batch", ConsistentRead=True)
        return {item["part"]["S"]: MEMBERS.readable(item) for item in items}

    def all_members(self, batch_id: str, *, after: str | None = None) -> Iterator[tuple[str, Member | UnreadableRow]]:
        first = 0 if after is None else shard_of(after)
        for shard in range(first, SHARDS):
            # A space is less than every id.
            beginning = after if after is not None and shard == first else " "
            pages: Any = self._client.get_paginator("query").paginate(
                TableName=self._table_name,
                KeyConditionExpression="place = :place AND part > :after",
                ExpressionAttributeValues={":place": {"S": _place(batch_id, shard)}, ":after": {"S": beginning}},
                ConsistentRead=True,
            )
            for page in pages_of(pages, "reading the images of a batch"):
                yield from ((item["part"]["S"], MEMBERS.readable(item)) for item in page["Items"])

    def waiting(self, batch_id: str, limit: int) -> Sequence[Member]:
        found: list[Mapping[str, Any]] = []
        for shard in range(SHARDS):
            if len(found) < limit:
                with retryable("reading the waiting images of a batch"):
                    answer = self._client.query(
                        TableName=self._table_name,
                        IndexName=WAITING_INDEX,
                        KeyConditionExpression="waits_in = :place",
                        ExpressionAttributeValues={":place": {"S": _place(batch_id, shard)}},
                        Limit=limit - len(found),
                    )
                found += answer["Items"]
        names = [item["part"]["S"] for item in found]
        known = (self.members(batch_id, some).values() for some in batched(names, 100, strict=False))
        rows = (row for part in known for row in part)
        return [row for row in rows if isinstance(row, Member) and row.state is MemberState.WAITING]

    def count(
        self, batch: Batch, changes: Sequence[Change], *, now: Milliseconds, most_working: int | None = None
    ) -> bool:
        items = [_write(self._table_name, change) for change in changes]
        added, is_alone = differences(changes), batch.parallelism is not None
        if most_working is not None and added.get(MemberState.WORKING, 0) > most_working:
            return False
        for _ in range(_WRITES):
            part = 0 if is_alone else self._parts.get(batch.batch_id, 0)
            total = self._sum(batch.batch_id, part, added, now=now, most_working=most_working)
            try:
                # The SDK gives each call a token of its own, by which DynamoDB knows a retry whose answer was lost.
                with retryable("counting a batch"):
                    self._client.transact_write_items(TransactItems=[*items, *total])
            except ClientError as error:
                reasons = reasons_of(error, "counting a batch")
                if REFUSED in reasons:
                    return False
                if MET not in reasons:
                    raise
                if len(self._parts) >= _REMEMBERED_BATCHES:
                    self._parts.clear()
                self._parts[batch.batch_id] = (part + 1) % SUMS
                continue
            return True
        raise Retryable(f"counting a batch: {MET}")

    def _sum(
        self, batch_id: str, part: int, added: Mapping[str, int], *, now: Milliseconds, most_working: int | None
    ) -> list[Any]:
        if not added:
            return []
        names = {f"#{state}": str(state) for state in added}
        values = {f":{state}": {"N": str(figure)} for state, figure in added.items()}
        sets = "counted_at = :now, forget_at = :forget_at"
        if any(MemberState(state).has_ended for state in added):
            sets += ", first_ended_at = if_not_exists(first_ended_at, :now)"
        update: dict[str, Any] = {
            "TableName": self._table_name,
            "Key": _key(batch_id, f"{_SUM}{part}"),
            "UpdateExpression": f"SET {sets} ADD " + ", ".join(f"#{state} :{state}" for state in added),
            "ExpressionAttributeNames": names,
            "ExpressionAttributeValues": {
                **values,
                ":now": {"N": str(now)},
                ":forget_at": {"N": str(now // 1000 + KEPT_DAYS * 24 * 3600)},
            },
        }
        if most_working is not None:
            room = most_working - added.get(MemberState.WORKING, 0)
            # guard: bulk-parallelism-in-condition
            update["ConditionExpression"] = "attribute_not_exists(#working) OR #working <= :room"
            update["ExpressionAttributeValues"][":room"] = {"N": str(room)}
        return [{"Update": update}]

    def sums(self, batch_id: str) -> Sums:
        with retryable("reading the sums of a batch"):
            answer = self._client.query(
                TableName=self._table_name,
                KeyConditionExpression="place = :place AND begins_with(part, :sum)",
                ExpressionAttributeValues={":place": {"S": batch_id}, ":sum": {"S": _SUM}},
                ConsistentRead=True,
            )
        counts, counted, first_ended = Counts(), list[int](), list[int]()
        for item in answer["Items"]:
            figures = {name: int(item[name]["N"]) for name in Counts.__dataclass_fields__ if name in item}
            counts += Counts(**figures)
            counted += [int(item["counted_at"]["N"])] if "counted_at" in item else []
            first_ended += [int(item["first_ended_at"]["N"])] if "first_ended_at" in item else []
        return Sums(counts=counts, counted_at=max(counted, default=None), first_ended_at=min(first_ended, default=None))


def partitions_of(batch_id: str) -> Iterator[str]:
    """Where all of a batch is: its images first, and last what lists it, so that an interrupted removal finds it."""
    yield from (_place(batch_id, shard) for shard in range(SHARDS))
    yield batch_id


def _list_shard_of(tenant_id: str) -> str:
    """The partition that lists a tenant's batches: one is enough, because each is written a few times."""
    return f"{tenant_id}#0"


def _key(place: str, part: str) -> Item:
    return {"place": {"S": place}, "part": {"S": part}}


def _place(batch_id: str, shard: int) -> str:
    return f"{batch_id}#{shard}"


def _key_of(member: Member) -> Item:
    return _key(_place(member.batch_id, member.shard), member.name)


def _item_of(member: Member) -> Item:
    waits_in = {"waits_in": _key_of(member)["place"]} if member.state is MemberState.WAITING else {}
    return {**MEMBERS.item_of(member), **waits_in}


def _new(member: Member) -> Item:
    forget_at = member.joined_at // 1000 + KEPT_DAYS * 24 * 3600
    return {**_item_of(member), "forget_at": {"N": str(forget_at)}}


def _as_it_was(member: Member) -> dict[str, Any]:
    """The key of an image's item, and the condition that it still says the same."""
    return {
        "Key": _key_of(member),
        # guard: bulk-member-as-it-was
        "ConditionExpression": "#state = :was_state AND #version = :was_version",
        "ExpressionAttributeNames": {"#state": "state", "#version": "version"},
        "ExpressionAttributeValues": {
            ":was_state": {"S": str(member.state)},
            ":was_version": {"N": str(member.version)},
        },
    }


def _write(table_name: str, change: Change) -> Any:
    """One item of a transaction."""
    match change:
        case (None, Member() as after):
            item = {**_new(after), **_key_of(after)}
            return {
                "Put": {"TableName": table_name, "Item": item, "ConditionExpression": "attribute_not_exists(place)"}
            }
        case (Member() as before, None):
            return {"Delete": {"TableName": table_name, **_as_it_was(before)}}
        case (Member() as before, Member() as after):
            was, item = _as_it_was(before), _item_of(after)
            written = {f":{name}": item[name] for name in ("state", "version", "waits_in") if name in item}
            # An index has the images that wait.
            waits = ", waits_in = :waits_in" if "waits_in" in item else " REMOVE waits_in"
            return {
                "Update": {
                    "TableName": table_name,
                    **was,
                    "UpdateExpression": f"SET #state = :state, #version = :version{waits}",
                    "ExpressionAttributeValues": {**was["ExpressionAttributeValues"], **written},
                }
            }
    raise ValueError("nothing becomes nothing")
