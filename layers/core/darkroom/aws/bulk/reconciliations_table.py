"""The reconciliation in the Batches table: its item, one beside it for each difference, and some with ids of a night;
and the index of the Images table from which these ids are."""

from __future__ import annotations

import json
import zlib
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from heapq import merge
from typing import TYPE_CHECKING, Any

from darkroom.aws.bulk.batches_table import DUE_SHARD
from darkroom.aws.images.images_table import LISTED_INDEX, readable
from darkroom.aws.kernel.errors import items_at, pages_of, retryable
from darkroom.aws.kernel.versioned_rows import Item, Rows, VersionedRows
from darkroom.domain.bulk.reconciliation import Difference, Reconciliation
from darkroom.ports.bulk import ListedIds

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

    from darkroom.domain.images.image import Image
    from darkroom.domain.kernel.instants import Milliseconds
    from darkroom.ports.kernel import UnreadableRow

RECONCILIATIONS = Rows(Reconciliation, "reconciliation", "place")
DIFFERENCES = Rows(Difference, "difference", "key")

_PLACE = {"S": "reconciliation"}
_RECONCILIATION = "reconciliation"
_DIFFERENCE = "difference#"

_KEPT_SECONDS = 7 * 24 * 3600
_ID_CHARACTERS = 26


class ReconciliationsTable:
    """Implements the `Reconciliations` port with the table of batches."""

    def __init__(self, client: DynamoDBClient, table_name: str) -> None:
        self._client = client
        self._table_name = table_name
        self._rows = VersionedRows(client, table_name, RECONCILIATIONS)
        self._ids_of: tuple[int, list[str]] = (0, [])

    def get(self) -> Reconciliation | None:
        item = self._rows.get(_key(_RECONCILIATION))
        return None if item is None else RECONCILIATIONS.row_of(item)

    def create(self, row: Reconciliation) -> Reconciliation:
        item = {**RECONCILIATIONS.item_of(row), "due_shard": {"S": DUE_SHARD}}
        return RECONCILIATIONS.row_of(self._rows.put_if_absent(_key(_RECONCILIATION), item))

    def change(self, before: Reconciliation, after: Reconciliation) -> Reconciliation:
        return self._rows.change(_key(_RECONCILIATION), before, after)

    def put_ids(self, before: Reconciliation, after: Reconciliation, image_ids: Sequence[str]) -> Reconciliation:
        # A version is followed by one other, so no two items of ids have one key. Compressed, an id takes 17 bytes.
        ids = {
            **_key(f"{_ids(after.nights)}{before.version:010d}"),
            "ids": {"B": zlib.compress("".join(sorted(image_ids)).encode())},
            "forget_at": {"N": str(after.began_at // 1000 + _KEPT_SECONDS)},
        }
        put = {"Put": {"TableName": self._table_name, "Item": ids}}
        return self._rows.change_with(_key(_RECONCILIATION), before, after, put)

    def ids(self, nights: int, *, after: str) -> Iterator[str]:
        if self._ids_of[0] != nights:  # they are complete before they are read for the first time
            self._ids_of = (nights, list(self._read_ids(nights)))
        return merge(*(_ids_after(text, after) for text in self._ids_of[1]))

    def _read_ids(self, nights: int) -> Iterator[str]:
        for item in self._items(_ids(nights)):
            yield zlib.decompress(item["ids"]["B"]).decode()

    def differences(self) -> Sequence[Difference]:
        return [DIFFERENCES.row_of(item) for item in self._items(_DIFFERENCE)]

    def _items(self, part: str) -> Iterator[Item]:
        answers: Any = self._client.get_paginator("query").paginate(
            TableName=self._table_name,
            KeyConditionExpression="place = :place AND begins_with(part, :part)",
            ExpressionAttributeValues={":place": _PLACE, ":part": {"S": part}},
            ConsistentRead=True,
        )
        for answer in pages_of(answers, "reading the reconciliation"):
            yield from answer["Items"]

    def put(self, difference: Difference) -> None:
        item = {**DIFFERENCES.item_of(difference), **_key_of(difference)}
        with retryable("recording a difference"):
            self._client.put_item(TableName=self._table_name, Item=item)

    def remove(self, difference: Difference) -> None:
        with retryable("removing a difference"):
            self._client.delete_item(TableName=self._table_name, Key=_key_of(difference))


class ListedImages:
    """Implements the `ImageListing` port: an entry of its index has 100 bytes, a row thousands."""

    def __init__(self, client: DynamoDBClient, table_name: str) -> None:
        self._client = client
        self._table_name = table_name

    def between(self, since: str, until: str, *, before: Milliseconds, after: str | None) -> ListedIds:
        beginning: Any = {} if after is None else {"ExclusiveStartKey": json.loads(after)}
        with retryable("reading the index of listed images"):
            answer = self._client.scan(
                TableName=self._table_name,
                IndexName=LISTED_INDEX,
                FilterExpression="image_id > :since AND image_id < :until AND created_at < :before",
                ExpressionAttributeValues={
                    ":since": {"S": since},
                    ":until": {"S": until},
                    ":before": {"N": str(before)},
                },
                ProjectionExpression="image_id",
                **beginning,
            )
        last = answer.get("LastEvaluatedKey")
        return ListedIds(
            image_ids=tuple(item["image_id"]["S"] for item in answer["Items"]),
            next=None if last is None else json.dumps(last),
        )

    def rows(self, image_ids: Sequence[str]) -> Mapping[str, Image | UnreadableRow]:
        keys = [{"image_id": {"S": image_id}} for image_id in image_ids]
        items = items_at(self._client, self._table_name, keys, "reading image rows")
        return {item["image_id"]["S"]: readable(item) for item in items}


def _ids(nights: int) -> str:
    return f"ids#{nights:06d}#"


def _ids_after(text: str, after: str) -> Iterator[str]:
    """The ids in their joined text that come after that one."""
    numbers = range(len(text) // _ID_CHARACTERS)

    def id_at(number: int) -> str:
        return text[number * _ID_CHARACTERS : (number + 1) * _ID_CHARACTERS]

    return map(id_at, numbers[bisect_right(numbers, after, key=id_at) :])


def _key(part: str) -> Item:
    return {"place": _PLACE, "part": {"S": part}}


def _key_of(difference: Difference) -> Item:
    return _key(_DIFFERENCE + difference.name)
